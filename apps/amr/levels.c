/* Levels: what moves between them, and fine blocks that follow the solution. */
#include "amr/amr.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double steep = 0.02; /* difference of neighbours from which a tile is refined */

void amr_move(const solver *s, ferry_mover *m)
{
    check(s->f, ferry_mover_start(m, NULL));
    check(s->f, ferry_mover_wait(m));
}

ferry_region amr_own_region(const ferry_xarray *x, size_t i)
{
    return ferry_floorplan_block(&x->blocks, x->local[i])->region;
}

int64_t amr_below(const solver *s, int64_t tile, int d)
{
    int64_t i = tile / s->tiles, j = tile % s->tiles;
    if (d == 0)
        i = (i + s->tiles - 1) % s->tiles;
    else
        j = (j + s->tiles - 1) % s->tiles;
    return i * s->tiles + j;
}

/* Adds an entry between a coarse and a fine block, when the regions are not empty. */
static void add(const solver *s, ferry_plan *plan, ferry_plan_entry entry)
{
    for (int d = 0; d < FERRY_DIMS_MAX; d++) {
        entry.axis[d] = (int8_t)d;
        entry.ratio[d] = entry.ratio[d] > 0 ? entry.ratio[d] : RATIO;
    }
    if (!ferry_region_is_empty(entry.from))
        check(s->f, ferry_plan_add(plan, &entry));
}

static void mean(void *arg, void *target, ptrdiff_t target_stride, const void *source,
                 ptrdiff_t source_stride, size_t count)
{
    (void)arg;
    for (size_t i = 0; i < count; i++) {
        double *to = (double *)(void *)((char *)target + (ptrdiff_t)i * target_stride);
        *to +=
            *(const double *)(const void *)((const char *)source + (ptrdiff_t)i * source_stride) /
            (RATIO * RATIO);
    }
}

static ferry_mover *bind(const solver *s, ferry_plan *plan, ferry_xarray *from, ferry_xarray *to,
                         ferry_reduction how)
{
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    ferry_mover *m;
    options.operation.reduction = how;
    options.operation.fn = mean;
    options.ordered = how != FERRY_REPLACE;
    check(s->f, ferry_mover_bind(s->f, plan, from, to, &options, &m));
    ferry_plan_fini(plan);
    return m;
}

ferry_mover *amr_bind_halo(const solver *s, ferry_xarray *x, int64_t cells)
{
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_plan plan = {0};
    halo.domain = ferry_region_sized(DIMS, (int64_t[]){cells, cells});
    halo.low = halo.high = ferry_point_all(1);
    halo.faces_only = true;
    halo.periodic[0] = halo.periodic[1] = true;
    check(s->f, ferry_plan_halo(&plan, &x->blocks, &halo, ferry_rank(s->f)));
    return bind(s, &plan, x, x, FERRY_REPLACE);
}

/* The layer of cells that flow enters block `r` through in dimension d, or with `last` leaves. */
static ferry_region layer(ferry_region r, int d, bool last)
{
    if (last)
        r.low.at[d] = r.high.at[d];
    else
        r.high.at[d] = r.low.at[d];
    return r;
}

void amr_bind_levels(solver *s)
{
    ferry_plan down = {0}, up = {0}, edges[DIMS] = {{0}, {0}};
    const ferry_point ratio = ferry_point_all(RATIO), one = ferry_point_all(1);
    for (int64_t t = 0; t < s->tiles * s->tiles; t++) {
        ferry_region tile = s->u->blocks.blocks[t].region;
        int32_t block = s->fine_of[t];
        for (int d = 0; d < DIMS; d++) {
            int64_t from = amr_below(s, t, d);
            if (block >= 0 || s->fine_of[from] < 0)
                continue;
            ferry_plan_entry entry = {.source = s->fine_of[from], .target = (int32_t)t};
            entry.from = ferry_region_refine(s->u->blocks.blocks[from].region, ratio);
            entry.from = layer(entry.from, d, true);
            entry.to = layer(tile, d, false);
            entry.ratio[d] = 1;
            entry.relation = FERRY_COARSEN;
            add(s, &edges[d], entry);
        }
        if (block < 0)
            continue;
        ferry_region fine = ferry_region_refine(tile, ratio);
        add(s, &down,
            (ferry_plan_entry){.source = block,
                               .target = (int32_t)t,
                               .from = fine,
                               .to = tile,
                               .relation = FERRY_COARSEN});
        ferry_region ring[2 * FERRY_DIMS_MAX];
        int count = ferry_region_difference(ferry_region_grow(fine, one), fine, ring);
        for (int i = 0; i < count; i++)
            add(s, &up,
                (ferry_plan_entry){.source = (int32_t)t,
                                   .target = block,
                                   .from = ferry_region_coarsen(ring[i], ratio),
                                   .to = ring[i],
                                   .relation = FERRY_REFINE});
    }
    s->down = bind(s, &down, s->fine, s->u, FERRY_USER);
    s->up = bind(s, &up, s->u, s->fine, FERRY_REPLACE);
    for (int d = 0; d < DIMS; d++)
        s->edges[d] = bind(s, &edges[d], s->fine, s->edge[d], FERRY_SUM);
    s->fine_halo = amr_bind_halo(s, s->fine, s->tiles * TILE * RATIO);
}

