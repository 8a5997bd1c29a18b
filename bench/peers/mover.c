/* Ferry's movers: each problem of mover_work.h as a program would write it, plan and bind first,
 * then movement after movement. */
#include <ferry/ferry.h>
#include <ferry/mover.h>

#include "common/team.h"
#include "peers/mover_exposed.h"
#include "peers/mover_side.h"
#include "peers/mover_work.h"

#include <stdio.h>

typedef struct state {
    ferry *f;
} state;

/* A movement that goes on in the background. With one rank the thread may use the other core. */
typedef struct hidden {
    ferry *f;
    ferry_mover *m;
} hidden;

static void begin_hidden(void *arg)
{
    const hidden *h = arg;
    check(h->f, ferry_mover_start(h->m, NULL));
    if (ferry_ranks(h->f) == 1)
        bench_pin_not(0);
    check(h->f, ferry_background_begin(h->f));
    bench_pin(ferry_rank(h->f));
}

static void end_hidden(void *arg)
{
    const hidden *h = arg;
    check(h->f, ferry_background_end(h->f));
    check(h->f, ferry_mover_wait(h->m));
}

static double run(ferry *f, ferry_mover *m, uint64_t count, uint64_t warm)
{
    uint64_t start = 0;
    for (uint64_t i = 0; i < warm + count; i++) {
        if (i == warm)
            start = bench_now();
        check(f, ferry_mover_start(m, NULL));
        check(f, ferry_mover_wait(m));
    }
    return (double)(bench_now() - start);
}

static double halo_of(state *s, const bench_job *job, int edge)
{
    ferry *f = s->f;
    const int64_t n = (int64_t)job->size_bytes;
    const int64_t extents[3] = {n * edge * ferry_ranks(f), n * edge, n * edge};
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    halo.domain = ferry_region_sized(3, extents);
    halo.low = halo.high = ferry_point_all(1);
    halo.faces_only = true;
    halo.periodic[0] = halo.periodic[1] = halo.periodic[2] = true;
    ferry_floorplan blocks;
    ferry_xarray *x;
    ferry_plan plan = {0};
    ferry_mover *m;
    check(f, ferry_floorplan_tile(halo.domain, ferry_point_all(n), &blocks));
    check(f, ferry_floorplan_map_block(&blocks, ferry_ranks(f)));
    check(f, ferry_xarray_create(f, &blocks, sizeof(double), ferry_point_all(1), &x));
    check(f, ferry_plan_halo(&plan, &blocks, &halo, ferry_rank(f)));
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    options.deferred = job->kind != BENCH_HALO && job->kind != BENCH_HALO_8;
    check(f, ferry_mover_bind(f, &plan, x, x, &options, &m));
    double ns;
    if (options.deferred) {
        hidden h = {.f = f, .m = m};
        const exposed e = {.begin = begin_hidden,
                           .end = end_hidden,
                           .arg = &h,
                           .count = job->count,
                           .sleeps = job->kind == BENCH_EXPOSED_SLEEP};
        double mean = run(f, m, job->count, 2) / (double)job->count;
        check(f, ferry_allreduce(f, FERRY_DOUBLE, FERRY_MAX, &mean, &mean, 1));
        ns = exposed_percent(&e, mean);
    } else {
        ns = run(f, m, job->count, bench_warmup(job));
    }
    check(f, ferry_mover_free(m));
    ferry_plan_fini(&plan);
    ferry_xarray_destroy(x);
    ferry_floorplan_fini(&blocks);
    return ns;
}

static double halo(void *context, const bench_job *job)
{
    return halo_of(context, job, 1);
}

static double halo_8(void *context, const bench_job *job)
{
    return halo_of(context, job, 2);
}

