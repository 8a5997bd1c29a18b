/* Goal: the account that a mover gives of its links is true: the copies, bytes and messages for
 * each pair of ranks. This holds whichever way they go, over regions and over indices, and after
 * blocks have changed owners. Entries of FERRY_SAMPLE count the points that they bring. Method: a
 * program of any number of ranks with one block each in a ring, whose halos and samples can be
 * counted by hand; the plan's own account beside the mover's. With a number of rounds as the
 * argument it prints the messages that the movers say they have sent. account_test.sh compares
 * these with those that the runtime has counted. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>
#include <ferry/mover.h>

#include "arrays.h"

enum { EXTENT = 12 };

/* Sum of what all movers freed so far have sent, acknowledgements included. */
static _Thread_local uint64_t frames;

static int compare_pairs(const void *a, const void *b)
{
    const ferry_mover_pair *x = a, *y = b;
    return x->source != y->source ? x->source - y->source : x->target - y->target;
}

/* The mover's pairs are those of its plan's account that concern this rank; sums fit. */
static void check_pairs(ferry *f, const ferry_mover *m, const ferry_plan_stats *plan,
                        size_t packet_bytes)
{
    const int self = ferry_rank(f);
    ferry_mover_pair *pairs = calloc(2 * (size_t)ferry_ranks(f) + 1, sizeof *pairs);
    ferry_mover_stats stats = FERRY_MOVER_STATS_DEFAULTS;
    uint64_t sums[2] = {0}, messages[2] = {0};
    size_t k = 0;
    const size_t count = ferry_mover_pairs_get(m, pairs, 2 * (size_t)ferry_ranks(f));
    CHECK(ferry_mover_pairs_get(m, NULL, 0) == count);
    ferry_mover_stats_get(m, &stats);
    CHECK(count == stats.neighbours_in + stats.neighbours_out);
    qsort(pairs, count, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < plan->pair_count; i++) {
        const ferry_plan_pair *wanted = &plan->pairs[i];
        if (wanted->source != self && wanted->target != self)
            continue;
        const ferry_mover_pair *found = &pairs[k++];
        const bool out = wanted->source == self, packed = found->way == FERRY_WAY_MESSAGES;
        CHECK(k <= count && found->source == wanted->source && found->target == wanted->target);
        CHECK(found->copies == wanted->copies);
        CHECK(found->bytes == wanted->points * sizeof(double));
        CHECK(packed == (packet_bytes > 0));
        CHECK(packed || found->messages == 0);
        CHECK(!packed || found->messages >= (found->bytes + packet_bytes - 1) / packet_bytes);
        sums[out] += found->bytes;
        messages[out] += found->messages;
    }
    CHECK(k == count);
    CHECK(sums[0] == stats.bytes_in && sums[1] == stats.bytes_out);
    CHECK(messages[0] == stats.messages_in && messages[1] == stats.messages_out);
    CHECK(stats.bytes_local == plan->local_points * sizeof(double) || ferry_ranks(f) > 1);
    free(pairs);
}

/* Counts the frames that the movements of `m` have sent from here. */
static void count_frames(const ferry_mover *m)
{
    ferry_mover_stats stats = FERRY_MOVER_STATS_DEFAULTS;
    ferry_mover_stats_get(m, &stats);
    const uint64_t acks = stats.neighbours_in - stats.direct_in;
    frames += stats.movements * (stats.messages_out + acks);
}

static ferry_floorplan ring_of(ferry *f, ferry_region *domain)
{
    ferry_floorplan blocks;
    *domain = ferry_region_sized(2, (int64_t[]){EXTENT * ferry_ranks(f), EXTENT});
    CHECK(ferry_floorplan_tile(*domain, ferry_point_all(EXTENT), &blocks) == 0);
    CHECK(ferry_floorplan_map_block(&blocks, ferry_ranks(f)) == 0);
    return blocks;
}

