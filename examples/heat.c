/* Heat: a distributed array in blocks, with ghost cells that a mover fills.
 *
 * A plate of 128 x 128 cells is cut into blocks, four for each rank. In each step the ghost cells
 * are filled, then each cell moves towards its four neighbours. The heat of the plate stays the
 * same. With an argument, a picture for ParaView is written to PATH.pvti.
 *
 *     cc heat.c $(pkg-config --cflags --libs ferry-data) -o heat
 *     ferry run -n 4 ./heat [PATH] */
#include <stdio.h>

#include <ferry/ferry.h>

enum { SIZE = 128, STEPS = 200 };

static void check(ferry *f, int error)
{
    if (error < 0)
        ferry_abort(f, 1, ferry_error_message(f));
}

/* Both arrays have the same blocks. `to` gets the next state of what is in `from`. */
static void step(const ferry_xarray *from, const ferry_xarray *to)
{
    for (size_t b = 0; b < from->local_count; b++) {
        const ferry_region own = ferry_floorplan_block(&from->blocks, from->local[b])->region;
        const ferry_grid *source = &from->grids[b], *target = &to->grids[b];
        ptrdiff_t row = source->stride[0] / (ptrdiff_t)sizeof(double);
        ferry_point p = own.low;
        do {
            const double *c = ferry_grid_at(source, p);
            double *next = ferry_grid_at(target, p);
            *next = *c + 0.2 * (c[-1] + c[1] + c[-row] + c[row] - 4 * *c);
        } while (ferry_region_next(&own, &p));
    }
}

static double total(ferry *f, const ferry_xarray *x)
{
    double sum = 0;
    for (size_t b = 0; b < x->local_count; b++) {
        const ferry_region own = ferry_floorplan_block(&x->blocks, x->local[b])->region;
        ferry_point p = own.low;
        do
            sum += *(double *)ferry_grid_at(&x->grids[b], p);
        while (ferry_region_next(&own, &p));
    }
    check(f, ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, &sum, &sum, 1));
    return sum;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const ferry_region plate = ferry_region_sized(2, (int64_t[]){SIZE, SIZE});
    const ferry_point width = ferry_point_all(1);
    ferry_floorplan blocks;
    check(f, ferry_floorplan_cut(plate, ferry_floorplan_parts(plate, 4 * ferry_ranks(f)), &blocks));
    check(f, ferry_floorplan_map_curve(&blocks, ferry_ranks(f), NULL)); /* who owns which block */

    ferry_xarray *x[2]; /* this rank's blocks, with ghost cells, cleared */
    for (int i = 0; i < 2; i++)
        check(f, ferry_xarray_create(f, &blocks, sizeof(double), width, &x[i]));

    ferry_halo halo = FERRY_HALO_DEFAULTS; /* the plate's edges meet: it is a torus */
    halo.low = halo.high = width;
    halo.faces_only = true;
    halo.domain = plate;
    halo.periodic[0] = halo.periodic[1] = true;
    ferry_plan plan = {0};
    ferry_mover *fill[2];
    check(f, ferry_plan_halo(&plan, &blocks, &halo, ferry_rank(f)));
    for (int i = 0; i < 2; i++) /* on all ranks in the same order: analysis and memory, once */
        check(f, ferry_mover_bind(f, &plan, x[i], x[i], NULL, &fill[i]));
    ferry_plan_fini(&plan);

    for (size_t b = 0; b < x[0]->local_count; b++)
        if (ferry_region_contains_point(x[0]->grids[b].region, ferry_point_of(40, 40, 0)))
            *(double *)ferry_grid_at(&x[0]->grids[b], ferry_point_of(40, 40, 0)) = 1000;
    for (int i = 0; i < STEPS; i++) {
        check(f, ferry_mover_start(fill[i % 2], NULL));
        check(f, ferry_mover_wait(fill[i % 2])); /* the ghost cells are there */
        step(x[i % 2], x[1 - i % 2]);
    }
    double heat = total(f, x[STEPS % 2]);
    if (ferry_rank(f) == 0)
        printf("%d steps, heat %.3f\n", STEPS, heat);
    if (argc > 1)
        check(f, ferry_vtk_write(x[STEPS % 2], argv[1], NULL));

    for (int i = 0; i < 2; i++) {
        check(f, ferry_mover_free(fill[i]));
        ferry_xarray_destroy(x[i]);
    }
    ferry_floorplan_fini(&blocks);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
