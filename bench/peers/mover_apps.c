/* Ferry's side of the programs: arrays are xarrays, exchanges are movers. */
#include "peers/mover_apps.h"

#include <ferry/ferry.h>
#include <ferry/mover.h>

#include <stdio.h>
#include <stdlib.h>

#include "peers/mover_side.h"

static ferry_floorplan slabs(ferry *f, int dims, const int64_t *extents)
{
    ferry_floorplan blocks;
    ferry_point parts = ferry_point_all(1);
    parts.at[0] = ferry_ranks(f);
    check(f, ferry_floorplan_cut(ferry_region_sized(dims, extents), parts, &blocks));
    check(f, ferry_floorplan_map_block(&blocks, ferry_ranks(f)));
    return blocks;
}

static ferry_xarray *array(ferry *f, const ferry_floorplan *blocks, size_t bytes, int64_t ghosts)
{
    ferry_xarray *x;
    check(f, ferry_xarray_create(f, blocks, bytes, ferry_point_all(ghosts), &x));
    return x;
}

static ferry_mover *bind(ferry *f, ferry_plan *plan, ferry_xarray *from, ferry_xarray *to)
{
    ferry_mover *m;
    check(f, ferry_mover_bind(f, plan, from, to, NULL, &m));
    ferry_plan_fini(plan);
    return m;
}

static ferry_mover *bind_halo(ferry *f, ferry_xarray *x, bool periodic)
{
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_plan plan = {0};
    for (size_t i = 0; i < x->blocks.count; i++)
        halo.domain = ferry_region_bound(halo.domain, x->blocks.blocks[i].region);
    halo.low = halo.high = ferry_point_all(1);
    halo.faces_only = !periodic;
    halo.periodic[0] = halo.periodic[1] = halo.periodic[2] = periodic;
    check(f, ferry_plan_halo(&plan, &x->blocks, &halo, ferry_rank(f)));
    return bind(f, &plan, x, x);
}

static void move(ferry *f, ferry_mover *m)
{
    check(f, ferry_mover_start(m, NULL));
    check(f, ferry_mover_wait(m));
}

/* The one block of this rank, with its ghosts. */
static bench_slab slab_of(const ferry_xarray *x)
{
    bench_slab s = {.data = x->grids[0].data};
    for (int d = 0; d < 3; d++)
        s.n[d] = (size_t)ferry_region_extent(x->blocks.blocks[x->local[0]].region, d);
    return s;
}

static double sum_of(void *arg, double value)
{
    check(arg, ferry_allreduce(arg, FERRY_DOUBLE, FERRY_SUM, &value, &value, 1));
    return value;
}

/* Red-black. */

typedef struct redblack {
    bench_redblack app;
    ferry *f;
    ferry_mover *mover;
} redblack;

static void redblack_halo(void *arg)
{
    redblack *r = arg;
    move(r->f, r->mover);
}

static double redblack_sum(void *arg, double value)
{
    redblack *r = arg;
    return sum_of(r->f, value);
}

static void redblack_sweep(void *arg)
{
    redblack *r = arg;
    bench_redblack_sweep(&r->app);
}

double bench_mover_redblack(void *context, const bench_job *job)
{
    redblack r = {.f = *(ferry **)context};
    const int64_t n = (int64_t)job->size_bytes, extents[3] = {n, n, n};
    ferry_floorplan blocks = slabs(r.f, 3, extents);
    ferry_xarray *u = array(r.f, &blocks, sizeof(double), 1);
    ferry_xarray *rhs = array(r.f, &blocks, sizeof(double), 1);
    r.mover = bind_halo(r.f, u, false);
    r.app = (bench_redblack){.u = slab_of(u),
                             .rhs = slab_of(rhs),
                             .first = (size_t)blocks.blocks[ferry_rank(r.f)].region.low.at[0],
                             .halo = redblack_halo,
                             .sum = redblack_sum,
                             .arg = &r};
    bench_redblack_fill(&r.app);
    if (bench_first_time(job) && !bench_redblack_check(&r.app))
        bench_wrong("red-black");
    double ns = bench_repeat(job, redblack_sweep, &r);
    check(r.f, ferry_mover_free(r.mover));
    ferry_xarray_destroy(u);
    ferry_xarray_destroy(rhs);
    ferry_floorplan_fini(&blocks);
    return ns;
}

/* MG. */

