/* Ferry's side of AMR: the level of tiles is one xarray, whose mover follows it to new owners; the
 * level of fine blocks is a new one at each change, over the program's memory of those that stay.
 */
#include <ferry/ferry.h>
#include <ferry/mover.h>

#include <stdlib.h>
#include <string.h>

#include "peers/apps_amr.h"
#include "peers/mover_apps.h"
#include "peers/mover_side.h"

enum { TILE = BENCH_AMR_TILE };

typedef struct solver {
    bench_amr app;
    ferry *f;
    ferry_floorplan tiles;
    int32_t *block_of; /* per tile: number of its fine block */
    ferry_xarray *coarse, *fine, *edge;
    ferry_mover *halo[2], *edges;
} solver;

static void move(const solver *s, ferry_mover *m)
{
    bench_check(s->f, ferry_mover_start(m, NULL));
    bench_check(s->f, ferry_mover_wait(m));
}

static ferry_mover *bind(const solver *s, ferry_plan *plan, ferry_xarray *from, ferry_xarray *to,
                         ferry_combine how)
{
    ferry_mover_options options = FERRY_MOVER_DEFAULTS;
    ferry_mover *m;
    options.operation.combine = how;
    bench_check(s->f, ferry_mover_bind(s->f, plan, from, to, &options, &m));
    ferry_plan_fini(plan);
    return m;
}

static ferry_mover *bind_halo(const solver *s, ferry_xarray *x, int64_t cells)
{
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_plan plan = {0};
    halo.domain = ferry_region_sized(2, (int64_t[]){cells, cells});
    halo.low = halo.high = ferry_point_all(1);
    halo.faces_only = halo.periodic[0] = halo.periodic[1] = true;
    bench_check(s->f, ferry_plan_halo(&plan, &x->blocks, &halo, ferry_rank(s->f)));
    return bind(s, &plan, x, x, FERRY_COMBINE_COPY);
}

