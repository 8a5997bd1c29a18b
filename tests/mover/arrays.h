/* Arrays: what the test programs of movers share: floor plans, xarrays in either memory, and ways
 * to move. */
#ifndef FY_TEST_ARRAYS_H
#define FY_TEST_ARRAYS_H

#include "cells.h"
#include "dice.h"

/* Some tiles of a domain, with random owners. */
static inline ferry_floorplan random_plan(ferry *f, dice *d, ferry_region domain, bool all)
{
    ferry_floorplan tiles, out = {.dims = domain.dims};
    ferry_point extents;
    for (int i = 0; i < FERRY_DIMS_MAX; i++)
        extents.at[i] = dice_between(d, 3, 7);
    CHECK(ferry_floorplan_tile(domain, extents, &tiles) == 0);
    for (size_t i = 0; i < tiles.count; i++)
        if (dice_between(d, 0, 5) > 0 || all)
            CHECK(ferry_floorplan_add(&out, tiles.blocks[i].region,
                                      (int)dice_between(d, 0, ferry_ranks(f) - 1)) == 0);
    ferry_floorplan_fini(&tiles);
    return out;
}

/* One of the ways: the options, and whose memory. */
typedef struct way {
    ferry_mover_options options;
    bool borrowed;
} way;

static inline way random_way(dice *d)
{
    way w = {.options = FERRY_MOVER_OPTIONS_DEFAULTS};
    int64_t which = dice_between(d, 0, 4);
    w.options.messages = which == 1 || which == 2;
    w.options.packet_bytes = which == 2 ? 100 : 0;
    w.borrowed = which == 3;
    w.options.ordered = dice_between(d, 0, 3) == 0;
    w.options.check = dice_between(d, 0, 1);
    w.options.deferred = dice_between(d, 0, 1);
    return w;
}

static inline ferry_xarray *make_array(ferry *f, const ferry_floorplan *blocks, ferry_point ghosts,
                                       bool borrowed)
{
    ferry_xarray *x, *over;
    CHECK(ferry_xarray_create(f, blocks, sizeof(double), ghosts, &x) == 0);
    if (!borrowed)
        return x;
    ferry_grid *grids = calloc(x->local_count + 1, sizeof *grids);
    for (size_t i = 0; i < x->local_count; i++)
        grids[i] = ferry_grid_over(x->grids[i].region, sizeof(double),
                                   calloc(ferry_region_size(x->grids[i].region), sizeof(double)));
    CHECK(ferry_xarray_create_over(f, blocks, sizeof(double), ghosts, grids, &over) == 0);
    free(grids);
    ferry_xarray_destroy(x);
    return over;
}

static inline void free_array(ferry_xarray *x)
{
    for (size_t i = 0; i < x->local_count && x->borrowed; i++)
        free(x->grids[i].data);
    ferry_xarray_destroy(x);
}

#endif
