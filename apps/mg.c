/* The NAS benchmark MG: V-cycles of multigrid for the Poisson equation on a periodic cube.
 *
 *   ferry run -n 4 build/apps/mg S|W|A|B
 *
 * Each level has a decomposition of its own, of fewer blocks where there are few points. Between
 * levels each block of the finer one works on its own coarse points, `between`, and movers carry
 * those to and from the blocks of the coarser one. Prints the norm of the residual and whether it
 * is the published one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "common/check.h"
#include "common/cost.h"
#include "common/parameters.h"
#include <ferry/mover.h>

enum { LEVELS_MAX = 12, EXTREMES = 10 };

typedef struct problem {
    char name;
    int levels; /* 2^levels points along an edge */
    int cycles;
    double centre, face, edge; /* weights of the smoother */
    double norm;               /* NAS Parallel Benchmarks, MG */
} problem;

static const problem problems[] = {
    {'S', 5, 4, -3.0 / 8, 1.0 / 32, -1.0 / 64, 0.5307707005734e-04},
    {'W', 7, 4, -3.0 / 8, 1.0 / 32, -1.0 / 64, 0.6467329375339e-05},
    {'A', 8, 4, -3.0 / 8, 1.0 / 32, -1.0 / 64, 0.2433365309069e-05},
    {'B', 8, 20, -3.0 / 17, 1.0 / 33, -1.0 / 61, 0.1800564401355e-05},
};

typedef struct level {
    int64_t n;
    ferry_floorplan blocks;
    ferry_xarray *u, *r, *between; /* between: coarse points of this level's blocks */
    ferry_mover *halo_u, *halo_r, *halo_between;
    ferry_mover *down, *up; /* between to r of the next coarser level, u of that to between */
} level;

typedef struct solver {
    ferry *f;
    const problem *p;
    int top; /* the finest level; the coarsest is 1 */
    level levels[LEVELS_MAX];
    ferry_xarray *v; /* right-hand side */
    double *rows;    /* scratch: two rows of the finest level */
    cost cost;
} solver;

static void move(solver *s, ferry_mover *m)
{
    cost_communication_begins(&s->cost, s->f);
    check(s->f, ferry_mover_start(m, NULL));
    check(s->f, ferry_mover_wait(m));
    cost_communication_ends(&s->cost, s->f);
}

static ferry_region own_region(const ferry_xarray *x, size_t i)
{
    return ferry_floorplan_block(&x->blocks, x->local[i])->region;
}

/* Operations that this rank has done at each of its points of `x`. */
static void spend(solver *s, const ferry_xarray *x, double per_point)
{
    for (size_t b = 0; b < x->local_count; b++)
        cost_add(&s->cost, per_point * (double)ferry_region_size(own_region(x, b)));
    cost_spend(&s->cost, s->f);
}

static double *cell(const ferry_grid *grid, int64_t i, int64_t j, int64_t k)
{
    return ferry_grid_at(grid, ferry_point_of(i, j, k));
}

/* Sums of the neighbours of each point of a row, ends included, that differ from it in one (face)
 * or both (edge) of the other two dimensions. `p` is the row's first point. */
static void gather(const ferry_grid *grid, const double *p, int64_t count, double *face,
                   double *edge)
{
    const ptrdiff_t a = grid->stride[0] / (ptrdiff_t)sizeof(double);
    const ptrdiff_t b = grid->stride[1] / (ptrdiff_t)sizeof(double);
    for (int64_t k = -1; k <= count; k++) {
        face[k + 1] = p[k - a] + p[k + a] + p[k - b] + p[k + b];
        edge[k + 1] = p[k - a - b] + p[k - a + b] + p[k + a - b] + p[k + a + b];
    }
}

/* r = v - A u */
static void residual(solver *s, level *l, const ferry_xarray *v)
{
    double *face = s->rows, *edge = face + l->n + 2;
    move(s, l->halo_u);
    for (size_t b = 0; b < l->u->local_count; b++) {
        ferry_region own = own_region(l->u, b);
        int64_t count = (int64_t)ferry_region_extent(own, 2);
        for (int64_t i = own.low.at[0]; i <= own.high.at[0]; i++)
            for (int64_t j = own.low.at[1]; j <= own.high.at[1]; j++) {
                const double *u = cell(&l->u->grids[b], i, j, own.low.at[2]);
                const double *rhs = cell(&v->grids[b], i, j, own.low.at[2]);
                double *r = cell(&l->r->grids[b], i, j, own.low.at[2]);
                gather(&l->u->grids[b], u, count, face, edge);
                for (int64_t k = 0; k < count; k++)
                    r[k] = rhs[k] + 8.0 / 3 * u[k] -
                           1.0 / 6 * (edge[k + 1] + face[k] + face[k + 2]) -
                           1.0 / 12 * (edge[k] + edge[k + 2]);
            }
    }
    spend(s, l->u, 15);
}

