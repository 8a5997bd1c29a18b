/* Bulk: moves of more bytes than caches hold, in long contiguous units. */
#ifndef FY_BULK_H
#define FY_BULK_H

#include "mover/kernels/move.h"

/* Whether `move`, a copy in rows, is a bulk move. */
bool fy_is_bulk(const fy_move *move);

/* Runs a bulk move, with `target` and `source` in place of the move's own addresses. */
void fy_bulk_run(const fy_move *move, char *target, const char *source);

#endif