typedef struct mg {
    bench_mg app;
    ferry *f;
    ferry_xarray *v, *arrays[2][BENCH_MG_LEVELS];
    ferry_mover *movers[2][BENCH_MG_LEVELS];
} mg;

static void mg_halo(void *arg, bench_mg_array which, int level)
{
    mg *m = arg;
    move(m->f, m->movers[which][level]);
}

static double mg_sum(void *arg, double value)
{
    mg *m = arg;
    return sum_of(m->f, value);
}

static void mg_cycle(void *arg)
{
    mg *m = arg;
    bench_mg_cycle(&m->app);
}

static void mg_init(mg *m, ferry *f, int top)
{
    *m = (mg){.f = f};
    m->app = (bench_mg){.top = top, .halo = mg_halo, .sum = mg_sum, .arg = m};
    for (int k = 1; k <= top; k++) {
        const int64_t n = INT64_C(1) << k, extents[3] = {n, n, n};
        ferry_floorplan blocks = slabs(f, 3, extents);
        for (int which = 0; which < 2; which++) {
            m->arrays[which][k] = array(f, &blocks, sizeof(double), 1);
            m->movers[which][k] = bind_halo(f, m->arrays[which][k], true);
        }
        if (k == top)
            m->v = array(f, &blocks, sizeof(double), 1);
        m->app.first = (size_t)blocks.blocks[ferry_rank(f)].region.low.at[0];
        m->app.u[k] = slab_of(m->arrays[BENCH_MG_U][k]);
        m->app.r[k] = slab_of(m->arrays[BENCH_MG_R][k]);
        ferry_floorplan_fini(&blocks);
    }
    m->app.v = slab_of(m->v);
    m->app.rows = calloc(2 * (((size_t)1 << top) + 2), sizeof(double));
    if (!m->app.rows)
        exit(1);
}

double bench_mover_mg(void *context, const bench_job *job)
{
    mg m;
    mg_init(&m, *(ferry **)context, bench_mg_top(job->size_bytes));
    if (!bench_first_time(job))
        bench_mg_begin(&m.app);
    else if (!bench_mg_check(&m.app))
        bench_wrong("MG");
    double ns = bench_repeat(job, mg_cycle, &m);
    for (int k = 1; k <= m.app.top; k++)
        for (int which = 0; which < 2; which++) {
            check(m.f, ferry_mover_free(m.movers[which][k]));
            ferry_xarray_destroy(m.arrays[which][k]);
        }
    ferry_xarray_destroy(m.v);
    free(m.app.rows);
    return ns;
}

/* FT. */

typedef struct ft {
    bench_ft app;
    ferry *f;
    ferry_mover *out, *back;
} ft;

static void ft_turn(void *arg, bool back)
{
    ft *t = arg;
    move(t->f, back ? t->back : t->out);
}

static double ft_sum(void *arg, double value)
{
    ft *t = arg;
    return sum_of(t->f, value);
}

static void ft_step(void *arg)
{
    ft *t = arg;
    bench_ft_step(&t->app);
}

static ferry_mover *bind_turning(ferry *f, ferry_xarray *from, ferry_xarray *to)
{
    ferry_intersection intersection = FERRY_INTERSECTION_DEFAULTS;
    ferry_plan plan = {0};
    intersection.permuted = true;
    for (int d = 0; d < 3; d++)
        intersection.axis[d] = (int8_t)(2 - d);
    check(f, ferry_plan_intersect(&plan, &from->blocks, &to->blocks, &intersection, ferry_rank(f)));
    return bind(f, &plan, from, to);
}

double bench_mover_ft(void *context, const bench_job *job)
{
    ft t = {.f = *(ferry **)context};
    t.app = (bench_ft){.rank = ferry_rank(t.f),
                       .ranks = ferry_ranks(t.f),
                       .turn = ft_turn,
                       .sum = ft_sum,
                       .arg = &t};
    if (!bench_ft_extents(job->size_bytes, &t.app))
        exit(1);
    const int64_t nx = (int64_t)t.app.nx, ny = (int64_t)t.app.ny, nz = (int64_t)t.app.nz;
    ferry_floorplan along_z = slabs(t.f, 3, (int64_t[]){nz, ny, nx});
    ferry_floorplan along_x = slabs(t.f, 3, (int64_t[]){nx, ny, nz});
    ferry_xarray *space = array(t.f, &along_z, sizeof(bench_number), 0);
    ferry_xarray *turned = array(t.f, &along_x, sizeof(bench_number), 0);
    t.out = bind_turning(t.f, space, turned);
    t.back = bind_turning(t.f, turned, space);
    bench_ft_memory(&t.app, space->grids[0].data, turned->grids[0].data);
    if (!bench_first_time(job))
        bench_ft_begin(&t.app);
    else if (!bench_ft_check(&t.app))
        bench_wrong("FT");
    double ns = bench_repeat(job, ft_step, &t);
    check(t.f, ferry_mover_free(t.out));
    check(t.f, ferry_mover_free(t.back));
    ferry_xarray_destroy(space);
    ferry_xarray_destroy(turned);
    ferry_floorplan_fini(&along_z);
    ferry_floorplan_fini(&along_x);
    bench_ft_release(&t.app);
    return ns;
}

