/* Axes: the lists of loops of a mover's moves. Many moves have the same list, so each is kept once.
 * The halo of blocks of one size has a few dozen lists. */
#ifndef FY_MOVER_AXES_H
#define FY_MOVER_AXES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/table.h"

/* One loop. */
typedef struct fy_axis {
    size_t count;
    ptrdiff_t d, s; /* bytes to the next item in target and source */
} fy_axis;

/* All zero is an empty store. */
typedef struct fy_axes {
    fy_table by_hash;
    bool is_indexed;
} fy_axes;

/* Lends, until fy_axes_fini, the kept list that equals `list` of `count` axes. NULL: no memory. */
const fy_axis *fy_axes_keep(fy_axes *axes, const fy_axis *list, int count);

/* Frees the lists; the store is empty then. */
void fy_axes_fini(fy_axes *axes);

#endif
