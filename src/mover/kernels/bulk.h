/* Bulk: moves of more bytes than caches hold, in long contiguous units. */
#ifndef FY_BULK_H
#define FY_BULK_H

#include "mover/kernels/move.h"

/* Whether the move is one; it must be a copy in rows. */
bool fy_is_bulk(const fy_move *move);

/* Copies all of it, between `target` and `source` in place of its own. */
void fy_bulk_run(const fy_move *move, char *target, const char *source);

#endif
