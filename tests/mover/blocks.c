/* Goal: blocks that are objects may move in every way: by the program, by their handlers, by a
 * scheduler. After settling, xarrays, ghost cells and movers are as if the blocks had always been
 * where they are. Mistakes are refused and leave everything usable. Method: a program of any number
 * of ranks. Two arrays are a set, a third stands beside it. In each round every block gets a
 * message whose handler fills it with the round's values. Some blocks move themselves, the
 * scheduler moves others. After settling, the test makes a halo within an array of the set, and
 * copies within the set, out of it and into it. They must bring what they would bring at rest.
 * Floor plans are whole, or in every second game shares. The first argument is the seed. */
#include <string.h>

#include <ferry/mover_blocks.h>

#include "cells.h"
#include "dice.h"
#include "shares.h"

typedef struct state {
    ferry_halo halo;
    ferry_floorplan blocks, others;
    ferry_xarray *x, *y, *beside;
    ferry_mover *ghosts, *within, *out, *into;
    ferry_blocks *set;
    ferry_handler handler;
    bool shares;
    uint64_t seed, handled, sent; /* here; in all */
} state;

/* The message of a round to a handler. */
typedef struct round_message {
    int32_t round, moves;
} round_message;

/* Tiles by owner, as shares number them. */
static ferry_floorplan deal(ferry *f, dice *d, ferry_region domain)
{
    ferry_floorplan tiles, out = {.dims = domain.dims};
    ferry_point extents;
    for (int i = 0; i < FERRY_DIMS_MAX; i++)
        extents.at[i] = dice_between(d, 3, 7);
    CHECK(ferry_floorplan_tile(domain, extents, &tiles) == 0);
    for (size_t i = 0; i < tiles.count; i++)
        tiles.blocks[i].owner = (int32_t)dice_between(d, 0, ferry_ranks(f) - 1);
    for (int rank = 0; rank < ferry_ranks(f); rank++)
        for (size_t i = 0; i < tiles.count; i++)
            if (tiles.blocks[i].owner == rank)
                CHECK(ferry_floorplan_add(&out, tiles.blocks[i].region, rank) == 0);
    ferry_floorplan_fini(&tiles);
    return out;
}

/* The share of the first plan, with the blocks near it in the first and in the second plan. */
static ferry_floorplan share_beside(ferry *f, const ferry_floorplan *whole,
                                    const ferry_floorplan *other, const ferry_halo *halo)
{
    ferry_floorplan share, own = own_of(f, whole), theirs = own_of(f, other);
    ferry_regions near = {0};
    CHECK(ferry_halo_near(&own, halo, &near) == 0);
    for (size_t i = 0; i < theirs.count; i++)
        CHECK(ferry_regions_add(&near, theirs.blocks[i].region) == 0);
    CHECK(ferry_floorplan_share(f, &own, &near, &share) == 0);
    ferry_regions_fini(&near);
    ferry_floorplan_fini(&own);
    ferry_floorplan_fini(&theirs);
    return share;
}

/* Fills the block's first grid; now and then takes its time, and goes elsewhere. */
static void run_block(ferry *f, ferry_object object, void *data, int source,
                      const ferry_message *message)
{
    state *s = ferry_user_data(f);
    const ferry_block_data *b = data;
    const ferry_grid *g = &b->grids[0];
    round_message told;
    memcpy(&told, message->data, sizeof told);
    (void)source;
    const ferry_object name = ferry_blocks_object(s->set, b->block);
    CHECK(b->count == 2);
    /* With a share the name may not be known here before the block has settled. */
    CHECK(ferry_object_equal(object, name) || (s->shares && ferry_object_is_none(name)));
    ferry_region own = s->blocks.blocks[b->block].region;
    ferry_point p = g->region.low;
    do
        *(double *)ferry_grid_at(g, p) =
            ferry_region_contains_point(own, p) ? value_of(p, own.dims, told.round) : -1;
    while (ferry_region_next(&g->region, &p));
    dice d = {s->seed * 1000 + (uint64_t)(told.round * 100 + b->block)};
    if (dice_between(&d, 0, 3) == 0)
        ferry_compute(f, 1e-4);
    if (told.moves && dice_between(&d, 0, 2) == 0)
        CHECK(ferry_object_move(f, object, (int)dice_between(&d, 0, ferry_ranks(f) - 1)) == 0);
    s->handled++;
}

