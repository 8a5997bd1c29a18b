/* MPI's side of the programs, by hand. Contiguous data is sent from where it lies. Inner planes are
 * wrapped round, and the next panel travels, while messages are in flight. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/mover_apps.h"
#include "peers/mover_mpi_side.h"

static double sum_of(void *arg, double value)
{
    (void)arg;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

static bench_slab slab(size_t part, size_t n)
{
    bench_slab s = {.n = {part, n, n}};
    s.data = bench_memory(bench_slab_size(&s), sizeof(double));
    return s;
}

static size_t plane_of(const bench_slab *s)
{
    return (s->n[1] + 2) * (s->n[2] + 2);
}

/* Exchanges the outermost planes, whole, with the ranks on both sides; either may be
 * MPI_PROC_NULL. */
static void planes_start(const bench_slab *s, int below, int above, MPI_Request requests[4])
{
    const int count = (int)plane_of(s);
    MPI_Irecv(bench_slab_at(s, 0, 0, 0), count, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(bench_slab_at(s, s->n[0] + 1, 0, 0), count, MPI_DOUBLE, above, 2, MPI_COMM_WORLD,
              &requests[1]);
    MPI_Isend(bench_slab_at(s, s->n[0], 0, 0), count, MPI_DOUBLE, above, 1, MPI_COMM_WORLD,
              &requests[2]);
    MPI_Isend(bench_slab_at(s, 1, 0, 0), count, MPI_DOUBLE, below, 2, MPI_COMM_WORLD, &requests[3]);
}

static void planes_wait(MPI_Request requests[4])
{
    MPI_Status statuses[4];
    MPI_Waitall(4, requests, statuses);
}

/* Red-black. */

typedef struct redblack {
    bench_redblack app;
    int below, above;
} redblack;

static void redblack_halo(void *arg)
{
    redblack *r = arg;
    MPI_Request requests[4];
    planes_start(&r->app.u, r->below, r->above, requests);
    planes_wait(requests);
}

static void redblack_sweep(void *arg)
{
    redblack *r = arg;
    bench_redblack_sweep(&r->app);
}

double bench_mpi_redblack(void *context, const bench_job *job)
{
    const bench_mpi_state *s = context;
    const size_t n = (size_t)job->size_bytes, part = n / (size_t)s->ranks;
    redblack r = {.below = s->rank > 0 ? s->rank - 1 : MPI_PROC_NULL,
                  .above = s->rank + 1 < s->ranks ? s->rank + 1 : MPI_PROC_NULL};
    r.app = (bench_redblack){.u = slab(part, n),
                             .rhs = slab(part, n),
                             .first = (size_t)s->rank * part,
                             .halo = redblack_halo,
                             .sum = sum_of,
                             .arg = &r};
    bench_redblack_fill(&r.app);
    if (bench_first_time(job) && !bench_redblack_check(&r.app))
        bench_wrong("red-black");
    double ns = bench_repeat(job, redblack_sweep, &r);
    free(r.app.u.data);
    free(r.app.rhs.data);
    return ns;
}

/* MG. */

typedef struct mg {
    bench_mg app;
    int below, above;
} mg;

/* The second and third dimension of a plane, corners too. */
static void wrap(const bench_slab *s, size_t i)
{
    for (size_t j = 1; j <= s->n[1]; j++) {
        double *row = bench_slab_at(s, i, j, 0);
        row[0] = row[s->n[2]];
        row[s->n[2] + 1] = row[1];
    }
    const size_t bytes = (s->n[2] + 2) * sizeof(double);
    memcpy(bench_slab_at(s, i, 0, 0), bench_slab_at(s, i, s->n[1], 0), bytes);
    memcpy(bench_slab_at(s, i, s->n[1] + 1, 0), bench_slab_at(s, i, 1, 0), bytes);
}

static void mg_halo(void *arg, bench_mg_array which, int level)
{
    mg *m = arg;
    const bench_slab *s = which == BENCH_MG_U ? &m->app.u[level] : &m->app.r[level];
    MPI_Request requests[4];
    wrap(s, 1);
    if (s->n[0] > 1)
        wrap(s, s->n[0]);
    planes_start(s, m->below, m->above, requests);
    for (size_t i = 2; i < s->n[0]; i++)
        wrap(s, i);
    planes_wait(requests);
}

static void mg_cycle(void *arg)
{
    mg *m = arg;
    bench_mg_cycle(&m->app);
}

double bench_mpi_mg(void *context, const bench_job *job)
{
    const bench_mpi_state *s = context;
    const size_t part = (size_t)job->size_bytes / (size_t)s->ranks;
    mg m = {.below = (s->rank + s->ranks - 1) % s->ranks, .above = (s->rank + 1) % s->ranks};
    m.app = (bench_mg){.top = bench_mg_top(job->size_bytes),
                       .v = slab(part, (size_t)job->size_bytes),
                       .rows = bench_memory(2 * (job->size_bytes + 2), sizeof(double)),
                       .first = part * (size_t)s->rank,
                       .halo = mg_halo,
                       .sum = sum_of,
                       .arg = &m};
    for (int k = 1; k <= m.app.top; k++) {
        m.app.u[k] = slab(((size_t)1 << k) / (size_t)s->ranks, (size_t)1 << k);
        m.app.r[k] = slab(((size_t)1 << k) / (size_t)s->ranks, (size_t)1 << k);
    }
    if (!bench_first_time(job))
        bench_mg_begin(&m.app);
    else if (!bench_mg_check(&m.app))
        bench_wrong("MG");
    double ns = bench_repeat(job, mg_cycle, &m);
    for (int k = 1; k <= m.app.top; k++) {
        free(m.app.u[k].data);
        free(m.app.r[k].data);
    }
    free(m.app.v.data);
    free(m.app.rows);
    return ns;
}

/* FT: packed and transposed in tiles, one message per pair, rows put together. */

typedef struct ft {
    bench_ft app;
    bench_number *out, *in;
    size_t share;
} ft;

enum { TILE = 8 };

/* From (a, y, b) with a in slabs of `part` to (b, y, a) with b in slabs. */
static void turn(ft *t, const bench_number *from, bench_number *to, size_t a, size_t b)
{
    const size_t ranks = (size_t)t->app.ranks, ny = t->app.ny, part = a / ranks;
    for (size_t bb = 0; bb < b; bb += TILE)
        for (size_t y = 0; y < ny; y++)
            for (size_t aa = 0; aa < part; aa += TILE)
                for (size_t j = bb; j < bb + TILE; j++)
                    for (size_t i = aa; i < aa + TILE && i < part; i++)
                        t->out[(j * ny + y) * part + i] = from[(i * ny + y) * b + j];
    const int count = (int)(2 * t->share / ranks);
    MPI_Alltoall(t->out, count, MPI_DOUBLE, t->in, count, MPI_DOUBLE, MPI_COMM_WORLD);
    const size_t rows = b / ranks * ny;
    for (size_t r = 0; r < ranks; r++)
        for (size_t row = 0; row < rows; row++)
            memcpy(to + row * a + r * part, t->in + (r * rows + row) * part,
                   part * sizeof(bench_number));
}

static void ft_turn(void *arg, bool back)
{
    ft *t = arg;
    if (back)
        turn(t, t->app.turned, t->app.space, t->app.nx, t->app.nz);
    else
        turn(t, t->app.space, t->app.turned, t->app.nz, t->app.nx);
}

static void ft_step(void *arg)
{
    ft *t = arg;
    bench_ft_step(&t->app);
}

double bench_mpi_ft(void *context, const bench_job *job)
{
    const bench_mpi_state *s = context;
    ft t = {0};
    t.app =
        (bench_ft){.rank = s->rank, .ranks = s->ranks, .turn = ft_turn, .sum = sum_of, .arg = &t};
    if (!bench_ft_extents(job->size_bytes, &t.app))
        exit(1);
    t.share = t.app.nx * t.app.ny * t.app.nz / (size_t)s->ranks;
    bench_number *all = bench_memory(4 * t.share, sizeof *all);
    t.out = all + 2 * t.share;
    t.in = all + 3 * t.share;
    bench_ft_memory(&t.app, all, all + t.share);
    if (!bench_first_time(job))
        bench_ft_begin(&t.app);
    else if (!bench_ft_check(&t.app))
        bench_wrong("FT");
    double ns = bench_repeat(job, ft_step, &t);
    bench_ft_release(&t.app);
    free(all);
    return ns;
}

/* SUMMA: broadcasts of the next panel run while the present one is multiplied. */

typedef struct summa {
    bench_summa app;
    MPI_Request requests[2];
} summa;

static void summa_start(void *arg, size_t step)
{
    summa *s = arg;
    bench_summa *app = &s->app;
    size_t row = step * app->panel, owner = row / app->part;
    double *panel =
        owner == (size_t)app->rank ? app->b + row % app->part * app->n : app->panels[step % 2];
    MPI_Ibcast(panel, (int)(app->panel * app->n), MPI_DOUBLE, (int)owner, MPI_COMM_WORLD,
               &s->requests[step % 2]);
}

static void summa_wait(void *arg, size_t step)
{
    summa *s = arg;
    MPI_Status status;
    MPI_Wait(&s->requests[step % 2], &status);
}

static void summa_multiply(void *arg)
{
    summa *s = arg;
    bench_summa_multiply(&s->app);
}

double bench_mpi_summa(void *context, const bench_job *job)
{
    const bench_mpi_state *state = context;
    const size_t n = (size_t)job->size_bytes, part = n / (size_t)state->ranks;
    double *all = bench_memory(3 * part * n + 2 * BENCH_SUMMA_PANEL * n, sizeof *all);
    summa s = {0};
    s.app =
        (bench_summa){.n = n,
                      .panel = BENCH_SUMMA_PANEL,
                      .part = part,
                      .rank = state->rank,
                      .a = all,
                      .b = all + part * n,
                      .c = all + 2 * part * n,
                      .panels = {all + 3 * part * n, all + 3 * part * n + BENCH_SUMMA_PANEL * n},
                      .start = summa_start,
                      .wait = summa_wait,
                      .arg = &s};
    bench_summa_fill(&s.app);
    if (bench_first_time(job) && !bench_summa_check(&s.app))
        bench_wrong("SUMMA");
    double ns = bench_repeat(job, summa_multiply, &s);
    free(all);
    return ns;
}