/* u = u + C r */
static void smooth(solver *s, level *l)
{
    double *face = s->rows, *edge = face + l->n + 2;
    move(s, l->halo_r);
    for (size_t b = 0; b < l->u->local_count; b++) {
        ferry_region own = own_region(l->u, b);
        int64_t count = (int64_t)ferry_region_extent(own, 2);
        for (int64_t i = own.low.at[0]; i <= own.high.at[0]; i++)
            for (int64_t j = own.low.at[1]; j <= own.high.at[1]; j++) {
                const double *r = cell(&l->r->grids[b], i, j, own.low.at[2]);
                double *u = cell(&l->u->grids[b], i, j, own.low.at[2]);
                gather(&l->r->grids[b], r, count, face, edge);
                for (int64_t k = 0; k < count; k++)
                    u[k] += s->p->centre * r[k] + s->p->face * (r[k - 1] + r[k + 1] + face[k + 1]) +
                            s->p->edge * (edge[k + 1] + face[k] + face[k + 2]);
            }
    }
    spend(s, l->u, 16);
}

/* The residual of a level, weighted, to the next coarser one. Coarse point c lies at fine point
 * 2 c + 1. */
static void restrict_residual(solver *s, level *fine)
{
    double *face = s->rows, *edge = face + fine->n + 2;
    move(s, fine->halo_r);
    for (size_t b = 0; b < fine->r->local_count; b++) {
        ferry_region own = own_region(fine->between, b);
        int64_t count = (int64_t)ferry_region_extent(own, 2);
        for (int64_t i = own.low.at[0]; i <= own.high.at[0]; i++)
            for (int64_t j = own.low.at[1]; j <= own.high.at[1]; j++) {
                const double *r = cell(&fine->r->grids[b], 2 * i + 1, 2 * j + 1, 2 * own.low.at[2]);
                double *c = cell(&fine->between->grids[b], i, j, own.low.at[2]);
                gather(&fine->r->grids[b], r, 2 * count, face, edge);
                for (int64_t k = 0; k < count; k++) {
                    int64_t m = 2 * k + 1;
                    c[k] = 0.5 * r[m] + 0.25 * (r[m - 1] + r[m + 1] + face[m + 1]) +
                           0.125 * (face[m] + face[m + 2] + edge[m + 1]) +
                           0.0625 * (edge[m] + edge[m + 2]);
                }
            }
    }
    spend(s, fine->between, 26);
    move(s, fine->down);
}

/* Adds a row of a coarse level, interpolated along it, to a row of the finer one. */
static void add_row(double *u, const double *z, int64_t count, double weight)
{
    for (int64_t k = 0; k < count; k++) {
        u[2 * k] += weight * 0.5 * (z[k - 1] + z[k]);
        u[2 * k + 1] += weight * z[k];
    }
}

/* The correction of the next coarser level, interpolated and added. */
static void interpolate(solver *s, level *fine)
{
    move(s, fine->up);
    move(s, fine->halo_between);
    for (size_t b = 0; b < fine->u->local_count; b++) {
        ferry_region own = own_region(fine->between, b);
        const ferry_grid *z = &fine->between->grids[b], *u = &fine->u->grids[b];
        int64_t count = (int64_t)ferry_region_extent(own, 2), first = own.low.at[2];
        for (int64_t i = 2 * own.low.at[0]; i <= 2 * own.high.at[0] + 1; i++)
            for (int64_t j = 2 * own.low.at[1]; j <= 2 * own.high.at[1] + 1; j++) {
                /* An even fine point lies between two coarse ones. */
                int64_t i_low = i % 2 ? i / 2 : i / 2 - 1, j_low = j % 2 ? j / 2 : j / 2 - 1;
                double weight = (i % 2 ? 1 : 0.5) * (j % 2 ? 1 : 0.5);
                double *row = cell(u, i, j, 2 * first);
                for (int64_t c = i_low; c <= i / 2; c++)
                    for (int64_t d = j_low; d <= j / 2; d++)
                        add_row(row, cell(z, c, d, first), count, weight);
            }
    }
    spend(s, fine->u, 6);
}

static void clear(const ferry_xarray *x)
{
    for (size_t i = 0; i < x->local_count; i++)
        memset(x->grids[i].data, 0, ferry_region_size(x->grids[i].region) * sizeof(double));
}

