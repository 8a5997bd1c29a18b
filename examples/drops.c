/* Drops: a block array in a window. Each rank lets drops of heat fall on cells of any rank, by
 * index. A mover fills the ghost cells of the same memory, and each owner computes on it.
 *
 *     cc drops.c $(pkg-config --cflags --libs ferry-data) -o drops
 *     ferry run -n 4 ./drops */
#include <stdio.h>

#include <ferry/ferry.h>

enum { SIZE = 32, STEPS = 50 };

static void check(ferry *f, int error)
{
    if (error < 0)
        ferry_abort(f, 1, ferry_error_message(f));
}

/* One drop of this rank, in a block of any rank. */
static void let_fall(ferry *f, ferry_window *w, const ferry_xarray *x, int step)
{
    static const double drop = 1;
    const ferry_window_change add = {FERRY_DOUBLE, FERRY_SUM, &drop, 1};
    const int32_t block = (int32_t)((size_t)(step + 3 * ferry_rank(f)) % x->blocks.count);
    const ferry_point corner = ferry_floorplan_block(&x->blocks, block)->region.low;
    int rank;
    int64_t index;
    check(f, ferry_window_xarray_find(x, 0, block, corner, &rank, &index));
    check(f, ferry_window_accumulate(w, rank, index, &add, NULL));
}

/* Both arrays have the same blocks. `to` gets the next state of what is in `from`. */
static void spread(const ferry_xarray *from, const ferry_xarray *to)
{
    for (size_t b = 0; b < from->local_count; b++) {
        const ferry_region own = ferry_floorplan_block(&from->blocks, from->local[b])->region;
        const ferry_grid *source = &from->grids[b], *target = &to->grids[b];
        ptrdiff_t row = source->stride[0] / (ptrdiff_t)sizeof(double);
        ferry_point p = own.low;
        do {
            const double *c = ferry_grid_at(source, p);
            *(double *)ferry_grid_at(target, p) =
                *c + 0.2 * (c[-1] + c[1] + c[-row] + c[row] - 4 * *c);
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
    ferry_window *w[2];
    ferry_xarray *x[2];
    ferry_mover *fill[2];
    ferry_plan plan = {0};
    ferry_halo halo = FERRY_HALO_DEFAULTS; /* the plate's edges meet: it is a torus */
    halo.low = halo.high = width;
    halo.faces_only = true;
    halo.domain = plate;
    halo.periodic[0] = halo.periodic[1] = true;
    (void)argc, (void)argv;
    check(f, ferry_floorplan_cut(plate, ferry_floorplan_parts(plate, 2 * ferry_ranks(f)), &blocks));
    check(f, ferry_floorplan_map_curve(&blocks, ferry_ranks(f), NULL));
    check(f, ferry_plan_halo(&plan, &blocks, &halo, ferry_rank(f)));
    for (int i = 0; i < 2; i++) {
        check(f, ferry_window_create(f, NULL, &w[i]));
        check(f, ferry_window_xarray_create(w[i], 0, &blocks, sizeof(double), width, &x[i]));
        check(f, ferry_mover_bind(f, &plan, x[i], x[i], NULL, &fill[i]));
        check(f, ferry_window_fence(w[i]));
    }
    ferry_plan_fini(&plan);
    for (int i = 0; i < STEPS; i++) {
        let_fall(f, w[i % 2], x[i % 2], i);
        check(f, ferry_window_fence(w[i % 2])); /* the drops are in the cells */
        check(f, ferry_mover_start(fill[i % 2], NULL));
        check(f, ferry_mover_wait(fill[i % 2])); /* the ghost cells are there */
        spread(x[i % 2], x[1 - i % 2]);
        check(f, ferry_window_fence(w[1 - i % 2])); /* and now others may change this array */
    }
    double heat = total(f, x[STEPS % 2]);
    if (ferry_rank(f) == 0)
        printf("%d steps, heat %.3f of %d drops\n", STEPS, heat, STEPS * ferry_ranks(f));
    for (int i = 0; i < 2; i++) {
        check(f, ferry_mover_free(fill[i]));
        ferry_xarray_destroy(x[i]);
        check(f, ferry_window_free(w[i]));
    }
    ferry_floorplan_fini(&blocks);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
