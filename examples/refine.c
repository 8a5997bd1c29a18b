/* Refine: a plate with a patch that is twice as fine, and the movers between the two levels.
 *     cc refine.c $(pkg-config --cflags --libs ferry-data) -o refine
 *     ferry run -n 4 ./refine */
#include <stdio.h>

#include <ferry/ferry.h>

enum { SIZE = 32, PARTS = 4, RATIO = 2, STEPS = 100 };

static void check(ferry *f, int error)
{
    if (error < 0)
        ferry_abort(f, 1, ferry_error_message(f));
}

static ferry_xarray *level_open(ferry *f, ferry_region domain, ferry_mover **halo)
{
    ferry_halo width = FERRY_HALO_DEFAULTS;
    ferry_floorplan blocks;
    ferry_plan plan = {0};
    ferry_xarray *u;
    width.low = width.high = ferry_point_all(1);
    check(f, ferry_floorplan_cut(domain, ferry_point_all(PARTS), &blocks));
    check(f, ferry_floorplan_map_curve(&blocks, ferry_ranks(f), NULL));
    check(f, ferry_xarray_create(f, &blocks, sizeof(double), width.low, &u));
    check(f, ferry_plan_halo(&plan, &blocks, &width, ferry_rank(f)));
    check(f, ferry_mover_bind(f, &plan, u, u, NULL, halo));
    ferry_plan_fini(&plan);
    ferry_floorplan_fini(&blocks);
    return u;
}

static bool is_outside(void *covered, const ferry_plan_entry *copy)
{
    return covered == NULL || !ferry_region_contains(*(const ferry_region *)covered, copy->from);
}

/* FERRY_REFINE fills ghost cells from blocks outside `covered`, FERRY_COARSEN adds fine cells. */
static ferry_mover *bind(ferry *f, ferry_xarray *from, ferry_xarray *to, ferry_relation relation,
                         ferry_region *covered)
{
    ferry_intersection levels = FERRY_INTERSECTION_DEFAULTS;
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    ferry_plan plan = {0};
    ferry_mover *mover;
    levels.relation = relation;
    levels.ratio[0] = levels.ratio[1] = RATIO;
    levels.low = levels.high = ferry_point_all(relation == FERRY_REFINE); /* ghost cells too */
    options.operation.reduction = relation == FERRY_REFINE ? FERRY_REPLACE : FERRY_SUM;
    check(f, ferry_plan_intersect(&plan, &from->blocks, &to->blocks, &levels, ferry_rank(f)));
    ferry_plan_filter(&plan, is_outside, covered);
    check(f, ferry_mover_bind(f, &plan, from, to, &options, &mover));
    ferry_plan_fini(&plan);
    return mover;
}

/* Each cell of `region` becomes `factor` x itself + `flow` x what flows in. Returns their sum. */
static double advance(const ferry_xarray *u, ferry_region region, double factor, double flow)
{
    double next[SIZE * SIZE], *n = next, sum = 0;
    for (size_t b = 0; b < u->local_count; b++) {
        ferry_region own = ferry_floorplan_block(&u->blocks, u->local[b])->region;
        ptrdiff_t row = u->grids[b].stride[0] / (ptrdiff_t)sizeof(double);
        for (int write = 0; write < 2 && ferry_region_contains(region, own); write++, n = next) {
            ferry_point p = own.low;
            do {
                double *c = ferry_grid_at(&u->grids[b], p);
                if (write)
                    sum += *c = *n++;
                else
                    *n++ = factor * *c + flow * (c[-1] + c[1] + c[-row] + c[row] - 4 * *c);
            } while (ferry_region_next(&own, &p));
        }
    }
    return sum;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    ferry_region plate = ferry_region_sized(2, (int64_t[]){SIZE, SIZE});
    ferry_region covered = ferry_region_shrink(plate, ferry_point_all(SIZE / 4)); /* 2 x 2 blocks */
    ferry_region patch = ferry_region_refine(covered, ferry_point_all(RATIO));
    ferry_point hot = ferry_point_of(SIZE, SIZE, 0); /* in the middle of the patch */
    ferry_mover *movers[4];
    ferry_xarray *coarse = level_open(f, plate, &movers[0]);
    ferry_xarray *fine = level_open(f, patch, &movers[2]);
    movers[1] = bind(f, coarse, fine, FERRY_REFINE, &covered);
    movers[3] = bind(f, fine, coarse, FERRY_COARSEN, NULL);
    for (size_t b = 0; b < fine->local_count; b++)
        if (ferry_region_contains_point(fine->grids[b].region, hot))
            *(double *)ferry_grid_at(&fine->grids[b], hot) = 4000;
    for (int i = 0; i < STEPS; i++) {
        for (int m = 0; m < 3; m++) {
            check(f, ferry_mover_start(movers[m], NULL));
            check(f, ferry_mover_wait(movers[m]));
        }
        advance(coarse, plate, 1, 0.05);
        advance(fine, patch, 1, 0.05 * RATIO * RATIO);
        advance(coarse, covered, 0, 0);
        check(f, ferry_mover_start(movers[3], NULL)); /* the sum of fine cells, then their mean */
        check(f, ferry_mover_wait(movers[3]));
        advance(coarse, covered, 1.0 / (RATIO * RATIO), 0);
    }
    double heat = advance(coarse, plate, 1, 0);
    check(f, ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, &heat, &heat, 1));
    if (ferry_rank(f) == 0)
        printf("%d steps, heat %.1f\n", STEPS, heat);
    for (int m = 0; m < 4; m++)
        check(f, ferry_mover_free(movers[m]));
    ferry_xarray_destroy(coarse);
    ferry_xarray_destroy(fine);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
