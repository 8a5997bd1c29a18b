/* Goal: a block rests while a mover of its xarray is in flight on its rank, whatever other ranks
 * send. No handler sees a grid that is half filled, no block leaves with one, and no rank waits
 * forever. Method: three ranks with a block each, in a chain. A message to a block makes it check
 * its ghost cells and go to the next lower rank.
 * - early: rank 2 starts its mover only when rank 0 has ended its own and has sent to block 1.
 * - before: block 1 goes before rank 1 has started its mover. The start must name the block.
 * - settle: rank 1 settles with a mover in flight, and block 1 has a message. All must get an
 * error. The first argument says whether the movers use messages. */
#include <string.h>

#include <ferry/mover_blocks.h>

#include "cells.h"

enum { EXTENT = 300, PART = EXTENT / 3, ROUND = 7 };

typedef struct state {
    ferry_halo halo;
    ferry_xarray *x;
    ferry_mover *ghosts;
    ferry_blocks *set;
    ferry_handler go, tell;
    bool told; /* rank 0 has sent to block 1 */
    bool checks;
} state;

static void told(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)source;
    (void)message;
    s->told = true;
}

/* Both ghost cells of a block have the values of the movement; at the ends there are none. */
static void check_ghosts(ferry *f, const ferry_block_data *b)
{
    const ferry_grid *g = &b->grids[0];
    const ferry_point ends[] = {g->region.low, g->region.high};
    for (int i = 0; i < 2; i++) {
        const bool inside = ends[i].at[0] >= 0 && ends[i].at[0] < EXTENT;
        CHECK(*(double *)ferry_grid_at(g, ends[i]) == (inside ? value_of(ends[i], 1, ROUND) : -1));
    }
}

/* Word 0: whether the block sends on to the next block; word 1: whether it goes. */
static void run_block(ferry *f, ferry_object object, void *data, int source,
                      const ferry_message *message)
{
    state *s = ferry_user_data(f);
    const ferry_block_data *b = data;
    (void)source;
    if (s->checks)
        check_ghosts(f, b);
    if (message->words[0] != 0 && b->block == 0) {
        const ferry_message on = {.handler = s->go, .word_count = 2, .words = {0, 1}};
        const ferry_message tell = {.handler = s->tell};
        CHECK(ferry_object_send(f, ferry_blocks_object(s->set, 1), &on, NULL) == 0);
        CHECK(ferry_request_send(f, 2, &tell, NULL) == 0);
    }
    if (message->words[1] != 0)
        CHECK(ferry_object_move(f, object, ferry_rank(f) == 0 ? 0 : ferry_rank(f) - 1) == 0);
}

static void init(ferry *f, state *s, bool messages)
{
    const int64_t extent = EXTENT;
    ferry_floorplan blocks = {0};
    ferry_plan plan = {0};
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    options.messages = messages;
    s->halo = (ferry_halo)FERRY_HALO_DEFAULTS;
    s->halo.domain = ferry_region_sized(1, &extent);
    s->halo.low = s->halo.high = ferry_point_all(1);
    CHECK(ferry_floorplan_cut(s->halo.domain, ferry_point_all(3), &blocks) == 0);
    CHECK(ferry_floorplan_map_block(&blocks, 3) == 0);
    CHECK(ferry_xarray_create(f, &blocks, sizeof(double), ferry_point_all(1), &s->x) == 0);
    CHECK(ferry_plan_halo(&plan, &blocks, &s->halo, ferry_rank(f)) == 0);
    CHECK(ferry_mover_bind(f, &plan, s->x, s->x, &options, &s->ghosts) == 0);
    CHECK(ferry_blocks_create(f, &s->x, 1, &s->set) == 0);
    fill(s->x, ROUND);
    s->told = s->checks = false;
    ferry_plan_fini(&plan);
    ferry_floorplan_fini(&blocks);
    CHECK(ferry_barrier(f) == 0);
}

