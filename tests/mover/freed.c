/* Goal: no rank waits forever for a neighbour that moves no more. If a neighbour frees a mover
 * without a movement, this movement fails with FERRY_EPEER on the ranks that wait for it. If it
 * frees the mover after its last movement, slower ranks still end theirs. If a rank that this one
 * needs is dead, its bind fails, though a living neighbour never binds.
 * Method: a ring of blocks, one for each of three ranks, and a mover that is freed early by rank 1
 * alone, then one that is freed as soon as each rank is done. In the end rank 2 is killed, and rank
 * 1 quiesces while rank 0 binds. The argument is the way that the data travel. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>
#include <ferry/mover.h>

#include "../support/survive.h"
#include "check_that.h"

typedef struct ring {
    ferry_xarray *x;
    ferry_plan plan;
    ferry_mover_options options;
} ring;

static void ring_make(ferry *f, const char *way, ring *r)
{
    ferry_floorplan blocks;
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    const int64_t extents[2] = {4 * ferry_ranks(f), strcmp(way, "direct") == 0 ? 4096 : 16};
    *r = (ring){.options = FERRY_MOVER_OPTIONS_DEFAULTS};
    r->options.messages = strcmp(way, "messages") == 0;
    halo.low = halo.high = ferry_point_of(1, 0, 0);
    halo.domain = ferry_region_sized(2, extents);
    halo.periodic[0] = true;
    CHECK(ferry_floorplan_cut(halo.domain, ferry_point_of(ferry_ranks(f), 1, 1), &blocks) == 0);
    CHECK(ferry_floorplan_map_block(&blocks, ferry_ranks(f)) == 0);
    CHECK(ferry_xarray_create(f, &blocks, sizeof(double), halo.low, &r->x) == 0);
    CHECK(ferry_plan_halo(&r->plan, &blocks, &halo, ferry_rank(f)) == 0);
    ferry_floorplan_fini(&blocks);
}

static int ring_bind(ferry *f, ring *r, ferry_mover **out)
{
    return ferry_mover_bind(f, &r->plan, r->x, r->x, &r->options, out);
}

static int move(ferry_mover *m)
{
    const int error = ferry_mover_start(m, NULL);
    return error != 0 ? error : ferry_mover_wait(m);
}

/* The others have started the movement when rank 1 frees, or start it afterwards. */
static void free_early(ferry *f, ring *r)
{
    ferry_mover *m;
    int error = 0;
    CHECK(ring_bind(f, r, &m) == 0);
    CHECK(move(m) == 0);
    CHECK(ferry_barrier(f) == 0);
    if (ferry_rank(f) != 1) {
        /* A source can be a few movements ahead of its target. */
        for (int i = 0; i < 10 && error == 0; i++)
            error = move(m);
        CHECK(error == FERRY_EPEER);
        CHECK(ferry_mover_start(m, NULL) == FERRY_EPEER);
    }
    CHECK(ferry_mover_free(m) == 0);
    CHECK(ferry_barrier(f) == 0);
}

/* The ranks that are done free while others have not looked at their data yet. */
static void free_when_done(ferry *f, ring *r)
{
    for (int i = 0; i < 50; i++) {
        ferry_mover *m;
        r->options.ordered = i % 2 == 1;
        r->options.deferred = i % 4 > 1;
        CHECK(ring_bind(f, r, &m) == 0);
        for (int k = 0; k < 3; k++) {
            if (ferry_rank(f) == i % ferry_ranks(f))
                CHECK(ferry_wait(f, 100 * 1000) >= 0);
            CHECK(move(m) == 0);
        }
        CHECK(ferry_mover_free(m) == 0);
    }
    CHECK(ferry_barrier(f) == 0);
}

/* Rank 0 waits for the handshake of rank 1 first, which never comes. */
static void bind_without(ferry *f, ring *r)
{
    ferry_mover *m;
    if (ferry_rank(f) == 2)
        raise(SIGKILL);
    if (ferry_rank(f) == 0)
        CHECK(ring_bind(f, r, &m) == FERRY_EPEER);
    CHECK(survive_quiesce(f) == 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    ring r;
    if (argc < 2 || ferry_ranks(f) != 3)
        return 2;
    CHECK(survive_deaths(f) == 0);
    ring_make(f, argv[1], &r);
    free_early(f, &r);
    free_when_done(f, &r);
    bind_without(f, &r);
    ferry_plan_fini(&r.plan);
    ferry_xarray_destroy(r.x);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