static void halos(ferry *f, bool messages, size_t packet_bytes, int rounds)
{
    ferry_region domain;
    ferry_floorplan blocks = ring_of(f, &domain);
    ferry_xarray *x = make_array(f, &blocks, ferry_point_all(1), false);
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    ferry_plan plan = {0};
    ferry_plan_stats account = FERRY_PLAN_STATS_DEFAULTS;
    ferry_mover_stats stats = FERRY_MOVER_STATS_DEFAULTS;
    ferry_mover *m;
    const int ranks = ferry_ranks(f), self = ferry_rank(f);
    const uint64_t sides = (uint64_t)(self > 0) + (uint64_t)(self < ranks - 1);
    halo.low = halo.high = ferry_point_all(1);
    options.messages = messages;
    options.packet_bytes = packet_bytes;
    CHECK(ferry_plan_halo(&plan, &blocks, &halo, -1) == 0);
    CHECK(ferry_plan_account(&plan, &blocks, &blocks, &account) == 0);
    CHECK(ferry_mover_bind(f, &plan, x, x, &options, &m) == 0);
    check_pairs(f, m, &account, !messages ? 0 : packet_bytes > 0 ? packet_bytes : SIZE_MAX / 2);
    ferry_mover_stats_get(m, &stats);
    const uint64_t side_bytes = EXTENT * sizeof(double);
    const uint64_t each = packet_bytes > 0 ? (side_bytes + packet_bytes - 1) / packet_bytes : 1;
    CHECK(stats.bytes_in == sides * side_bytes && stats.bytes_out == stats.bytes_in);
    CHECK(stats.messages_out == (messages ? sides * each : 0));
    CHECK(stats.messages_in == stats.messages_out);
    for (int round = 1; round <= rounds; round++) {
        fill(x, round);
        CHECK(ferry_mover_start(m, NULL) == 0 && ferry_mover_wait(m) == 0);
        check_halo(f, x, &halo, round);
    }
    ferry_mover_stats_get(m, &stats);
    CHECK(stats.movements == (uint64_t)rounds);
    count_frames(m);
    CHECK(ferry_mover_free(m) == 0);
    free(account.pairs);
    ferry_plan_fini(&plan);
    free_array(x);
    ferry_floorplan_fini(&blocks);
}

/* Every second cell of the other's block, to a coarse array whose blocks go round by one rank; and
 * again after the fine blocks have gone round too. */
