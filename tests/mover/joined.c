/* Goal: a rank that has joined binds movers with the others, and makes their sets of blocks, though
 * they have bound movers and made sets before it came.
 * Method: two ranks use a ring of blocks twice, and start a third one. When it is a member, all
 * three make a collection, whose type gets the number after that of blocks, and use a ring of
 * blocks. The blocks move as objects, each to the next member, and the mover follows. */
#include <stdlib.h>

#include <ferry/ferry.h>
#include <ferry/member.h>
#include <ferry/mover_blocks.h>

#include "../support/survive.h"
#include "check_that.h"

enum { RANKS = 2, WIDTH = 8 };

static void move(ferry *f, ferry_mover *m)
{
    CHECK(ferry_mover_start(m, NULL) == 0);
    CHECK(ferry_mover_wait(m) == 0);
}

/* Moves each block of the ring to the next member. */
static void pass_on(ferry *f, ferry_xarray *x)
{
    const int count = ferry_member_count(f), place = ferry_member_place(f, ferry_rank(f));
    ferry_blocks *set;
    size_t moved;
    CHECK(ferry_blocks_create(f, &x, 1, &set) == 0);
    const ferry_object mine = ferry_blocks_object(set, place);
    CHECK(ferry_object_move(f, mine, ferry_member_rank(f, (place + 1) % count)) == 0);
    CHECK(ferry_blocks_settle(set, &moved) == 0);
    CHECK(moved == (size_t)count);
    CHECK(ferry_blocks_destroy(set) == 0);
}

/* Each member has a block, and fills it with the number of its place. */
static void use_ring(ferry *f)
{
    const int count = ferry_member_count(f), place = ferry_member_place(f, ferry_rank(f));
    const int64_t extent = (int64_t)WIDTH * count;
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_floorplan blocks;
    ferry_plan plan = {0};
    ferry_xarray *x;
    ferry_mover *m;
    halo.low = halo.high = ferry_point_of(1, 0, 0);
    halo.domain = ferry_region_sized(1, &extent);
    halo.periodic[0] = true;
    CHECK(ferry_floorplan_cut(halo.domain, ferry_point_of(count, 1, 1), &blocks) == 0);
    for (int i = 0; i < count; i++)
        blocks.blocks[i].owner = ferry_member_rank(f, i);
    CHECK(ferry_plan_halo(&plan, &blocks, &halo, ferry_rank(f)) == 0);
    CHECK(ferry_xarray_create(f, &blocks, sizeof(double), halo.low, &x) == 0);
    options.check = true;
    CHECK(ferry_mover_bind(f, &plan, x, x, &options, &m) == 0);
    for (int i = 1; i <= WIDTH; i++)
        ((double *)x->grids[0].data)[i] = place;
    move(f, m);
    pass_on(f, x);
    move(f, m);
    const double *cells = x->grids[0].data;
    const int here = (place + count - 1) % count; /* whose block this is now */
    CHECK(cells[1] == here && cells[WIDTH] == here);
    CHECK(cells[0] == (here + count - 1) % count && cells[WIDTH + 1] == place);
    CHECK(ferry_mover_free(m) == 0);
    ferry_xarray_destroy(x);
    ferry_floorplan_fini(&blocks);
    ferry_plan_fini(&plan);
}

static void *make_nothing(ferry *f, ferry_element *element, void *arg, const void *bytes,
                          size_t size_bytes)
{
    (void)f, (void)element, (void)arg, (void)bytes, (void)size_bytes;
    return NULL;
}

/* Makes a collection without elements, and ends it. */
static void use_collection(ferry *f)
{
    static const ferry_object_ops ops = {.size = sizeof ops, .name = "datum", .flat_bytes = 8};
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    ferry_collection *c;
    options.ops = &ops;
    options.make = make_nothing;
    CHECK(ferry_collection_create(f, &options, &c) == 0);
    CHECK(ferry_collection_destroy(c) == 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    int first;
    CHECK(survive_deaths(f) == 0);
    for (int i = 0; i < 2 && ferry_member_count(f) == RANKS; i++)
        use_ring(f);
    if (ferry_member_count(f) == RANKS && ferry_rank(f) == 0)
        CHECK(ferry_spawn(f, 1, NULL, &first) == 0);
    do
        CHECK(ferry_quiesce(f) == 0);
    while (ferry_member_count(f) == RANKS);
    use_collection(f);
    use_ring(f);
    return ferry_barrier(f);
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
