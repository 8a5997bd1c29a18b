/* Goal: a neighbour that dies ends every mover that waits for it with FERRY_EPEER, whichever way
 * the data travels, and movers without it go on.
 * Method: a ring of blocks, one per rank of three; every rank asks to survive deaths. After two
 * movements the last rank is killed where the argument says: before it starts one (start), or when
 * it has started and not waited (wait). The others must get the error from the mover of the ring,
 * and can free all; a mover between the first two ranks works before and after, and can be bound
 * anew. With `line` there is no ring, and the ranks may be more: most are then no neighbours of the
 * dead one, but wait for one that is, or for one that waits for it. All bind a mover that needs
 * the dead rank, with the check; all get the error. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>
#include <ferry/mover.h>

#include "check_that.h"

static void note(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)arg;
    CHECK(event->rank == ferry_ranks(f) - 1 || !event->died);
}

static bool between_first_two(void *arg, const ferry_plan_entry *copy)
{
    (void)arg;
    return copy->source < 2 && copy->target < 2;
}

static ferry_mover *bind_ring(ferry *f, ferry_xarray *x, const ferry_mover_options *options,
                              bool whole, bool ring)
{
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_plan plan = {0};
    ferry_mover *m;
    halo.domain = x->blocks.blocks[0].region;
    halo.domain.high.at[0] = x->blocks.blocks[x->blocks.count - 1].region.high.at[0];
    halo.low = halo.high = ferry_point_of(1, 0, 0);
    halo.periodic[0] = ring;
    CHECK(ferry_plan_halo(&plan, &x->blocks, &halo, ferry_rank(f)) == 0);
    if (!whole)
        ferry_plan_filter(&plan, between_first_two, NULL);
    CHECK(ferry_mover_bind(f, &plan, x, x, options, &m) == 0);
    ferry_plan_fini(&plan);
    return m;
}

/* The last rank may have been ready for one more movement. */
static void move_until_it_ends(ferry *f, ferry_mover *m)
{
    int error = 0;
    for (int i = 0; i < ferry_ranks(f) && error == 0; i++) {
        error = ferry_mover_start(m, NULL);
        if (error == 0)
            error = ferry_mover_wait(m);
    }
    CHECK(error == FERRY_EPEER);
    CHECK(ferry_mover_start(m, NULL) == FERRY_EPEER);
}

/* All know that the last rank is gone. Those that need it fail to bind, and with `check` the others
 * are told why. */
static void bind_checked(ferry *f, ferry_xarray *x, ferry_mover_options options)
{
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_plan plan = {0};
    ferry_mover *m;
    halo.domain = x->blocks.blocks[0].region;
    halo.domain.high.at[0] = x->blocks.blocks[x->blocks.count - 1].region.high.at[0];
    halo.low = halo.high = ferry_point_of(1, 0, 0);
    options.check = true;
    CHECK(ferry_quiesce(f) == 0);
    CHECK(ferry_plan_halo(&plan, &x->blocks, &halo, ferry_rank(f)) == 0);
    CHECK(ferry_mover_bind(f, &plan, x, x, &options, &m) == FERRY_EPEER);
    ferry_plan_fini(&plan);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const bool line = argc > 3 && strcmp(argv[3], "line") == 0;
    if (argc < 3 || ferry_ranks(f) < 3)
        return 2;
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    const int64_t width = strcmp(argv[2], "direct") == 0 ? 4096 : 16;
    options.messages = strcmp(argv[2], "messages") == 0;
    ferry_peer_watch(f, note, NULL);
    ferry_floorplan blocks;
    ferry_xarray *x;
    int64_t extents[2] = {4 * ferry_ranks(f), width};
    ferry_region domain = ferry_region_sized(2, extents);
    CHECK(ferry_floorplan_cut(domain, ferry_point_of(ferry_ranks(f), 1, 1), &blocks) == 0);
    CHECK(ferry_floorplan_map_block(&blocks, ferry_ranks(f)) == 0);
    CHECK(ferry_xarray_create(f, &blocks, sizeof(double), ferry_point_of(1, 0, 0), &x) == 0);
    ferry_mover *ring = bind_ring(f, x, &options, true, !line);
    ferry_mover *pair = bind_ring(f, x, &options, false, !line);
    for (int i = 0; i < 2; i++)
        CHECK(ferry_mover_start(ring, NULL) == 0 && ferry_mover_wait(ring) == 0);
    CHECK(ferry_barrier(f) == 0);
    if (ferry_rank(f) == ferry_ranks(f) - 1) {
        if (strcmp(argv[1], "wait") == 0)
            CHECK(ferry_mover_start(ring, NULL) == 0);
        raise(SIGKILL);
    }
    move_until_it_ends(f, ring);
    CHECK(ferry_mover_start(pair, NULL) == 0 && ferry_mover_wait(pair) == 0);
    CHECK(ferry_mover_free(ring) == 0);
    CHECK(ferry_mover_free(pair) == 0);
    bind_checked(f, x, options);
    if (ferry_rank(f) < 2) { /* those who need nobody else can bind anew */
        pair = bind_ring(f, x, &options, false, !line);
        CHECK(ferry_mover_start(pair, NULL) == 0 && ferry_mover_wait(pair) == 0);
        CHECK(ferry_mover_free(pair) == 0);
    }
    ferry_xarray_destroy(x);
    ferry_floorplan_fini(&blocks);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