static ferry_xarray *array(const solver *s, const ferry_floorplan *blocks, int64_t ghosts)
{
    ferry_xarray *x;
    bench_check(s->f,
                ferry_xarray_create(s->f, blocks, sizeof(double), ferry_point_all(ghosts), &x));
    return x;
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

/* A block for each tile without fine cells and each dimension in which some are before it, beside
 * its first cells, on the tile's rank; and the copies from them. */
static void bind_edges(solver *s)
{
    const bench_amr *a = &s->app;
    ferry_floorplan beside = {.dims = 2};
    ferry_plan plan = {0};
    for (int k = 0; k < 2 * a->n * a->n; k++) {
        const int t = k / 2, d = k % 2, from = bench_amr_beside(a, t, d, -1);
        if (a->fine[t] || !a->fine[from])
            continue;
        ferry_plan_entry entry = {.source = s->block_of[from],
                                  .target = (int32_t)beside.count,
                                  .relation = FERRY_COARSEN,
                                  .to = layer(s->tiles.blocks[t].region, d, false)};
        for (int e = 0; e < FERRY_DIMS_MAX; e++) {
            entry.axis[e] = (int8_t)e;
            entry.ratio[e] = e == d ? 1 : 2;
        }
        entry.from = layer(s->fine->blocks.blocks[entry.source].region, d, true);
        bench_check(s->f, ferry_floorplan_add(&beside, entry.to, a->owner[t]));
        if (a->owner[t] == a->rank || a->owner[from] == a->rank)
            bench_check(s->f, ferry_plan_add(&plan, &entry));
    }
    s->edge = array(s, &beside, 0);
    s->edges = bind(s, &plan, s->fine, s->edge, FERRY_COMBINE_ADD);
    ferry_floorplan_fini(&beside);
}

static void halo(void *arg, bool fine)
{
    const solver *s = arg;
    move(s, s->halo[fine]);
}

static void edges(void *arg)
{
    const solver *s = arg;
    for (size_t i = 0; i < s->edge->local_count; i++)
        memset(s->edge->grids[i].data, 0, TILE * sizeof(double));
    move(s, s->edges);
}

static void most(void *arg, int64_t *values, int count)
{
    const solver *s = arg;
    bench_check(s->f, ferry_allreduce(s->f, FERRY_INT64, FERRY_MAX, values, values, (size_t)count));
}

static double sum(void *arg, double value)
{
    const solver *s = arg;
    bench_check(s->f, ferry_allreduce(s->f, FERRY_DOUBLE, FERRY_SUM, &value, &value, 1));
    return value;
}

/* What is made anew at each change; the fine blocks' values are needed longer. */
static void free_levels(solver *s)
{
    bench_check(s->f, ferry_mover_free(s->halo[1]));
    bench_check(s->f, ferry_mover_free(s->edges));
    ferry_xarray_destroy(s->edge);
}

static void point_at_grids(solver *s)
{
    bench_amr *a = &s->app;
    size_t tile = 0, fine = 0, edge = 0;
    for (int t = 0; t < a->n * a->n; t++) {
        const bool here = a->owner[t] == a->rank;
        a->coarse[t] = here ? s->coarse->grids[tile++].data : NULL;
        a->blocks[t] = here && a->fine[t] ? s->fine->grids[fine++].data : NULL;
        for (int d = 0; d < 2; d++)
            a->edge[d][t] = here && !a->fine[t] && a->fine[bench_amr_beside(a, t, d, -1)]
                                ? s->edge->grids[edge++].data
                                : NULL;
    }
}

/* The grid of a fine block that shall be here: what it was, or a new one. */
static ferry_grid grid_of(const solver *s, int t)
{
    ferry_region region = ferry_region_refine(s->tiles.blocks[t].region, ferry_point_all(2));
    ferry_grid grid = ferry_grid_over(ferry_region_grow(region, ferry_point_all(1)), sizeof(double),
                                      s->app.blocks[t]);
    if (!grid.data)
        grid.data = bench_memory((size_t)ferry_region_size(grid.region), sizeof(double));
    return grid;
}

/* The xarray of fine blocks that there shall be. Those that stay are where they were. `numbers`
 * gets the number of each tile's block. */
static ferry_xarray *next_fine(const solver *s, const int *owner, const char *fine,
                               int32_t *numbers)
{
    const bench_amr *a = &s->app;
    const size_t count = (size_t)(a->n * a->n);
    ferry_floorplan blocks = {.dims = 2};
    ferry_grid *grids = calloc(count, sizeof *grids);
    size_t here = 0;
    if (!grids)
        exit(1);
    for (int t = 0; t < (int)count; t++) {
        numbers[t] = (int32_t)blocks.count;
        if (!fine[t])
            continue;
        bench_check(s->f,
                    ferry_floorplan_add(
                        &blocks, ferry_region_refine(s->tiles.blocks[t].region, ferry_point_all(2)),
                        owner[t]));
        if (owner[t] == a->rank)
            grids[here++] = grid_of(s, t);
    }
    ferry_xarray *next;
    bench_check(s->f, ferry_xarray_create_over(s->f, &blocks, sizeof(double), ferry_point_all(1),
                                               grids, &next));
    ferry_floorplan_fini(&blocks);
    free(grids);
    return next;
}

/* Brings fine blocks that there were and shall be to their new owners. */
static void carry(const solver *s, ferry_xarray *next, const int *owner, const char *fine,
                  const int32_t *numbers)
{
    const bench_amr *a = &s->app;
    ferry_plan plan = {0};
    bool any = false;
    for (int t = 0; t < a->n * a->n; t++) {
        if (!a->fine[t] || !fine[t] || owner[t] == a->owner[t])
            continue;
        ferry_region region = next->blocks.blocks[numbers[t]].region;
        any = true;
        if (owner[t] == a->rank || a->owner[t] == a->rank)
            bench_check(s->f, ferry_plan_copy(&plan, numbers[t], region, s->block_of[t], region));
    }
    if (!any)
        return;
    ferry_mover *m = bind(s, &plan, s->fine, next, FERRY_COMBINE_COPY);
    move(s, m);
    bench_check(s->f, ferry_mover_free(m));
}

static void change(void *arg, const int *owner, const char *fine)
{
    solver *s = arg;
    bench_amr *a = &s->app;
    const size_t count = (size_t)(a->n * a->n);
    int32_t *numbers = calloc(count, sizeof *numbers);
    if (!numbers)
        exit(1);
    ferry_xarray *next = next_fine(s, owner, fine, numbers);
    if (s->fine) {
        free_levels(s);
        carry(s, next, owner, fine, numbers);
    }
    for (size_t t = 0; t < count; t++)
        if (a->blocks[t] && !(fine[t] && owner[t] == a->rank))
            free(a->blocks[t]);
    ferry_xarray_destroy(s->fine);
    s->fine = next;
    if (memcmp(owner, a->owner, count * sizeof *owner) != 0)
        bench_check(s->f, ferry_xarray_remap(s->coarse, owner));
    memmove(a->owner, owner, count * sizeof *owner);
    memcpy(a->fine, fine, count);
    memcpy(s->block_of, numbers, count * sizeof *numbers);
    free(numbers);
    s->halo[1] = bind_halo(s, s->fine, a->n * BENCH_AMR_FINE);
    bind_edges(s);
    point_at_grids(s);
}

static void solver_init(solver *s, int n)
{
    const int64_t cells = (int64_t)n * TILE;
    bench_amr_init(&s->app, n);
    s->block_of = calloc((size_t)(n * n), sizeof *s->block_of);
    if (!s->block_of)
        exit(1);
    bench_check(s->f, ferry_floorplan_tile(ferry_region_sized(2, (int64_t[]){cells, cells}),
                                           ferry_point_all(TILE), &s->tiles));
    for (int t = 0; t < n * n; t++)
        s->tiles.blocks[t].owner = s->app.owner[t];
    s->coarse = array(s, &s->tiles, 1);
    s->halo[0] = bind_halo(s, s->coarse, cells);
    for (size_t i = 0; i < s->coarse->local_count; i++)
        s->app.coarse[s->coarse->local[i]] = s->coarse->grids[i].data;
}

static void solver_fini(solver *s)
{
    free_levels(s);
    bench_check(s->f, ferry_mover_free(s->halo[0]));
    ferry_xarray_destroy(s->coarse);
    for (size_t i = 0; i < s->fine->local_count; i++)
        free(s->fine->grids[i].data);
    ferry_xarray_destroy(s->fine);
    ferry_floorplan_fini(&s->tiles);
    free(s->block_of);
    bench_amr_fini(&s->app);
}

double bench_mover_amr(void *context, const bench_job *job)
{
    solver s = {.f = *(ferry **)context};
    s.app = (bench_amr){.rank = ferry_rank(s.f),
                        .ranks = ferry_ranks(s.f),
                        .halo = halo,
                        .edges = edges,
                        .most = most,
                        .sum = sum,
                        .change = change,
                        .arg = &s};
    solver_init(&s, (int)job->size_bytes);
    double ns = bench_amr_run(&s.app, job);
    solver_fini(&s);
    return ns;
}
