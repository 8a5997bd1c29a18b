/* Goal: what a mover cannot do is refused with an error that names the value, on every rank that it
 * concerns, and the next bind works; what only looks wrong is not refused.
 * Method: a program of any number of ranks. One mistake at a time: plans, elements, ghosts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>
#include <ferry/mover.h>

#include "arrays.h"

/* Binds a plan that differs from a neighbour's. With `check` every rank is told; else those that
 * share the copy are, and the others when they move, one after the other. */
static void refused(ferry *f, const ferry_plan *plan, ferry_xarray *x, bool check)
{
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    ferry_mover *m = NULL;
    options.check = check;
    int error = ferry_mover_bind(f, plan, x, x, &options, &m);
    CHECK(error == FERRY_EINVAL || (!check && error == 0 && ferry_rank(f) > 1));
    CHECK(check || error == 0 || strstr(ferry_error_message(f), "differ") != NULL);
    for (int i = 0; i < ferry_ranks(f) && error == 0; i++) {
        error = ferry_mover_start(m, NULL);
        if (error == 0)
            error = ferry_mover_wait(m);
    }
    CHECK(error == FERRY_EINVAL);
    CHECK(ferry_mover_free(m) == 0);
}

static void replace_first(ferry *f, ferry_plan *plan, const ferry_plan_entry *copy)
{
    CHECK(ferry_plan_set(plan, 0, copy) == 0);
}

/* Makes the first entry one that writes outside its block. */
static void spoil(ferry *f, ferry_plan *plan)
{
    ferry_plan_entry copy = ferry_plan_at(plan, 0);
    copy.to.low.at[0] = copy.to.high.at[0] = -20;
    replace_first(f, plan, &copy);
}

/* Wrong plans are refused, and the next bind works. */
static void mistakes(ferry *f)
{
    int64_t extents[1] = {8 * ferry_ranks(f)};
    ferry_floorplan blocks;
    CHECK(ferry_floorplan_tile(ferry_region_sized(1, extents), ferry_point_all(8), &blocks) == 0);
    CHECK(ferry_floorplan_map_block(&blocks, ferry_ranks(f)) == 0);
    ferry_xarray *x = make_array(f, &blocks, ferry_point_all(1), false);
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    halo.low = halo.high = ferry_point_all(1);
    ferry_plan plan = {0};
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    ferry_mover *m = NULL;
    CHECK(ferry_plan_halo(&plan, &blocks, &halo, ferry_rank(f)) == 0);
    if (ferry_ranks(f) > 1 && ferry_rank(f) == 0)
        spoil(f, &plan);
    if (ferry_ranks(f) > 1) {
        options.check = true;
        CHECK(ferry_mover_bind(f, &plan, x, x, &options, &m) == FERRY_EINVAL);
        CHECK(ferry_rank(f) != 0 || strstr(ferry_error_message(f), "entry 0") != NULL);
        int error = ferry_mover_bind(f, &plan, x, x, NULL, &m);
        CHECK(error == FERRY_EINVAL || (error == 0 && ferry_rank(f) > 1));
        CHECK(ferry_rank(f) != 0 || strstr(ferry_error_message(f), "entry 0") != NULL);
        CHECK(error != 0 || ferry_mover_free(m) == 0);
        const ferry_plan_entry last = ferry_plan_at(&plan, plan.count - 1);
        if (ferry_rank(f) == 0)
            plan.count--;
        if (ferry_rank(f) == 0)
            replace_first(f, &plan, &last);
        refused(f, &plan, x, true);
        refused(f, &plan, x, false);
        m = NULL;
    }
    ferry_plan_fini(&plan);
    /* Safety mode finds two copies to one place, unless they are combined there. */
    const ferry_region cell = ferry_region_sized(1, (int64_t[]){1});
    const ferry_region ghost = ferry_region_shift(cell, ferry_point_all(-1));
    for (int i = 0; i < 2 && ferry_rank(f) == 0; i++)
        CHECK(ferry_plan_copy(&plan, 0, ghost, 0, cell) == 0);
    options.check = true;
    CHECK(ferry_mover_bind(f, &plan, x, x, &options, &m) == FERRY_EINVAL);
    CHECK(ferry_rank(f) != 0 || strstr(ferry_error_message(f), "entries 0 [-1:-1] and 1") != NULL);
    options.operation.reduction = FERRY_SUM;
    CHECK(ferry_mover_bind(f, &plan, x, x, &options, &m) == 0 && ferry_mover_free(m) == 0);
    ferry_plan_fini(&plan);
    CHECK(ferry_mover_bind(f, &plan, x, x, NULL, &m) == 0);
    CHECK(ferry_mover_wait(m) == 0 && ferry_mover_test(m) == 0);
    CHECK(ferry_mover_start(m, NULL) == 0 && ferry_mover_wait(m) == 0);
    CHECK(ferry_mover_free(m) == 0 && ferry_mover_free(NULL) == 0);
    free_array(x);
    ferry_floorplan_fini(&blocks);
}

