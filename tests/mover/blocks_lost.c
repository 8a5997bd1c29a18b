/* Goal: if a rank has died with blocks, ferry_blocks_settle and ferry_blocks_destroy end with an
 * error that says so, and do not look for the blocks for ever. If the rank had no blocks, they
 * succeed. Method: the second of three ranks is killed after a settlement; with an argument the
 * blocks there have moved to the others before. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ferry/ferry.h>

#include "../support/survive.h"
#include "check_that.h"

enum { DIES = 1 };

static void move_all(ferry *f, const ferry_blocks *set, const ferry_xarray *x)
{
    for (size_t i = 0; i < x->local_count && ferry_rank(f) == DIES; i++)
        CHECK(ferry_object_move(f, ferry_blocks_object(set, x->local[i]), 2 * (int)(i % 2)) == 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const ferry_region domain = ferry_region_sized(2, (const int64_t[]){64, 64});
    ferry_floorplan plan = {0};
    ferry_xarray *x;
    ferry_blocks *set;
    size_t moved = 0;
    int expected = argc > 1 ? 0 : FERRY_EPEER;
    (void)argv;
    CHECK(survive_deaths(f) == 0);
    CHECK(ferry_floorplan_cut(domain, ferry_point_of(4, 4, 1), &plan) == 0);
    CHECK(ferry_floorplan_map_block(&plan, ferry_ranks(f)) == 0);
    CHECK(ferry_xarray_create(f, &plan, 8, ferry_point_of(1, 1, 0), &x) == 0);
    CHECK(ferry_blocks_create(f, &x, 1, &set) == 0);
    if (argc > 1)
        move_all(f, set, x);
    CHECK(ferry_blocks_settle(set, &moved) == 0 && (moved == 0) == (argc == 1));
    CHECK(ferry_barrier(f) == 0);
    if (ferry_rank(f) == DIES)
        (void)kill(getpid(), SIGKILL);
    CHECK(survive_quiesce(f) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(ferry_blocks_settle(set, NULL) == expected);
        CHECK(expected == 0 || strstr(ferry_error_message(f), "5 of 16 blocks are lost") != NULL);
    }
    CHECK(ferry_blocks_destroy(set) == expected);
    if (expected == 0)
        ferry_xarray_destroy(x);
    ferry_floorplan_fini(&plan);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