static void cycle(solver *s)
{
    for (int k = s->top; k > 1; k--)
        restrict_residual(s, &s->levels[k]);
    clear(s->levels[1].u);
    smooth(s, &s->levels[1]);
    for (int k = 2; k <= s->top; k++) {
        level *l = &s->levels[k];
        if (k < s->top)
            clear(l->u);
        interpolate(s, l);
        residual(s, l, k < s->top ? l->r : s->v);
        smooth(s, l);
    }
    residual(s, &s->levels[s->top], s->v);
}

static double norm(const solver *s)
{
    const level *l = &s->levels[s->top];
    double sum = 0;
    for (size_t b = 0; b < l->r->local_count; b++) {
        ferry_region own = own_region(l->r, b);
        ferry_point p = own.low;
        do {
            double value = *(double *)ferry_grid_at(&l->r->grids[b], p);
            sum += value * value;
        } while (ferry_region_next(&own, &p));
    }
    check(s->f, ferry_allreduce(s->f, FERRY_DOUBLE, FERRY_SUM, &sum, &sum, 1));
    return sqrt(sum / ((double)l->n * (double)l->n * (double)l->n));
}

/* The benchmark's generator: x <- 5^13 x mod 2^46. */
static const uint64_t mask46 = (UINT64_C(1) << 46) - 1;
static const uint64_t multiplier = 1220703125;

static uint64_t power46(uint64_t base, uint64_t exponent)
{
    uint64_t result = 1;
    for (; exponent > 0; exponent >>= 1, base = base * base & mask46)
        if (exponent & 1)
            result = result * base & mask46;
    return result;
}

/* A point and its random value. */
typedef struct extreme {
    double value;
    ferry_point at;
} extreme;

/* Keeps the EXTREMES largest, the largest first. */
static void note(extreme *best, double value, ferry_point at)
{
    int i = EXTREMES - 1;
    if (value <= best[i].value)
        return;
    for (; i > 0 && best[i - 1].value < value; i--)
        best[i] = best[i - 1];
    best[i] = (extreme){value, at};
}

/* Random numbers over the cube, of which the largest and the smallest are kept. */
static void find_extremes(const solver *s, extreme *largest, extreme *smallest)
{
    const uint64_t n = (uint64_t)s->levels[s->top].n;
    for (int i = 0; i < EXTREMES; i++)
        largest[i].value = smallest[i].value = -2;
    for (size_t b = 0; b < s->v->local_count; b++) {
        ferry_region own = own_region(s->v, b);
        ferry_point p = own.low;
        uint64_t seed = 0;
        do {
            uint64_t index = ((uint64_t)p.at[0] * n + (uint64_t)p.at[1]) * n + (uint64_t)p.at[2];
            if (p.at[2] == own.low.at[2])
                seed = 314159265 * power46(multiplier, index) & mask46;
            seed = seed * multiplier & mask46;
            note(largest, (double)seed * 0x1p-46, p);
            note(smallest, -(double)seed * 0x1p-46, p);
        } while (ferry_region_next(&own, &p));
    }
}

/* Puts `charge` at the EXTREMES points with the largest values over all ranks. */
static void charge_points(solver *s, const extreme *best, double charge)
{
    int mine = 0;
    for (int i = 0; i < EXTREMES; i++) {
        double value = best[mine].value, all = 0;
        check(s->f, ferry_allreduce(s->f, FERRY_DOUBLE, FERRY_MAX, &value, &all, 1));
        if (value < all)
            continue;
        for (size_t b = 0; b < s->v->local_count; b++)
            if (ferry_region_contains_point(own_region(s->v, b), best[mine].at))
                *(double *)ferry_grid_at(&s->v->grids[b], best[mine].at) = charge;
        mine += mine < EXTREMES - 1;
    }
}

static ferry_mover *bind_halo(ferry *f, ferry_xarray *x, int64_t n)
{
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_plan plan = {0};
    ferry_mover *m;
    halo.domain = ferry_region_sized(3, (int64_t[]){n, n, n});
    halo.low = halo.high = ferry_point_all(1);
    halo.periodic[0] = halo.periodic[1] = halo.periodic[2] = true;
    check(f, ferry_plan_halo(&plan, &x->blocks, &halo, ferry_rank(f)));
    check(f, ferry_mover_bind(f, &plan, x, x, NULL, &m));
    ferry_plan_fini(&plan);
    return m;
}