void amr_free_levels(solver *s)
{
    ferry_mover *movers[] = {s->down, s->up, s->edges[0], s->edges[1], s->fine_halo};
    for (size_t i = 0; i < sizeof movers / sizeof *movers; i++)
        check(s->f, ferry_mover_free(movers[i]));
}

void amr_restrict_fine(const solver *s)
{
    for (size_t i = 0; i < s->u->local_count; i++) {
        ferry_region own = amr_own_region(s->u, i);
        ferry_point p = own.low;
        if (s->fine_of[s->u->local[i]] < 0)
            continue;
        do
            *(double *)ferry_grid_at(&s->u->grids[i], p) = 0;
        while (ferry_region_next(&own, &p));
    }
    amr_move(s, s->down);
}

/* Tiles that are steep, or next to one: the same answer on every rank. */
static void flag(const solver *s, int64_t *flags)
{
    const int64_t n = s->tiles;
    int64_t *marks = calloc((size_t)(n * n), sizeof *marks);
    if (marks == NULL)
        exit(1);
    amr_move(s, s->halo);
    for (size_t b = 0; b < s->u->local_count; b++) {
        ferry_region own = amr_own_region(s->u, b);
        ferry_point p = own.low;
        do {
            const double *u = ferry_grid_at(&s->u->grids[b], p);
            const ptrdiff_t row = s->u->grids[b].stride[0] / (ptrdiff_t)sizeof(double);
            if (fabs(u[0] - u[-1]) > steep || fabs(u[0] - u[-row]) > steep)
                marks[s->u->local[b]] = 1;
        } while (ferry_region_next(&own, &p));
    }
    check(s->f, ferry_allreduce(s->f, FERRY_INT64, FERRY_MAX, marks, marks, (size_t)(n * n)));
    for (int64_t t = 0; t < n * n; t++) {
        flags[t] = 0;
        for (int64_t k = 0; k < 9; k++)
            flags[t] |= marks[(t / n + n + k / 3 - 1) % n * n + (t % n + n + k % 3 - 1) % n];
    }
    free(marks);
}

ferry_blocks *amr_make_mobile(const solver *s, ferry_xarray *const *arrays, size_t count,
                              double load)
{
    ferry_blocks *set;
    check(s->f, ferry_blocks_create(s->f, arrays, count, &set));
    for (size_t i = 0; i < arrays[0]->local_count; i++)
        check(s->f, ferry_balance_add(s->f, ferry_blocks_object(set, arrays[0]->local[i]),
                                      &(ferry_balance_options){sizeof(ferry_balance_options), load,
                                                               0, NULL, NULL, 0}));
    return set;
}

/* The new fine array: from the coarse level, then from the old fine blocks where there were any. */
static void fill_fine(const solver *s, ferry_xarray *next)
{
    ferry_plan coarse = {0}, same = {0};
    ferry_intersection meeting = FERRY_INTERSECTION_DEFAULTS;
    meeting.relation = FERRY_REFINE;
    meeting.ratio[0] = meeting.ratio[1] = RATIO;
    check(s->f,
          ferry_plan_intersect(&coarse, &s->u->blocks, &next->blocks, &meeting, ferry_rank(s->f)));
    check(s->f,
          ferry_plan_intersect(&same, &s->fine->blocks, &next->blocks, NULL, ferry_rank(s->f)));
    ferry_mover *movers[] = {bind(s, &coarse, s->u, next, FERRY_REPLACE),
                             bind(s, &same, s->fine, next, FERRY_REPLACE)};
    for (int i = 0; i < 2; i++) {
        amr_move(s, movers[i]);
        check(s->f, ferry_mover_free(movers[i]));
    }
}

void amr_regrid(solver *s)
{
    const size_t count = s->u->blocks.count;
    int64_t *flags = calloc(count, sizeof *flags);
    ferry_floorplan blocks = {.dims = DIMS};
    ferry_xarray *next;
    if (flags == NULL)
        exit(1);
    flag(s, flags);
    amr_free_levels(s);
    for (size_t t = 0; t < count; t++) {
        ferry_block tile = s->u->blocks.blocks[t];
        if (s->fine_of[t] >= 0)
            tile.owner = s->fine->blocks.blocks[s->fine_of[t]].owner;
        s->appeared += flags[t] && s->fine_of[t] < 0;
        s->vanished += !flags[t] && s->fine_of[t] >= 0;
        s->fine_of[t] = flags[t] ? (int32_t)blocks.count : -1;
        if (flags[t])
            check(s->f, ferry_floorplan_add(
                            &blocks, ferry_region_refine(tile.region, ferry_point_all(RATIO)),
                            tile.owner));
    }
    check(s->f, ferry_xarray_create(s->f, &blocks, sizeof(double), ferry_point_all(1), &next));
    fill_fine(s, next);
    check(s->f, ferry_blocks_destroy(s->fine_set));
    ferry_xarray_destroy(s->fine);
    s->fine = next;
    amr_bind_levels(s);
    s->fine_set = amr_make_mobile(s, &s->fine, 1, RATIO * RATIO);
    ferry_floorplan_fini(&blocks);
    free(flags);
}
