/* Red-black Gauss-Seidel relaxation of the Poisson equation in three dimensions, 7-point stencil:
 * the first program of most users of distributed arrays.
 *
 *   ferry run -n 4 build/apps/redblack [N [SWEEPS [BLOCKS]]] [--check] [--overlap]
 *
 * The cube of N^3 points is cut into blocks, several per rank if you like; before each half sweep a
 * mover fills the ghost cells. With --overlap, the points inside each block are relaxed while the
 * ghost cells travel. The result does not depend on the number of ranks or blocks: --check computes
 * it once more on each rank alone, without blocks, and compares every point; the exit status is 1
 * if one differs. --no-halo leaves the mover out, to show that the check notices it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#include "common/check.h"
#include "common/cost.h"
#include "common/parameters.h"
#include <ferry/mover.h>

typedef struct solver {
    ferry *f;
    long n, sweeps;
    bool check, overlap, no_halo;
    ferry_xarray *u, *rhs;
    ferry_mover *halo;
    cost cost;
} solver;

/* Relaxes the points of one colour of a block; returns the sum of squares of the changes. */
static double relax(const ferry_grid *u, const ferry_grid *rhs, ferry_region own, int colour)
{
    const ptrdiff_t si = u->stride[0] / (ptrdiff_t)sizeof(double);
    const ptrdiff_t sj = u->stride[1] / (ptrdiff_t)sizeof(double);
    double sum = 0;
    for (int64_t i = own.low.at[0]; i <= own.high.at[0]; i++)
        for (int64_t j = own.low.at[1]; j <= own.high.at[1]; j++) {
            int64_t k = own.low.at[2] + (((i + j + own.low.at[2] + colour) % 2 + 2) % 2);
            double *p = ferry_grid_at(u, ferry_point_of(i, j, k));
            const double *b = ferry_grid_at(rhs, ferry_point_of(i, j, k));
            for (; k <= own.high.at[2]; k += 2, p += 2, b += 2) {
                double next = (p[-si] + p[si] + p[-sj] + p[sj] + p[-1] + p[1] - *b) / 6;
                sum += (next - *p) * (next - *p);
                *p = next;
            }
        }
    return sum;
}

/* A point source in the middle; the edge of the cube is held at 0. */
static void fill(const ferry_grid *rhs, ferry_region own, int64_t n)
{
    ferry_point middle = ferry_point_of(n / 2, n / 2, n / 2);
    if (ferry_region_contains_point(own, middle))
        *(double *)ferry_grid_at(rhs, middle) = 1;
}

static ferry_region own_region(const ferry_xarray *x, size_t i)
{
    return ferry_floorplan_block(&x->blocks, x->local[i])->region;
}

/* Relaxes the points inside the blocks, whose neighbours are all in the same block, or the rest. */
static double relax_part(solver *s, int colour, bool inside)
{
    double change = 0;
    for (size_t i = 0; i < s->u->local_count; i++) {
        const ferry_region own = own_region(s->u, i);
        const ferry_region core = ferry_region_shrink(own, ferry_point_all(1));
        ferry_region parts[2 * FERRY_DIMS_MAX] = {core};
        int count = inside ? 1 : ferry_region_difference(own, core, parts);
        for (int p = 0; p < count; p++) {
            change += relax(&s->u->grids[i], &s->rhs->grids[i], parts[p], colour);
            cost_add(&s->cost, 4 * (double)ferry_region_size(parts[p])); /* 8 for half of them */
        }
    }
    cost_spend(&s->cost, s->f);
    return change;
}

static double sweep(solver *s)
{
    double change = 0;
    for (int colour = 0; colour < 2; colour++) {
        cost_communication_begins(&s->cost, s->f);
        if (!s->no_halo)
            check(s->f, ferry_mover_start(s->halo, NULL));
        if (s->overlap) {
            cost_communication_ends(&s->cost, s->f);
            change += relax_part(s, colour, true);
            cost_communication_begins(&s->cost, s->f);
        }
        if (!s->no_halo)
            check(s->f, ferry_mover_wait(s->halo));
        cost_communication_ends(&s->cost, s->f);
        if (!s->overlap)
            change += relax_part(s, colour, true);
        change += relax_part(s, colour, false);
    }
    check(s->f, ferry_allreduce(s->f, FERRY_DOUBLE, FERRY_SUM, &change, &change, 1));
    return change;
}

/* The same sweeps over the whole cube in one piece. Returns how many points of this rank's blocks
 * have another value than there, to the last bit. */