/* The xarray is usable, wherever its blocks are. */
static void fini(ferry *f, state *s)
{
    s->checks = false;
    fill(s->x, ROUND + 1);
    CHECK(ferry_mover_start(s->ghosts, NULL) == 0 && ferry_mover_wait(s->ghosts) == 0);
    check_halo(f, s->x, &s->halo, ROUND + 1);
    CHECK(ferry_mover_free(s->ghosts) == 0);
    CHECK(ferry_blocks_destroy(s->set) == 0);
    ferry_xarray_destroy(s->x);
}

static void test_early(ferry *f, state *s, bool messages)
{
    const ferry_message go = {.handler = s->go, .word_count = 2, .words = {1, 0}};
    size_t moved = 0;
    init(f, s, messages);
    s->checks = true;
    while (ferry_rank(f) == 2 && !s->told)
        CHECK(ferry_wait(f, FERRY_FOREVER) >= 0);
    CHECK(ferry_mover_start(s->ghosts, NULL) == 0);
    if (ferry_rank(f) == 2)
        CHECK(ferry_object_move(f, ferry_blocks_object(s->set, 2), 0) == FERRY_ENOENT ||
              ferry_mover_test(s->ghosts) == 0);
    CHECK(ferry_mover_wait(s->ghosts) == 0);
    CHECK(ferry_blocks_send(s->set, &go) == 0);
    CHECK(ferry_blocks_settle(s->set, &moved) == 0 && moved == 1);
    check_halo(f, s->x, &s->halo, ROUND);
    fini(f, s);
}

static void test_before(ferry *f, state *s, bool messages)
{
    const ferry_message go = {.handler = s->go, .word_count = 2, .words = {0, 1}};
    size_t moved = 0;
    init(f, s, messages);
    const ferry_object block = ferry_blocks_object(s->set, 1);
    if (ferry_rank(f) == 0)
        CHECK(ferry_object_send(f, block, &go, NULL) == 0);
    if (ferry_rank(f) == 1) {
        while (ferry_object_data(f, block) != NULL)
            CHECK(ferry_wait(f, FERRY_FOREVER) >= 0);
        CHECK(ferry_mover_start(s->ghosts, NULL) == FERRY_ESTATE);
        CHECK(strstr(ferry_error_message(f), "block 1 has moved") != NULL);
    }
    CHECK(ferry_blocks_settle(s->set, &moved) == 0 && moved == 1);
    fini(f, s);
}

static void test_settle(ferry *f, state *s, bool messages)
{
    const ferry_message go = {.handler = s->go, .word_count = 2, .words = {0, 1}};
    size_t moved = 0;
    init(f, s, messages);
    if (ferry_rank(f) == 1)
        CHECK(ferry_mover_start(s->ghosts, NULL) == 0);
    CHECK(ferry_barrier(f) == 0);
    if (ferry_rank(f) == 0)
        CHECK(ferry_object_send(f, ferry_blocks_object(s->set, 1), &go, NULL) == 0);
    CHECK(ferry_blocks_settle(s->set, &moved) == FERRY_ESTATE);
    if (ferry_rank(f) != 1)
        CHECK(ferry_mover_start(s->ghosts, NULL) == 0);
    CHECK(ferry_mover_wait(s->ghosts) == 0);
    CHECK(ferry_blocks_settle(s->set, &moved) == 0 && moved == 1);
    fini(f, s);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const bool messages = argc > 1 && strcmp(argv[1], "messages") == 0;
    state s = {0};
    ferry_user_data_set(f, &s);
    CHECK(ferry_ranks(f) == 3);
    CHECK(ferry_object_handler_register(f, "run_block", run_block, &s.go) == 0);
    CHECK(ferry_handler_register(f, "told", told, &s.tell) == 0);
    for (int i = 0; i < 5; i++) {
        test_early(f, &s, messages);
        test_before(f, &s, messages);
        test_settle(f, &s, messages);
    }
    CHECK(ferry_object_count(f) == 0);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
