/* The layout of the board of a rank (fy_heap_ops.board): the cells first, then core's. */
#ifndef FY_BOARD_H
#define FY_BOARD_H

#include "port/port.h"

/* First the calls by the board (collective_board.c), with the line of quiescences (rest.c) as their
 * last, then marks of messages (mail.c). */
#define FY_BOARD_CORE_BYTES 2048u
#define FY_BOARD_REST_BYTES 64u
#define FY_BOARD_MARKS_BYTES 2048u

/* The cells have everything before this offset. */
#define FY_BOARD_CORE_OFFSET (FY_BOARD_BYTES - FY_BOARD_CORE_BYTES - FY_BOARD_MARKS_BYTES)
#define FY_BOARD_REST_OFFSET (FY_BOARD_MARKS_OFFSET - FY_BOARD_REST_BYTES)
#define FY_BOARD_MARKS_OFFSET (FY_BOARD_CORE_OFFSET + FY_BOARD_CORE_BYTES)

#endif