static int64_t count_wrong(const solver *s)
{
    const ferry_region cube = ferry_region_sized(3, (int64_t[]){s->n, s->n, s->n});
    const ferry_region wide = ferry_region_grow(cube, ferry_point_all(1));
    double *room = calloc(2 * ferry_region_size(wide), sizeof *room);
    if (room == NULL) {
        fprintf(stderr, "redblack: no memory for %ld^3 points in one piece\n", s->n);
        exit(1);
    }
    const ferry_grid u = ferry_grid_over(wide, sizeof(double), room);
    const ferry_grid rhs = ferry_grid_over(wide, sizeof(double), room + ferry_region_size(wide));
    fill(&rhs, cube, s->n);
    for (long i = 0; i < 2 * s->sweeps; i++)
        relax(&u, &rhs, cube, (int)(i % 2));
    int64_t wrong = 0;
    for (size_t i = 0; i < s->u->local_count; i++) {
        const ferry_region own = own_region(s->u, i);
        ferry_point p = own.low;
        do {
            wrong +=
                *(double *)ferry_grid_at(&s->u->grids[i], p) != *(double *)ferry_grid_at(&u, p);
        } while (ferry_region_next(&own, &p));
    }
    free(room);
    return wrong;
}

static void solver_init(solver *s, const ferry_floorplan *blocks)
{
    ferry *f = s->f;
    check(f, ferry_xarray_create(f, blocks, sizeof(double), ferry_point_all(1), &s->u));
    check(f, ferry_xarray_create(f, blocks, sizeof(double), ferry_point_all(1), &s->rhs));
    for (size_t i = 0; i < s->rhs->local_count; i++)
        fill(&s->rhs->grids[i], own_region(s->rhs, i), s->n);
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    halo.low = halo.high = ferry_point_all(1);
    halo.faces_only = true;
    ferry_plan plan = {0};
    check(f, ferry_plan_halo(&plan, blocks, &halo, ferry_rank(f)));
    check(f, ferry_mover_bind(f, &plan, s->u, s->u, NULL, &s->halo));
    ferry_plan_fini(&plan);
}

/* Returns the exit status. */
static int run(solver *s, size_t blocks)
{
    ferry *f = s->f;
    uint64_t start = ferry_now(f);
    double change = 0;
    for (long i = 0; i < s->sweeps; i++)
        change = sweep(s);
    double seconds = (double)(ferry_now(f) - start) * 1e-9;
    int64_t wrong = s->check ? count_wrong(s) : 0;
    check(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &wrong, &wrong, 1));
    double communication = cost_communication_s(&s->cost, f);
    bool good = wrong == 0 && isfinite(change);
    if (ferry_rank(f) == 0) {
        printf("%ld^3 points, %ld sweeps, %zu blocks on %d ranks: change %.9e, %.6f s, "
               "communication %.6f s\n",
               s->n, s->sweeps, blocks, ferry_ranks(f), change, seconds, communication);
        if (s->check && good)
            printf("each point as computed in one piece\n");
        else if (!good)
            fprintf(stderr, "redblack: %lld points differ from those computed in one piece\n",
                    (long long)wrong);
    }
    return !good;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    solver s = {.f = f, .n = 64, .sweeps = 20};
    long count = ferry_ranks(f);
    const parameter table[] = {
        {"N", "points along each edge of the cube", 2, 1e4, .whole = &s.n},
        {"SWEEPS", "over all points", 1, 1e6, .whole = &s.sweeps},
        {"BLOCKS", "of the cube", 1, 1e6, .whole = &count},
        {"check", "compares each point with a computation in one piece", .flag = &s.check},
        {"overlap", "relaxes the inside of blocks while ghost cells travel", .flag = &s.overlap},
        {"no-halo", "leaves out the exchange: the result is wrong", .flag = &s.no_halo},
        COST_PARAMETER(&s.cost),
        {0},
    };
    int status = parameters_read(f, argc, argv, "Red-black Gauss-Seidel in a cube.", table);
    if (status >= 0)
        return status;
    const ferry_region cube = ferry_region_sized(3, (int64_t[]){s.n, s.n, s.n});
    ferry_floorplan blocks;
    check(f, ferry_floorplan_cut(cube, ferry_floorplan_parts(cube, (int)count), &blocks));
    check(f, ferry_floorplan_map_curve(&blocks, ferry_ranks(f), NULL));
    solver_init(&s, &blocks);
    status = run(&s, blocks.count);
    check(f, ferry_mover_free(s.halo));
    ferry_xarray_destroy(s.u);
    ferry_xarray_destroy(s.rhs);
    ferry_floorplan_fini(&blocks);
    return status;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