static ferry_mover *bind_common(ferry *f, ferry_xarray *from, ferry_xarray *to)
{
    ferry_plan plan = {0};
    ferry_mover *m;
    check(f, ferry_plan_intersect(&plan, &from->blocks, &to->blocks, NULL, ferry_rank(f)));
    check(f, ferry_mover_bind(f, &plan, from, to, NULL, &m));
    ferry_plan_fini(&plan);
    return m;
}

/* As many blocks as ranks, a power of two, while each keeps two points along an edge. */
static void decompose(ferry *f, int64_t n, ferry_floorplan *out)
{
    ferry_point parts = ferry_point_all(1);
    int count = 1;
    for (int d = 0; 2 * count <= ferry_ranks(f) && n / parts.at[d] >= 4; d = (d + 1) % 3) {
        parts.at[d] *= 2;
        count *= 2;
    }
    check(f, ferry_floorplan_cut(ferry_region_sized(3, (int64_t[]){n, n, n}), parts, out));
    check(f, ferry_floorplan_map_block(out, ferry_ranks(f)));
}

static void level_init(solver *s, int k)
{
    ferry *f = s->f;
    level *l = &s->levels[k];
    const ferry_point one = ferry_point_all(1);
    l->n = INT64_C(1) << k;
    decompose(f, l->n, &l->blocks);
    check(f, ferry_xarray_create(f, &l->blocks, sizeof(double), one, &l->u));
    check(f, ferry_xarray_create(f, &l->blocks, sizeof(double), one, &l->r));
    l->halo_u = bind_halo(f, l->u, l->n);
    l->halo_r = bind_halo(f, l->r, l->n);
    if (k == 1)
        return;
    ferry_floorplan between;
    check(f, ferry_floorplan_copy(&l->blocks, &between));
    for (size_t i = 0; i < between.count; i++)
        between.blocks[i].region =
            ferry_region_coarsen(between.blocks[i].region, ferry_point_all(2));
    check(f, ferry_xarray_create(f, &between, sizeof(double), one, &l->between));
    ferry_floorplan_fini(&between);
    l->halo_between = bind_halo(f, l->between, l->n / 2);
    l->down = bind_common(f, l->between, s->levels[k - 1].r);
    l->up = bind_common(f, s->levels[k - 1].u, l->between);
}

static void solver_init(solver *s, ferry *f, const problem *p)
{
    const int top = p->levels;
    s->f = f;
    s->p = p;
    s->top = top;
    for (int k = 1; k <= top; k++)
        level_init(s, k);
    check(f, ferry_xarray_create(f, &s->levels[top].blocks, sizeof(double), ferry_point_all(1),
                                 &s->v));
    s->rows = calloc(2 * ((size_t)s->levels[top].n + 2), sizeof *s->rows);
    if (s->rows == NULL)
        exit(1);
    extreme largest[EXTREMES], smallest[EXTREMES];
    find_extremes(s, largest, smallest);
    charge_points(s, largest, 1);
    charge_points(s, smallest, -1);
}

static void solver_fini(solver *s)
{
    for (int k = 1; k <= s->top; k++) {
        level *l = &s->levels[k];
        ferry_mover *movers[] = {l->halo_u, l->halo_r, l->halo_between, l->down, l->up};
        for (int i = 0; i < 5; i++)
            check(s->f, ferry_mover_free(movers[i]));
        ferry_xarray_destroy(l->u);
        ferry_xarray_destroy(l->r);
        ferry_xarray_destroy(l->between);
        ferry_floorplan_fini(&l->blocks);
    }
    ferry_xarray_destroy(s->v);
    free(s->rows);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const char *const classes[] = {"S", "W", "A", "B", NULL}; /* as in problems */
    int class = 0;
    solver s = {0};
    const parameter table[] = {
        {"CLASS", "S, W, A or B", .choice = &class, .of = classes}, COST_PARAMETER(&s.cost), {0}};
    int status = parameters_read(f, argc, argv, "The NAS benchmark MG.", table);
    if (status >= 0)
        return status;
    solver_init(&s, f, &problems[class]);
    check(f, ferry_barrier(f));
    uint64_t start = ferry_now(f);
    residual(&s, &s.levels[s.top], s.v);
    for (int k = 0; k < s.p->cycles; k++)
        cycle(&s);
    double found = norm(&s), seconds = (double)(ferry_now(f) - start) * 1e-9;
    double communication = cost_communication_s(&s.cost, f);
    bool good = fabs(found / s.p->norm - 1) < 1e-8;
    if (ferry_rank(f) == 0)
        printf("MG class %s on %d ranks: residual %.12e, %s, %.6f s, communication %.6f s\n",
               classes[class], ferry_ranks(f), found, good ? "verified" : "verification FAILED",
               seconds, communication);
    solver_fini(&s);
    return !good;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
