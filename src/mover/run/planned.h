/* Planned: what a mover copies, and how: its arrays or grids, its options, and its copies. Binding
 * reads it; it stays as it is when the mover is bound anew. */
#ifndef FY_MOVER_PLANNED_H
#define FY_MOVER_PLANNED_H

#include "mover/kernels/move.h"
#include "mover/run/copies.h"

#include <ferry/mover_blocks.h>

typedef struct fy_mover_form fy_mover_form;

typedef struct fy_planned {
    const fy_mover_form *form;           /* over regions or over indices */
    ferry_xarray *source, *target;       /* movers over regions */
    ferry_grid source_grid, target_grid; /* movers over indices */
    size_t element_bytes;
    ferry_mover_options options;
    fy_combine how, copying;   /* the operation; the copy into packed buffers */
    fy_copies kept;            /* all copies: within, in, out */
    const ferry_plan *entries; /* until it is bound */
    uint32_t *copies;          /* its entries within the rank, in and out, until it is bound */
} fy_planned;

#endif