/* SUMMA. */

typedef struct summa {
    bench_summa app;
    ferry *f;
    ferry_xarray *rows, *panels[2];
    ferry_mover **movers;
} summa;

static void summa_start(void *arg, size_t step)
{
    summa *s = arg;
    check(s->f, ferry_mover_start(s->movers[step], NULL));
}

static void summa_wait(void *arg, size_t step)
{
    summa *s = arg;
    check(s->f, ferry_mover_wait(s->movers[step]));
}

static void summa_multiply(void *arg)
{
    summa *s = arg;
    bench_summa_multiply(&s->app);
}

/* Copies within a rank are left out: it multiplies with its own rows where they are. */
static bool travels(void *arg, const ferry_plan_entry *copy)
{
    const summa *s = arg;
    return s->rows->blocks.blocks[copy->source].owner !=
           s->panels[0]->blocks.blocks[copy->target].owner;
}

static void bind_steps(summa *s)
{
    const int64_t n = (int64_t)s->app.n, panel = (int64_t)s->app.panel;
    ferry_floorplan copies = {.dims = 2};
    for (int rank = 0; rank < ferry_ranks(s->f); rank++)
        check(s->f,
              ferry_floorplan_add(&copies, ferry_region_sized(2, (int64_t[]){panel, n}), rank));
    for (int i = 0; i < 2; i++) {
        s->panels[i] = array(s->f, &copies, sizeof(double), 0);
        s->app.panels[i] = s->panels[i]->grids[0].data;
    }
    s->movers = calloc((size_t)(n / panel), sizeof(ferry_mover *));
    if (!s->movers)
        exit(1);
    for (int64_t k = 0; k < n / panel; k++) {
        ferry_intersection intersection = FERRY_INTERSECTION_DEFAULTS;
        ferry_plan plan = {0};
        intersection.shift.at[0] = k * panel;
        check(s->f, ferry_plan_intersect(&plan, &s->rows->blocks, &copies, &intersection,
                                         ferry_rank(s->f)));
        ferry_plan_filter(&plan, travels, s);
        s->movers[k] = bind(s->f, &plan, s->rows, s->panels[k % 2]);
    }
    ferry_floorplan_fini(&copies);
}

double bench_mover_summa(void *context, const bench_job *job)
{
    summa s = {.f = *(ferry **)context};
    const int64_t n = (int64_t)job->size_bytes;
    ferry_floorplan blocks = slabs(s.f, 2, (int64_t[]){n, n});
    ferry_xarray *a = array(s.f, &blocks, sizeof(double), 0);
    ferry_xarray *c = array(s.f, &blocks, sizeof(double), 0);
    s.rows = array(s.f, &blocks, sizeof(double), 0);
    s.app = (bench_summa){.n = job->size_bytes,
                          .panel = BENCH_SUMMA_PANEL,
                          .part = job->size_bytes / (size_t)ferry_ranks(s.f),
                          .rank = ferry_rank(s.f),
                          .a = a->grids[0].data,
                          .b = s.rows->grids[0].data,
                          .c = c->grids[0].data,
                          .start = summa_start,
                          .wait = summa_wait,
                          .arg = &s};
    bind_steps(&s);
    bench_summa_fill(&s.app);
    if (bench_first_time(job) && !bench_summa_check(&s.app))
        bench_wrong("SUMMA");
    double ns = bench_repeat(job, summa_multiply, &s);
    for (int64_t k = 0; k < n / BENCH_SUMMA_PANEL; k++)
        check(s.f, ferry_mover_free(s.movers[k]));
    free(s.movers);
    ferry_xarray *arrays[] = {a, c, s.rows, s.panels[0], s.panels[1]};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        ferry_xarray_destroy(arrays[i]);
    ferry_floorplan_fini(&blocks);
    return ns;
}
