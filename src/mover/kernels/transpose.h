/* Moves of kind FY_MOVE_TRANSPOSE (move.h): the source is contiguous along the axis before the
 * last, the target along the last. */
#ifndef FY_TRANSPOSE_H
#define FY_TRANSPOSE_H

#include "mover/kernels/move.h"

/* Runs a move, with `target` and `source` in place of the move's own addresses. */
void fy_transpose(const fy_move *move, char *target, const char *source);

#endif
