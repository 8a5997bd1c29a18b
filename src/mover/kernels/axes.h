/* Axes: the loops of moves, each list kept once for all moves of a mover: halos of blocks of one
 * size have a few dozen. */
#ifndef FY_MOVER_AXES_H
#define FY_MOVER_AXES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/table.h"

/* One loop. */
typedef struct fy_axis {
    size_t count;
    ptrdiff_t d, s; /* bytes to the next in target and source */
} fy_axis;

/* All zero is an empty store. */
typedef struct fy_axes {
    fy_table by_hash;
    bool is_indexed;
} fy_axes;

/* Lends the one list equal to `list` of `count` axes until fy_axes_fini. NULL: no memory. */
const fy_axis *fy_axes_keep(fy_axes *axes, const fy_axis *list, int count);

/* Frees the lists; the store is empty then. */
void fy_axes_fini(fy_axes *axes);

#endif
