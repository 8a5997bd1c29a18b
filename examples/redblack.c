/* Red-black Gauss-Seidel relaxation of the Poisson equation in three dimensions, 7-point stencil:
 * the first program of most users of distributed arrays.
 *
 *   ferry run -n 4 build/examples/redblack [N [SWEEPS [BLOCKS]]]
 *
 * The cube of N^3 points is cut into blocks, several per rank if you like; before each half sweep a
 * mover fills the ghost cells. The result does not depend on the number of ranks or blocks. */
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#include "common/parameters.h"
#include <ferry/mover.h>

static void check(ferry *f, int error)
{
    if (error == 0)
        return;
    fprintf(stderr, "redblack: %s: %s\n", ferry_strerror(error), ferry_error_message(f));
    exit(1);
}

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
static void fill(const ferry_xarray *rhs, int64_t n)
{
    ferry_point middle = ferry_point_of(n / 2, n / 2, n / 2);
    for (size_t i = 0; i < rhs->local_count; i++)
        if (ferry_region_contains_point(rhs->blocks.blocks[rhs->local[i]].region, middle))
            *(double *)ferry_grid_at(&rhs->grids[i], middle) = 1;
}

static double sweep(ferry *f, ferry_mover *halo, const ferry_xarray *u, const ferry_xarray *rhs)
{
    double change = 0;
    for (int colour = 0; colour < 2; colour++) {
        check(f, ferry_mover_start(halo, NULL));
        check(f, ferry_mover_wait(halo));
        for (size_t i = 0; i < u->local_count; i++)
            change +=
                relax(&u->grids[i], &rhs->grids[i], u->blocks.blocks[u->local[i]].region, colour);
    }
    check(f, ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, &change, &change, 1));
    return change;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    long n = 64, sweeps = 20, count = ferry_ranks(f);
    const parameter table[] = {
        {"N", "points along each edge of the cube", 2, 1e4, .whole = &n},
        {"SWEEPS", "over all points", 1, 1e6, .whole = &sweeps},
        {"BLOCKS", "of the cube", 1, 1e6, .whole = &count},
        {0},
    };
    int status = parameters_read(f, argc, argv, "Red-black Gauss-Seidel in a cube.", table);
    if (status >= 0)
        return status;
    const ferry_region cube = ferry_region_sized(3, (int64_t[]){n, n, n});
    ferry_floorplan blocks;
    check(f, ferry_floorplan_cut(cube, ferry_floorplan_parts(cube, (int)count), &blocks));
    check(f, ferry_map_curve(&blocks, ferry_ranks(f), NULL));

    ferry_xarray *u, *rhs;
    check(f, ferry_xarray_create(f, &blocks, sizeof(double), ferry_point_all(1), &u));
    check(f, ferry_xarray_create(f, &blocks, sizeof(double), ferry_point_all(1), &rhs));
    fill(rhs, n);

    ferry_halo halo = FERRY_HALO_DEFAULTS;
    halo.low = halo.high = ferry_point_all(1);
    halo.faces_only = true;
    ferry_plan plan = {0};
    ferry_mover *mover;
    check(f, ferry_plan_halo(&plan, &blocks, &halo, ferry_rank(f)));
    check(f, ferry_mover_bind(f, &plan, u, u, NULL, &mover));
    ferry_plan_fini(&plan);

    uint64_t start = ferry_now(f);
    double change = 0;
    for (long i = 0; i < sweeps; i++)
        change = sweep(f, mover, u, rhs);
    if (ferry_rank(f) == 0)
        printf("%ld^3 points, %ld sweeps, %zu blocks on %d ranks: change %.9e, %.3f s\n", n, sweeps,
               blocks.count, ferry_ranks(f), change, (double)(ferry_now(f) - start) * 1e-9);
    check(f, ferry_mover_free(mover));
    ferry_xarray_destroy(u);
    ferry_xarray_destroy(rhs);
    ferry_floorplan_fini(&blocks);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main);
}
