/* Goal: ranks that have bound different numbers of movers, as after a death that some learn
 * earlier, can bind again: with the option `check`, and over indices.
 * Method: rank 0 makes a few binds more than the others, which all fail on it. Then all bind in
 * each of these ways, move, and look at the ghost cell. The number of binds that fail is the
 * argument. */
#include <stdlib.h>

#include <ferry/ferry.h>
#include <ferry/mover.h>

#include "check_that.h"

/* The plan names a block that does not exist. */
static void fail_to_bind(ferry *f, ferry_xarray *x, int count)
{
    const int64_t extent = 1;
    const ferry_region one = ferry_region_sized(1, &extent);
    ferry_plan plan = {0};
    CHECK(ferry_plan_copy(&plan, 0, one, (int32_t)x->blocks.count, one) == 0);
    for (int i = 0; i < count; i++) {
        ferry_mover *m;
        CHECK(ferry_mover_bind(f, &plan, x, x, NULL, &m) == FERRY_EINVAL);
    }
    ferry_plan_fini(&plan);
}

static void move_once(ferry *f, ferry_mover *m)
{
    CHECK(ferry_mover_start(m, NULL) == 0);
    CHECK(ferry_mover_wait(m) == 0);
}

static void bind_with_check(ferry *f, ferry_xarray *x, const ferry_halo *halo)
{
    const int ranks = ferry_ranks(f), me = ferry_rank(f);
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    ferry_plan plan = {0};
    ferry_mover *m;
    options.check = true;
    options.messages = true;
    CHECK(ferry_plan_halo(&plan, &x->blocks, halo, me) == 0);
    CHECK(ferry_mover_bind(f, &plan, x, x, &options, &m) == 0);
    double *cells = x->grids[0].data;
    cells[1] = me;
    move_once(f, m);
    CHECK(cells[0] == (me + ranks - 1) % ranks && cells[2] == (me + 1) % ranks);
    CHECK(ferry_mover_free(m) == 0);
    options.check = false; /* they count alike now */
    CHECK(ferry_mover_bind(f, &plan, x, x, &options, &m) == 0);
    move_once(f, m);
    CHECK(ferry_mover_free(m) == 0);
    ferry_plan_fini(&plan);
}

static void bind_ghosts(ferry *f)
{
    const int next = (ferry_rank(f) + 1) % ferry_ranks(f);
    double data[2] = {ferry_rank(f), -1};
    const int64_t extent = 2;
    const ferry_grid grid = ferry_grid_over(ferry_region_sized(1, &extent), sizeof *data, data);
    const ferry_ghost ghost = {.local = 1, .remote = 0, .owner = next};
    const ferry_ghosts ghosts = {.items = &ghost, .count = 1};
    ferry_mover *m;
    CHECK(ferry_mover_bind_ghosts(f, &ghosts, &grid, &grid, NULL, &m) == 0);
    move_once(f, m);
    CHECK(data[1] == next);
    CHECK(ferry_mover_free(m) == 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const int failures = argc > 1 ? atoi(argv[1]) : 1;
    const int64_t extent = ferry_ranks(f);
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_floorplan blocks;
    ferry_xarray *x;
    halo.low = halo.high = ferry_point_of(1, 0, 0);
    halo.domain = ferry_region_sized(1, &extent);
    halo.periodic[0] = true;
    CHECK(ferry_floorplan_cut(halo.domain, ferry_point_of(extent, 1, 1), &blocks) == 0);
    CHECK(ferry_floorplan_map_block(&blocks, ferry_ranks(f)) == 0);
    CHECK(ferry_xarray_create(f, &blocks, sizeof(double), halo.low, &x) == 0);
    if (ferry_rank(f) == 0)
        fail_to_bind(f, x, failures);
    bind_with_check(f, x, &halo);
    if (ferry_rank(f) == 0)
        fail_to_bind(f, x, failures);
    bind_ghosts(f);
    ferry_xarray_destroy(x);
    ferry_floorplan_fini(&blocks);
    return ferry_barrier(f);
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