/* Rank 0 alone wants messages. If it has copies in common with rank 1 in one direction, or in both,
 * the two are told. */
static void ways(ferry *f)
{
    const int64_t extents[1] = {8 * ferry_ranks(f)};
    ferry_floorplan blocks;
    CHECK(ferry_floorplan_tile(ferry_region_sized(1, extents), ferry_point_all(8), &blocks) == 0);
    CHECK(ferry_floorplan_map_block(&blocks, ferry_ranks(f)) == 0);
    ferry_xarray *x = make_array(f, &blocks, ferry_point_all(0), false);
    for (int both = 0; both < 2; both++) {
        ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
        ferry_plan plan = {0};
        ferry_mover *m = NULL;
        options.messages = ferry_rank(f) == 0;
        for (int to = 0; to <= both; to++)
            CHECK(ferry_plan_copy(&plan, to, blocks.blocks[to].region, 1 - to,
                                  blocks.blocks[1 - to].region) == 0);
        int error = ferry_mover_bind(f, &plan, x, x, &options, &m);
        CHECK(error == (ferry_rank(f) < 2 ? FERRY_EINVAL : 0));
        CHECK(ferry_rank(f) != 0 ||
              strstr(ferry_error_message(f), "messages false, this rank true"));
        CHECK(ferry_rank(f) != 1 ||
              strstr(ferry_error_message(f), "messages true, this rank false"));
        CHECK(ferry_mover_free(m) == 0);
        ferry_plan_fini(&plan);
    }
    free_array(x);
    ferry_floorplan_fini(&blocks);
}

static void let_go(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    (void)message;
    *(bool *)ferry_user_data(f) = true;
}

/* A rank that has bound its part may free all, even if its target still waits for a third rank. The
 * target's bind works, and its start says that the source has gone. */
static void source_goes(ferry *f, bool *gone, ferry_handler handler)
{
    const int64_t extent = 40000, half = 20000;
    const int rank = ferry_rank(f);
    ferry_floorplan blocks = {.dims = 1};
    ferry_plan plan = {0};
    ferry_mover *m = NULL;
    *gone = false;
    for (int i = 0; i < ferry_ranks(f); i++)
        CHECK(ferry_floorplan_add(&blocks,
                                  ferry_region_shift(ferry_region_sized(1, &extent),
                                                     ferry_point_of(i * extent, 0, 0)),
                                  i) == 0);
    ferry_xarray *x = make_array(f, &blocks, ferry_point_all(0), false);
    for (int i = 1; i < 3; i++) {
        const ferry_region from = ferry_region_sized(1, &half);
        CHECK(ferry_plan_copy(&plan, 0,
                              ferry_region_shift(from, ferry_point_of((i - 1) * half, 0, 0)), i,
                              ferry_region_shift(from, ferry_point_of(i * extent, 0, 0))) == 0);
    }
    CHECK(ferry_barrier(f) == 0);
    while (rank == 2 && !*gone)
        CHECK(ferry_wait(f, FERRY_FOREVER) >= 0);
    CHECK(ferry_mover_bind(f, &plan, x, x, NULL, &m) == 0);
    if (rank != 0)
        CHECK(ferry_mover_free(m) == 0);
    if (rank == 1) {
        free_array(x);
        CHECK(ferry_request_send(f, 2, &(ferry_message){.handler = handler}, NULL) == 0);
    }
    CHECK(ferry_barrier(f) == 0);
    if (rank == 0) {
        CHECK(ferry_mover_start(m, NULL) == FERRY_EPEER);
        CHECK(strstr(ferry_error_message(f), "rank 1 has freed") != NULL);
        CHECK(ferry_mover_start(m, NULL) == FERRY_EPEER && ferry_mover_free(m) == 0);
    }
    if (rank != 1)
        free_array(x);
    ferry_plan_fini(&plan);
    ferry_floorplan_fini(&blocks);
}

/* Movers over indices. An error of one rank fails the call on all, and that rank says what it is.
 */