static ferry_mover *bind(ferry *f, ferry_plan *plan, ferry_xarray *from, ferry_xarray *to,
                         bool messages)
{
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    ferry_mover *m;
    options.messages = messages;
    CHECK(ferry_mover_bind(f, plan, from, to, &options, &m) == 0);
    ferry_plan_fini(plan);
    return m;
}

static ferry_mover *bind_intersection(ferry *f, ferry_xarray *from, ferry_xarray *to, bool messages)
{
    ferry_plan plan = {0};
    CHECK(ferry_plan_intersect(&plan, &from->blocks, &to->blocks, NULL, ferry_rank(f)) == 0);
    return bind(f, &plan, from, to, messages);
}

static void init(ferry *f, state *s, dice *d)
{
    int64_t extents[2] = {24, 18};
    ferry_plan plan = {0};
    s->halo = (ferry_halo)FERRY_HALO_DEFAULTS;
    s->halo.domain = ferry_region_sized(2, extents);
    s->halo.low = s->halo.high = ferry_point_all(1);
    s->halo.periodic[1] = dice_between(d, 0, 1);
    s->blocks = deal(f, d, s->halo.domain);
    s->others = deal(f, d, s->halo.domain);
    const ferry_point none = ferry_point_all(0);
    ferry_floorplan blocks, others;
    if (s->shares) {
        blocks = share_beside(f, &s->blocks, &s->others, &s->halo);
        others = share_beside(f, &s->others, &s->blocks, &s->halo);
    } else {
        CHECK(ferry_floorplan_copy(&s->blocks, &blocks) == 0);
        CHECK(ferry_floorplan_copy(&s->others, &others) == 0);
    }
    CHECK(ferry_xarray_create(f, &blocks, sizeof(double), s->halo.low, &s->x) == 0);
    CHECK(ferry_xarray_create(f, &blocks, sizeof(double), none, &s->y) == 0);
    CHECK(ferry_xarray_create(f, &others, sizeof(double), none, &s->beside) == 0);
    CHECK(ferry_plan_halo(&plan, &blocks, &s->halo, ferry_rank(f)) == 0);
    ferry_floorplan_fini(&blocks);
    ferry_floorplan_fini(&others);
    s->ghosts = bind(f, &plan, s->x, s->x, dice_between(d, 0, 1));
    s->within = bind_intersection(f, s->x, s->y, dice_between(d, 0, 1));
    s->out = bind_intersection(f, s->y, s->beside, dice_between(d, 0, 1));
    s->into = bind_intersection(f, s->beside, s->y, dice_between(d, 0, 1));
    ferry_xarray *arrays[] = {s->x, s->y};
    CHECK(ferry_blocks_create(f, arrays, 2, &s->set) == 0);
    for (size_t i = 0; i < s->x->local_count; i++)
        if (s->x->local[i] % 3 != 0)
            CHECK(ferry_balance_add(f, ferry_blocks_object(s->set, s->x->local[i]), NULL) == 0);
}

static void fini(ferry *f, state *s)
{
    ferry_mover *movers[] = {s->ghosts, s->within, s->out, s->into};
    for (int i = 0; i < 4; i++)
        CHECK(ferry_mover_free(movers[i]) == 0);
    ferry_xarray_destroy(s->x);
    ferry_xarray_destroy(s->y);
    ferry_xarray_destroy(s->beside);
    ferry_floorplan_fini(&s->blocks);
    ferry_floorplan_fini(&s->others);
}

static void move(ferry *f, ferry_mover *m)
{
    CHECK(ferry_mover_start(m, NULL) == 0 && ferry_mover_wait(m) == 0);
}

/* The xarrays' lists agree with each other, and the owners and names that a rank knows are those of
 * all. */