/* A cube in slabs along `d`. */
static ferry_floorplan slabs(ferry *f, int64_t n, int d)
{
    const int64_t extents[3] = {n, n, n};
    ferry_floorplan blocks;
    ferry_point parts = ferry_point_all(1);
    parts.at[d] = ferry_ranks(f);
    check(f, ferry_floorplan_cut(ferry_region_sized(3, extents), parts, &blocks));
    check(f, ferry_floorplan_map_block(&blocks, ferry_ranks(f)));
    return blocks;
}

static double redistribute_to(state *s, const bench_job *job, int d, bool turned)
{
    ferry *f = s->f;
    const int64_t n = cube_edge(job->size_bytes);
    ferry_floorplan from = slabs(f, n, 0), to = slabs(f, n, d);
    ferry_intersection intersection = FERRY_INTERSECTION_DEFAULTS;
    intersection.permuted = turned;
    for (int i = 0; i < 3; i++)
        intersection.axis[i] = (int8_t)(2 - i);
    ferry_xarray *source, *target;
    ferry_plan plan = {0};
    ferry_mover *m;
    check(f, ferry_xarray_create(f, &from, sizeof(double), ferry_point_all(0), &source));
    check(f, ferry_xarray_create(f, &to, sizeof(double), ferry_point_all(0), &target));
    check(f, ferry_plan_intersect(&plan, &from, &to, &intersection, ferry_rank(f)));
    check(f, ferry_mover_bind(f, &plan, source, target, NULL, &m));
    double ns = run(f, m, job->count, bench_warmup(job));
    check(f, ferry_mover_free(m));
    ferry_plan_fini(&plan);
    ferry_xarray_destroy(source);
    ferry_xarray_destroy(target);
    ferry_floorplan_fini(&from);
    ferry_floorplan_fini(&to);
    return ns;
}

static double transpose(void *context, const bench_job *job)
{
    return redistribute_to(context, job, 0, true);
}

static double redistribute(void *context, const bench_job *job)
{
    return redistribute_to(context, job, 1, false);
}

static double start_wait(void *context, const bench_job *job)
{
    state *s = context;
    ferry_floorplan none = {.dims = 1};
    ferry_plan plan = {0};
    ferry_xarray *x;
    ferry_mover *m;
    check(s->f, ferry_xarray_create(s->f, &none, sizeof(double), ferry_point_all(0), &x));
    check(s->f, ferry_mover_bind(s->f, &plan, x, x, NULL, &m));
    double ns = run(s->f, m, job->count, bench_warmup(job));
    check(s->f, ferry_mover_free(m));
    ferry_xarray_destroy(x);
    return ns;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    state s = {.f = f};
    bench_board *board = bench_board_open();
    if (!board)
        return bench_team_empty(argc, argv) ? 0 : 1;
    bench_pin(ferry_rank(f));
    bench_team team = {.board = board, .rank = ferry_rank(f), .context = &s};
    team.kinds[BENCH_HALO] = halo;
    team.kinds[BENCH_HALO_8] = halo_8;
    team.kinds[BENCH_EXPOSED] = halo_8;
    team.kinds[BENCH_EXPOSED_SLEEP] = halo_8;
    team.kinds[BENCH_TRANSPOSE] = transpose;
    team.kinds[BENCH_REDISTRIBUTE] = redistribute;
    team.kinds[BENCH_START_WAIT] = start_wait;
    team.kinds[BENCH_REDBLACK] = bench_mover_redblack;
    team.kinds[BENCH_MG] = bench_mover_mg;
    team.kinds[BENCH_FT] = bench_mover_ft;
    team.kinds[BENCH_SUMMA] = bench_mover_summa;
    team.kinds[BENCH_PLAN] = team.kinds[BENCH_PLAN_SHARE] = bench_mover_plan;
    team.kinds[BENCH_PLAN_MEMORY] = bench_mover_plan;
    team.kinds[BENCH_AMR] = bench_mover_amr;
#ifdef BENCH_MESHES
    team.kinds[BENCH_LAPLACE] = bench_mover_laplace;
#endif
    bench_team_serve(&team);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