static void bad_ghosts(ferry *f)
{
    enum { CELLS = 8 };
    const int64_t extent = CELLS;
    const ferry_region line = ferry_region_sized(1, &extent);
    const bool wrong = ferry_rank(f) == ferry_ranks(f) - 1;
    double cells[CELLS] = {0};
    const struct {
        size_t source_bytes, target_bytes;
        ferry_ghost ghost;
        const char *says;
    } mistakes[] = {
        {0, 0, {0, 1, 0}, "source elements of 0 bytes and target elements of 0, expected one size"},
        {8, 0, {0, 1, 0}, "source elements of 8 bytes and target elements of 0, expected one size"},
        {4, 8, {0, 1, 0}, "source elements of 4 bytes and target elements of 8, expected one size"},
        {8, 8, {CELLS, 1, 0}, "ghost 0 has index 8, expected 0 to 7"},
        {8, 8, {-1, 1, 0}, "ghost 0 has index -1, expected 0 to 7"},
        {8, 8, {0, 1, -1}, "the owner of ghost 0 is -1, expected a rank from 0 to"},
        {8, 8, {0, CELLS, -2}, "no original with index 8"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        ferry_grid source = ferry_grid_over(line, 8, cells), target = source;
        ferry_ghost ghost = {.local = 0, .remote = 1, .owner = ferry_rank(f)};
        ferry_mover *m = NULL;
        if (wrong) {
            source.element_bytes = mistakes[i].source_bytes;
            target.element_bytes = mistakes[i].target_bytes;
            ghost = mistakes[i].ghost;
            if (ghost.owner != -1)
                ghost.owner = ferry_rank(f);
        }
        const ferry_ghosts ghosts = {.items = &ghost, .count = 1};
        CHECK(ferry_mover_bind_ghosts(f, &ghosts, &source, &target, NULL, &m) == FERRY_EINVAL);
        CHECK(m == NULL);
        CHECK(!wrong || strstr(ferry_error_message(f), mistakes[i].says) != NULL);
    }
    const ferry_grid flat = ferry_grid_over(line, 8, cells);
    ferry_grid square = flat;
    ferry_mover *m = NULL;
    square.region = ferry_region_sized(2, (int64_t[]){2, 4});
    CHECK(ferry_mover_bind_ghosts(f, &(ferry_ghosts){0}, &flat, &square, NULL, &m) == FERRY_EINVAL);
    CHECK(strstr(ferry_error_message(f), "grids of 1 and 2 dimensions") != NULL);
    CHECK(ferry_mover_bind_ghosts(f, &(ferry_ghosts){0}, &flat, &flat, NULL, &m) == 0);
    CHECK(ferry_mover_start(m, NULL) == 0 && ferry_mover_wait(m) == 0);
    CHECK(ferry_mover_free(m) == 0);
}

static void says(ferry *f, int error, const char *text)
{
    CHECK(error == FERRY_EINVAL);
    CHECK(strstr(ferry_error_message(f), text) != NULL);
}

/* Pointers that are missing, on all ranks. */
static void missing(ferry *f)
{
    const ferry_region cell = ferry_region_sized(1, (int64_t[]){1});
    const ferry_point none = ferry_point_all(0);
    ferry_floorplan blocks = {.dims = 1};
    ferry_grid grid = ferry_grid_over(cell, 8, NULL);
    ferry_plan plan = {0};
    ferry_xarray *x;
    ferry_mover *m;
    CHECK(ferry_floorplan_add(&blocks, cell, ferry_rank(f)) == 0);
    /* A call without a rank, before any call with the rank has failed. */
    says(f, ferry_floorplan_tile(cell, none, &blocks), "extent 0 in dimension 0");
    says(f, ferry_xarray_create_over(f, &blocks, 8, none, NULL, &x), "grids is NULL");
    says(f, ferry_xarray_create_over(f, &blocks, 8, none, &grid, &x), "and an address");
    says(f, ferry_grid_alloc(f, cell, 0, &grid), "elements of 0 bytes, expected");
    blocks.blocks[0].owner = 0;
    CHECK(ferry_xarray_create(f, &blocks, 8, none, &x) == 0);
    says(f, ferry_xarray_remap(x, NULL), "owners is NULL");
    says(f, ferry_mover_bind(f, NULL, x, x, NULL, &m), "plan is NULL");
    says(f, ferry_mover_bind(f, &plan, NULL, x, NULL, &m), "source is NULL");
    says(f, ferry_mover_bind(f, &plan, x, NULL, NULL, &m), "target is NULL");
    says(f, ferry_mover_bind(f, &plan, x, x, NULL, NULL), "out is NULL");
    ferry_xarray_destroy(x);
    ferry_floorplan_fini(&blocks);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    bool gone;
    ferry_handler handler;
    ferry_user_data_set(f, &gone);
    CHECK(ferry_handler_register(f, "let_go", let_go, &handler) == 0);
    missing(f);
    mistakes(f);
    if (ferry_ranks(f) > 1)
        ways(f);
    if (ferry_ranks(f) > 2)
        source_goes(f, &gone, handler);
    bad_ghosts(f);
    mistakes(f);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
