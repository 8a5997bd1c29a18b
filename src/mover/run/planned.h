/* Planned: the arrays or grids, options and copies of a mover. Binding reads them. They stay the
 * same when the mover is bound again. The struct is here and not in bind/, because ferry_mover has
 * it as a member (state.h), and this folder does not include bind/. */
#ifndef FY_MOVER_PLANNED_H
#define FY_MOVER_PLANNED_H

#include "mover/kernels/move.h"
#include "mover/run/copies.h"

#include <ferry/mover_blocks.h>

typedef struct fy_mover_form fy_mover_form;

typedef struct fy_planned {
    ferry *f;
    const fy_mover_form *form;           /* over regions or over indices */
    ferry_xarray *source, *target;       /* movers over regions */
    ferry_grid source_grid, target_grid; /* movers over indices */
    size_t element_bytes;
    ferry_mover_options options;
    fy_combine how, copying;   /* the operation; the copy into packed buffers */
    fy_copies kept;            /* all copies: within the rank, in, out */
    const ferry_plan *entries; /* the plan, until the mover is bound */
    uint32_t *copies;          /* entries within the rank, in, out; until the mover is bound */
} fy_planned;

#endif
