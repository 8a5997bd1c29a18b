/* Transposing moves (move.h): the last two axes are contiguous, the one before the last in the
 * source, the last in the target. */
#ifndef FY_TRANSPOSE_H
#define FY_TRANSPOSE_H

#include "mover/kernels/move.h"

/* Copies all of `move`, between `target` and `source` in place of its own. */
void fy_transpose(const fy_move *move, char *target, const char *source);

#endif