static void check_lists(ferry *f, const state *s)
{
    uint64_t sum = s->x->local_count;
    const size_t count = s->blocks.count;
    int32_t *owners = calloc(count + 1, sizeof *owners);
    ferry_object *names = calloc(count + 1, sizeof *names);
    CHECK(s->y->local_count == s->x->local_count);
    for (size_t i = 0; i < s->x->local_count; i++) {
        const int32_t number = s->x->local[i];
        CHECK(number == s->y->local[i] && (i == 0 || s->x->local[i - 1] < number));
        owners[number] = ferry_rank(f);
        names[number] = ferry_blocks_object(s->set, number);
        CHECK(ferry_object_data(f, names[number]) != NULL);
    }
    CHECK(ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &sum, &sum, 1) == 0 && sum == count);
    CHECK(ferry_allreduce(f, FERRY_INT32, FERRY_MAX, owners, owners, count) == 0);
    CHECK(ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, names, names, count) == 0);
    for (int32_t b = 0; (size_t)b < count; b++) {
        const ferry_block *x = ferry_floorplan_block(&s->x->blocks, b);
        const ferry_block *y = ferry_floorplan_block(&s->y->blocks, b);
        CHECK(s->shares || (x != NULL && y != NULL));
        CHECK(x == NULL || x->owner == owners[b]);
        CHECK(y == NULL || y->owner == owners[b]);
        CHECK(x == NULL || ferry_object_equal(ferry_blocks_object(s->set, b), names[b]));
    }
    free(owners);
    free(names);
}

static void check_values(ferry *f, const ferry_xarray *x, int round)
{
    for (size_t i = 0; i < x->local_count; i++) {
        ferry_region own = ferry_floorplan_block(&x->blocks, x->local[i])->region;
        ferry_point p = own.low;
        do
            CHECK(*(double *)ferry_grid_at(&x->grids[i], p) == value_of(p, own.dims, round));
        while (ferry_region_next(&own, &p));
    }
}

static void clear(const ferry_xarray *x)
{
    for (size_t i = 0; i < x->local_count; i++)
        memset(x->grids[i].data, 0, ferry_region_size(x->grids[i].region) * sizeof(double));
}

/* All movers, with the round's values in `x`. */
static void check_movers(ferry *f, const state *s, int round)
{
    move(f, s->ghosts);
    check_halo(f, s->x, &s->halo, round);
    clear(s->y);
    move(f, s->within);
    check_values(f, s->y, round);
    clear(s->beside);
    move(f, s->out);
    check_values(f, s->beside, round);
    clear(s->y);
    move(f, s->into);
    check_values(f, s->y, round);
}

/* One round of messages; returns how many blocks moved. */
static size_t run_round(ferry *f, state *s, int round, bool moves)
{
    const round_message told = {.round = round, .moves = moves};
    const ferry_message message = {.handler = s->handler, .data = &told, .size_bytes = sizeof told};
    size_t moved = 12345;
    CHECK(ferry_blocks_send(s->set, &message) == 0);
    CHECK(ferry_mover_start(s->out, NULL) == FERRY_ESTATE);
    CHECK(ferry_blocks_settle(s->set, &moved) == 0);
    uint64_t handled;
    CHECK(ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &s->handled, &handled, 1) == 0);
    s->sent += s->blocks.count;
    CHECK(handled == s->sent && moved <= s->blocks.count);
    check_lists(f, s);
    check_values(f, s->x, round);
    check_movers(f, s, round);
    return moved;
}

static void mistakes(ferry *f, state *s)
{
    ferry_xarray *arrays[] = {s->beside, s->y};
    ferry_blocks *none = NULL;
    int32_t *owners = calloc(s->blocks.count, sizeof *owners);
    CHECK(ferry_blocks_create(f, arrays, 0, &none) == FERRY_EINVAL);
    CHECK(strstr(ferry_error_message(f), "no arrays") != NULL);
    CHECK(ferry_blocks_create(f, arrays, 2, &none) == FERRY_EINVAL);
    CHECK(strstr(ferry_error_message(f), "array 1 is in a set") != NULL);
    arrays[1] = s->beside;
    CHECK(ferry_blocks_create(f, arrays, 2, &none) == FERRY_EINVAL && none == NULL);
    CHECK(strstr(ferry_error_message(f), "array 1 is given twice") != NULL);
    CHECK(ferry_xarray_remap(s->x, owners) == FERRY_EINVAL);
    CHECK(strstr(ferry_error_message(f), "objects") != NULL);
    CHECK(ferry_object_is_none(ferry_blocks_object(s->set, -1)));
    CHECK(ferry_object_is_none(ferry_blocks_object(s->set, (int32_t)s->blocks.count)));
    CHECK(ferry_mover_start(s->ghosts, NULL) == 0);
    const ferry_message message = {.handler = s->handler};
    CHECK(ferry_blocks_send(s->set, &message) == FERRY_ESTATE);
    CHECK(ferry_mover_wait(s->ghosts) == 0);
    CHECK(ferry_blocks_destroy(NULL) == 0);
    free(owners);
}

