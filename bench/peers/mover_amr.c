/* Ferry's side of AMR. Each level is an xarray over the program's memory, as the peer's blocks are,
 * and a new one when its blocks change. The blocks that stay are where they were, and a mover
 * brings the others. */
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
    check(s->f, ferry_mover_start(m, NULL));
    check(s->f, ferry_mover_wait(m));
}

static ferry_mover *bind(const solver *s, ferry_plan *plan, ferry_xarray *from, ferry_xarray *to,
                         ferry_reduction how)
{
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    ferry_mover *m;
    options.operation.reduction = how;
    check(s->f, ferry_mover_bind(s->f, plan, from, to, &options, &m));
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
    check(s->f, ferry_plan_halo(&plan, &x->blocks, &halo, ferry_rank(s->f)));
    return bind(s, &plan, x, x, FERRY_REPLACE);
}

static ferry_xarray *array(const solver *s, const ferry_floorplan *blocks, int64_t ghosts)
{
    ferry_xarray *x;
    check(s->f, ferry_xarray_create(s->f, blocks, sizeof(double), ferry_point_all(ghosts), &x));
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
        check(s->f, ferry_floorplan_add(&beside, entry.to, a->owner[t]));
        if (a->owner[t] == a->rank || a->owner[from] == a->rank)
            check(s->f, ferry_plan_add(&plan, &entry));
    }
    s->edge = array(s, &beside, 0);
    s->edges = bind(s, &plan, s->fine, s->edge, FERRY_SUM);
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
    check(s->f, ferry_allreduce(s->f, FERRY_INT64, FERRY_MAX, values, values, (size_t)count));
}

static double sum(void *arg, double value)
{
    const solver *s = arg;
    check(s->f, ferry_allreduce(s->f, FERRY_DOUBLE, FERRY_SUM, &value, &value, 1));
    return value;
}

/* Frees what is made anew at each change; the fine blocks' values are needed longer. */
static void free_levels(solver *s)
{
    check(s->f, ferry_mover_free(s->halo[1]));
    check(s->f, ferry_mover_free(s->edges));
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

static ferry_region region_of(const solver *s, int t, bool fine)
{
    const ferry_region tile = s->tiles.blocks[t].region;
    return fine ? ferry_region_refine(tile, ferry_point_all(2)) : tile;
}

/* The grid of a block that shall be here: what it was, or a new one. */
static ferry_grid grid_of(const solver *s, int t, bool fine)
{
    const ferry_region region = ferry_region_grow(region_of(s, t, fine), ferry_point_all(1));
    double *data = fine ? s->app.blocks[t] : s->app.coarse[t];
    if (!data)
        data = bench_memory((size_t)ferry_region_size(region), sizeof *data);
    return ferry_grid_over(region, sizeof *data, data);
}

/* The xarray of a level's blocks that there shall be, `has` NULL: all. Those that stay are where
 * they were. `numbers` gets the number of each tile's block. */
static ferry_xarray *next_level(const solver *s, bool fine, const int *owner, const char *has,
                                int32_t *numbers)
{
    const bench_amr *a = &s->app;
    const int count = a->n * a->n;
    ferry_floorplan blocks = {.dims = 2};
    ferry_grid *grids = bench_memory((size_t)count, sizeof *grids);
    size_t here = 0;
    for (int t = 0; t < count; t++) {
        numbers[t] = (int32_t)blocks.count;
        if (has && !has[t])
            continue;
        check(s->f, ferry_floorplan_add(&blocks, region_of(s, t, fine), owner[t]));
        if (owner[t] == a->rank)
            grids[here++] = grid_of(s, t, fine);
    }
    ferry_xarray *next;
    check(s->f, ferry_xarray_create_over(s->f, &blocks, sizeof(double), ferry_point_all(1), grids,
                                         &next));
    ferry_floorplan_fini(&blocks);
    free(grids);
    return next;
}

/* Brings blocks that there were and shall be to their new owners; `from` and `to` are the numbers
 * of tiles' blocks, before and after. */
static void carry(const solver *s, bool fine, ferry_xarray *next, const int *owner, const char *has,
                  const int32_t *to)
{
    const bench_amr *a = &s->app;
    const int32_t *from = fine ? s->block_of : to;
    ferry_plan plan = {0};
    bool any = false;
    for (int t = 0; t < a->n * a->n; t++) {
        if ((fine && !(a->fine[t] && has[t])) || owner[t] == a->owner[t])
            continue;
        const ferry_region region = region_of(s, t, fine);
        any = true;
        if (owner[t] == a->rank || a->owner[t] == a->rank)
            check(s->f, ferry_plan_copy(&plan, to[t], region, from[t], region));
    }
    if (!any)
        return;
    ferry_mover *m = bind(s, &plan, fine ? s->fine : s->coarse, next, FERRY_REPLACE);
    move(s, m);
    check(s->f, ferry_mover_free(m));
}

/* Frees blocks that are here no more. */
static void drop_blocks(const solver *s, double **blocks, const int *owner, const char *has)
{
    for (int t = 0; t < s->app.n * s->app.n; t++)
        if (blocks[t] && (owner[t] != s->app.rank || (has && !has[t])))
            free(blocks[t]);
}

/* Tiles to new owners. */
static void change_tiles(solver *s, const int *owner)
{
    const bench_amr *a = &s->app;
    int32_t *numbers = bench_memory((size_t)(a->n * a->n), sizeof *numbers);
    ferry_xarray *next = next_level(s, false, owner, NULL, numbers);
    check(s->f, ferry_mover_free(s->halo[0]));
    carry(s, false, next, owner, NULL, numbers);
    drop_blocks(s, s->app.coarse, owner, NULL);
    ferry_xarray_destroy(s->coarse);
    s->coarse = next;
    s->halo[0] = bind_halo(s, s->coarse, a->n * TILE);
    free(numbers);
}

static void change(void *arg, const int *owner, const char *fine)
{
    solver *s = arg;
    bench_amr *a = &s->app;
    const size_t count = (size_t)(a->n * a->n);
    int32_t *numbers = bench_memory(count, sizeof *numbers);
    ferry_xarray *next = next_level(s, true, owner, fine, numbers);
    if (s->fine) {
        free_levels(s);
        carry(s, true, next, owner, fine, numbers);
    }
    drop_blocks(s, a->blocks, owner, fine);
    ferry_xarray_destroy(s->fine);
    s->fine = next;
    if (memcmp(owner, a->owner, count * sizeof *owner) != 0)
        change_tiles(s, owner);
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
    s->block_of = bench_memory((size_t)(n * n), sizeof *s->block_of);
    check(s->f, ferry_floorplan_tile(ferry_region_sized(2, (int64_t[]){cells, cells}),
                                     ferry_point_all(TILE), &s->tiles));
    s->coarse = next_level(s, false, s->app.owner, NULL, s->block_of);
    s->halo[0] = bind_halo(s, s->coarse, cells);
    for (size_t i = 0; i < s->coarse->local_count; i++)
        s->app.coarse[s->coarse->local[i]] = s->coarse->grids[i].data;
}

static void free_level(ferry_xarray *level)
{
    for (size_t i = 0; i < level->local_count; i++)
        free(level->grids[i].data);
    ferry_xarray_destroy(level);
}

static void solver_fini(solver *s)
{
    free_levels(s);
    check(s->f, ferry_mover_free(s->halo[0]));
    free_level(s->coarse);
    free_level(s->fine);
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
