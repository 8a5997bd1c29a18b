/* Cells: numbers made of coordinates and a round, and what a halo must have made of them. */
#ifndef FY_TEST_CELLS_H
#define FY_TEST_CELLS_H

#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>
#include <ferry/mover.h>

#include "check_that.h"

static inline double value_of(ferry_point p, int dims, int round)
{
    double v = round;
    for (int d = 0; d < dims; d++)
        v = v * 31 + (double)p.at[d];
    return v;
}

/* Fills own cells with the round's values and ghost cells with -1. */
static inline void fill(const ferry_xarray *x, int round)
{
    for (size_t i = 0; i < x->local_count; i++) {
        const ferry_grid *g = &x->grids[i];
        ferry_region own = ferry_floorplan_block(&x->blocks, x->local[i])->region;
        ferry_point p = g->region.low;
        do {
            double *cell = ferry_grid_at(g, p);
            *cell = ferry_region_contains_point(own, p) ? value_of(p, own.dims, round) : -1;
        } while (ferry_region_next(&g->region, &p));
    }
}

static inline bool owned(const ferry_floorplan *blocks, ferry_point p)
{
    for (size_t i = 0; i < blocks->count; i++)
        if (ferry_region_contains_point(blocks->blocks[i].region, p))
            return true;
    return false;
}

static inline void check_halo(ferry *f, const ferry_xarray *x, const ferry_halo *halo, int round)
{
    for (size_t i = 0; i < x->local_count; i++) {
        const ferry_grid *g = &x->grids[i];
        ferry_region own = ferry_floorplan_block(&x->blocks, x->local[i])->region;
        ferry_point p = g->region.low;
        do {
            int outside = 0;
            ferry_point q = p;
            for (int d = 0; d < own.dims; d++) {
                int64_t extent = halo->domain.high.at[d] + 1;
                outside += p.at[d] < own.low.at[d] || p.at[d] > own.high.at[d];
                if (halo->periodic[d])
                    q.at[d] = (p.at[d] + extent) % extent;
            }
            bool filled =
                outside == 0 || ((outside == 1 || !halo->faces_only) && owned(&x->blocks, q));
            CHECK(*(double *)ferry_grid_at(g, p) == (filled ? value_of(q, own.dims, round) : -1));
        } while (ferry_region_next(&g->region, &p));
    }
}

#endif