/* Every block to the next rank, by the program, without a message. */
static void shift(ferry *f, state *s)
{
    size_t moved = 0;
    for (size_t i = 0; i < s->x->local_count; i++)
        CHECK(ferry_object_move(f, ferry_blocks_object(s->set, s->x->local[i]),
                                (ferry_rank(f) + 1) % ferry_ranks(f)) == 0);
    CHECK(ferry_blocks_settle(s->set, &moved) == 0);
    CHECK(moved == (ferry_ranks(f) > 1 ? s->blocks.count : 0));
    CHECK(ferry_blocks_settle(s->set, &moved) == 0 && moved == 0);
    check_lists(f, s);
}

/* Every block to the next rank and back: nobody has other blocks than before but, where no memory
 * is shared, other grids. Names of far blocks are not known with shares, so those stay. */
static void swing(ferry *f, state *s)
{
    const int ranks = ferry_ranks(f), rank = ferry_rank(f), before = (rank + ranks - 1) % ranks;
    size_t moved = 0;
    for (size_t i = 0; i < s->x->local_count; i++)
        CHECK(ferry_object_move(f, ferry_blocks_object(s->set, s->x->local[i]),
                                (rank + 1) % ranks) == 0);
    CHECK(ferry_quiesce(f) == 0);
    for (size_t b = 0; b < s->blocks.count; b++) {
        const ferry_block *block = ferry_floorplan_block(&s->x->blocks, (int32_t)b);
        ferry_object object = ferry_blocks_object(s->set, (int32_t)b);
        if (block != NULL && block->owner == before && !ferry_object_is_none(object))
            CHECK(ferry_object_move(f, object, before) == 0);
    }
    CHECK(ferry_blocks_settle(s->set, &moved) == 0);
    CHECK(moved == 0 || s->x->blocks.numbers != NULL);
    check_lists(f, s);
}

static void play(ferry *f, state *s, dice *d)
{
    size_t moved = 0;
    int round = 0;
    init(f, s, d);
    CHECK(ferry_balance_enable(f, true) == 0);
    for (; round < 6; round++)
        moved += run_round(f, s, round + 1, round > 1);
    CHECK(moved > 0 || ferry_ranks(f) == 1);
    CHECK(ferry_balance_enable(f, false) == 0);
    mistakes(f, s);
    shift(f, s);
    check_movers(f, s, round);
    swing(f, s);
    check_movers(f, s, round);
    (void)run_round(f, s, ++round, true);
    CHECK(ferry_blocks_destroy(s->set) == 0);
    check_movers(f, s, round);
    int32_t *owners = calloc(s->blocks.count, sizeof *owners);
    CHECK(ferry_xarray_remap(s->x, owners) == 0);
    check_movers(f, s, round);
    free(owners);
    fini(f, s);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    dice common = {argc > 1 ? strtoull(argv[1], NULL, 10) : 1};
    const int repeats = argc > 2 ? atoi(argv[2]) : 3;
    state s = {.seed = common.state};
    ferry_user_data_set(f, &s);
    CHECK(ferry_object_handler_register(f, "run_block", run_block, &s.handler) == 0);
    for (int i = 0; i < repeats; i++) {
        s.shares = (s.seed + (uint64_t)i) % 2 != 0;
        play(f, &s, &common);
    }
    CHECK(ferry_object_count(f) == 0);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