static void samples(ferry *f)
{
    const int ranks = ferry_ranks(f), self = ferry_rank(f);
    ferry_region domain;
    ferry_floorplan fine = ring_of(f, &domain), coarse;
    ferry_intersection intersection = FERRY_INTERSECTION_DEFAULTS;
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    ferry_plan plan = {0};
    ferry_plan_stats account = FERRY_PLAN_STATS_DEFAULTS;
    ferry_mover_stats stats = FERRY_MOVER_STATS_DEFAULTS;
    ferry_mover *m;
    int32_t *owners = calloc((size_t)ranks, sizeof *owners);
    intersection.relation = FERRY_SAMPLE;
    intersection.ratio[0] = intersection.ratio[1] = 2;
    options.messages = true;
    CHECK(ferry_floorplan_tile(ferry_region_coarsen(domain, ferry_point_all(2)),
                               ferry_point_all(EXTENT / 2), &coarse) == 0);
    for (int i = 0; i < ranks; i++)
        coarse.blocks[i].owner = owners[i] = (i + 1) % ranks;
    ferry_xarray *x = make_array(f, &fine, ferry_point_all(0), false);
    ferry_xarray *y = make_array(f, &coarse, ferry_point_all(0), false);
    CHECK(ferry_plan_intersect(&plan, &fine, &coarse, &intersection, -1) == 0);
    CHECK(plan.count == (size_t)ranks);
    CHECK(ferry_mover_bind(f, &plan, x, y, &options, &m) == 0);
    for (int round = 1; round <= 2; round++) {
        CHECK(ferry_plan_account(&plan, &x->blocks, &coarse, &account) == 0);
        check_pairs(f, m, &account, SIZE_MAX / 2);
        ferry_mover_stats_get(m, &stats);
        const uint64_t bytes = EXTENT / 2 * (EXTENT / 2) * sizeof(double);
        const bool local = round == 2 || ranks == 1; /* the owners are the same then */
        CHECK(stats.bytes_local == (local ? bytes : 0));
        CHECK(stats.bytes_in == (local ? 0 : bytes) && stats.messages_in == !local);
        fill(x, round);
        CHECK(ferry_mover_start(m, NULL) == 0 && ferry_mover_wait(m) == 0);
        for (size_t i = 0; i < y->local_count; i++) {
            ferry_point p = y->grids[i].region.low;
            do {
                const ferry_point q = {{2 * p.at[0], 2 * p.at[1]}};
                CHECK(*(double *)ferry_grid_at(&y->grids[i], p) == value_of(q, 2, round));
            } while (ferry_region_next(&y->grids[i].region, &p));
        }
        if (round == 1)
            count_frames(m);
        free(account.pairs);
        if (round == 1)
            CHECK(ferry_xarray_remap(x, owners) == 0);
    }
    CHECK(stats.movements == 1); /* of before; now there is one more */
    ferry_mover_stats_get(m, &stats);
    CHECK(stats.movements == 2 && x->local[0] == (self + ranks - 1) % ranks);
    CHECK(ferry_mover_free(m) == 0);
    free(owners);
    ferry_plan_fini(&plan);
    free_array(x);
    free_array(y);
    ferry_floorplan_fini(&fine);
    ferry_floorplan_fini(&coarse);
}

/* Each rank has two ghosts of the next one's first cells. */
static void indices(ferry *f)
{
    const int ranks = ferry_ranks(f), next = (ferry_rank(f) + 1) % ranks;
    double cells[6] = {ferry_rank(f), 10 + ferry_rank(f)};
    const ferry_grid grid = ferry_grid_over(ferry_region_sized(1, (int64_t[]){6}), 8, cells);
    const ferry_ghost items[] = {{.local = 2, .remote = 0, .owner = next},
                                 {.local = 3, .remote = 1, .owner = next}};
    const ferry_ghosts ghosts = {.items = items, .count = 2};
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    ferry_mover_pair pairs[2];
    ferry_mover_stats stats = FERRY_MOVER_STATS_DEFAULTS;
    ferry_mover *m;
    options.messages = true;
    options.packet_bytes = 8;
    CHECK(ferry_mover_bind_ghosts(f, &ghosts, &grid, &grid, &options, &m) == 0);
    const size_t count = ferry_mover_pairs_get(m, pairs, 2);
    ferry_mover_stats_get(m, &stats);
    CHECK(count == (ranks > 1 ? 2 : 0));
    CHECK(count == 0 || (pairs[0].source == next && pairs[0].target == ferry_rank(f)));
    for (size_t i = 0; i < count; i++)
        CHECK(pairs[i].copies == 2 && pairs[i].bytes == 16 && pairs[i].messages == 2);
    CHECK(stats.bytes_local == (ranks > 1 ? 0 : 16) && stats.bytes_out == count / 2 * 16);
    CHECK(ferry_mover_start(m, NULL) == 0 && ferry_mover_wait(m) == 0);
    CHECK(cells[2] == next && cells[3] == 10 + next);
    count_frames(m);
    CHECK(ferry_mover_free(m) == 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 5;
    halos(f, true, 0, rounds);
    halos(f, true, 40, rounds);
    indices(f);
    if (argc == 1) { /* wakes are not counted, and remaps have some */
        samples(f);
        halos(f, false, 0, rounds);
    }
    CHECK(ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &frames, &frames, 1) == 0);
    if (argc > 1 && ferry_rank(f) == 0)
        printf("frames %" PRIu64 "\n", frames);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
