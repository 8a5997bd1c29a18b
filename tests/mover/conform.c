/* Goal: every movement brings exactly what the plan says, whatever way the mover takes: straight
 * through the shared heap, by messages, in packets, from the caller's memory. This holds over and
 * over, with several movers in flight and ranks that are late. Method: a program of any number of
 * ranks, which are processes or threads. Each cell holds a number made of its coordinates and the
 * round; after each movement every cell of every grid is compared with what it must hold. The first
 * argument is the seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>
#include <ferry/mover.h>

#include "arrays.h"

/* Keeps a rank busy for a while, now and then. */
static void linger(dice *own)
{
    for (volatile int64_t i = dice_between(own, 0, 3) ? 0 : dice_between(own, 0, 50000); i > 0; i--)
        continue;
}

/* As linger, now and then with the rank in the hands of another thread, where there are threads. */
static void linger_apart(ferry *f, dice *own)
{
    int begun = dice_between(own, 0, 2) == 0 ? ferry_background_begin(f) : FERRY_ENOTSUP;
    CHECK(begun == 0 || begun == FERRY_ENOTSUP);
    linger(own);
    if (begun == 0)
        CHECK(ferry_background_end(f) == 0);
}

static void halos(ferry *f, dice *d, dice *own)
{
    int dims = (int)dice_between(d, 1, 3);
    ferry_point extent = ferry_point_all(dims == 1 ? 40 : 15);
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    halo.domain = ferry_region_sized(dims, extent.at);
    halo.low = halo.high = ferry_point_all(dice_between(d, 1, 2));
    halo.faces_only = dice_between(d, 0, 1);
    for (int i = 0; i < dims; i++)
        halo.periodic[i] = dice_between(d, 0, 1);
    way w = random_way(d);
    ferry_floorplan blocks = random_plan(f, d, halo.domain, false);
    ferry_xarray *x = make_array(f, &blocks, halo.low, w.borrowed);
    ferry_plan plan = {0};
    ferry_mover *m;
    CHECK(ferry_plan_halo(&plan, &blocks, &halo, ferry_rank(f)) == 0);
    CHECK(ferry_mover_bind(f, &plan, x, x, &w.options, &m) == 0);
    ferry_plan_fini(&plan);
    for (int round = 1; round <= 8; round++) {
        fill(x, round);
        linger(own);
        CHECK(ferry_mover_start(m, NULL) == 0);
        CHECK(ferry_mover_start(m, NULL) == FERRY_ESTATE || ferry_mover_test(m) == 0);
        linger_apart(f, own);
        CHECK(ferry_mover_wait(m) == 0);
        check_halo(f, x, &halo, round);
    }
    CHECK(ferry_mover_free(m) == 0);
    free_array(x);
    ferry_floorplan_fini(&blocks);
}

/* A cell of the target of a permuted redistribution, by the source's coordinates. */
static void check_turned(ferry *f, const ferry_xarray *x, const int8_t *axis, int round)
{
    for (size_t i = 0; i < x->local_count; i++) {
        const ferry_grid *g = &x->grids[i];
        ferry_point p = g->region.low;
        do {
            ferry_point q = p;
            for (int d = 0; d < g->region.dims; d++)
                q.at[axis[d]] = p.at[d];
            CHECK(*(double *)ferry_grid_at(g, p) == value_of(q, g->region.dims, round));
        } while (ferry_region_next(&g->region, &p));
    }
}

/* There and back at once, with two movers in flight, one of them as an operation. */
static void redistributions(ferry *f, dice *d, dice *own)
{
    static const int8_t orders[4][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}};
    int64_t extents[3] = {11, 14, 9}, turned[3];
    ferry_intersection intersection = FERRY_INTERSECTION_DEFAULTS;
    intersection.permuted = true;
    memcpy(intersection.axis, orders[dice_between(d, 0, 3)], 3);
    for (int i = 0; i < 3; i++)
        turned[i] = extents[intersection.axis[i]];
    way w = random_way(d), v = random_way(d);
    ferry_floorplan a = random_plan(f, d, ferry_region_sized(3, extents), true);
    ferry_floorplan b = random_plan(f, d, ferry_region_sized(3, turned), true);
    ferry_xarray *from = make_array(f, &a, ferry_point_all(1), w.borrowed);
    ferry_xarray *to = make_array(f, &b, ferry_point_all(0), w.borrowed);
    ferry_xarray *third = make_array(f, &b, ferry_point_all(0), v.borrowed);
    ferry_plan plan = {0};
    ferry_mover *first, *second;
    CHECK(ferry_plan_intersect(&plan, &a, &b, &intersection, -1) == 0);
    CHECK(ferry_mover_bind(f, &plan, from, to, &w.options, &first) == 0);
    CHECK(ferry_mover_bind(f, &plan, from, third, &v.options, &second) == 0);
    ferry_plan_fini(&plan);
    for (int round = 1; round <= 6; round++) {
        ferry_op op = {0};
        ferry_track track = FERRY_TRACK_DEFAULTS;
        track.op = &op;
        fill(from, round);
        CHECK(ferry_mover_start(first, NULL) == 0);
        linger(own);
        CHECK(ferry_mover_start(second, &track) == 0);
        if (round % 2)
            CHECK(ferry_op_wait(f, &op) == 0);
        CHECK(ferry_mover_wait(first) == 0);
        CHECK(ferry_mover_wait(second) == 0);
        CHECK(ferry_op_wait(f, &op) == 0);
        check_turned(f, to, intersection.axis, round);
        check_turned(f, third, intersection.axis, round);
    }
    ferry_mover_stats stats = FERRY_MOVER_STATS_DEFAULTS;
    ferry_mover_stats_get(first, &stats);
    CHECK(stats.movements == 6 && (!w.options.messages || stats.direct_out == 0));
    CHECK(ferry_mover_free(first) == 0 && ferry_mover_free(second) == 0);
    free_array(from);
    free_array(to);
    free_array(third);
    ferry_floorplan_fini(&a);
    ferry_floorplan_fini(&b);
}

/* Ghost cells sent back and added, in order: sums of numbers of very different size come out the
 * same as when one rank adds them in the order of the plan. */
static void sums(ferry *f, dice *d)
{
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    int64_t extents[2] = {17, 19};
    halo.low = halo.high = ferry_point_all(2);
    halo.domain = ferry_region_sized(2, extents);
    halo.periodic[0] = halo.periodic[1] = true;
    ferry_floorplan blocks = random_plan(f, d, halo.domain, true), alone;
    CHECK(ferry_floorplan_copy(&blocks, &alone) == 0);
    CHECK(ferry_floorplan_map_block(&alone, 1) == 0);
    for (size_t i = 0; i < alone.count; i++)
        alone.blocks[i].owner = ferry_rank(f);
    ferry_xarray *shared = make_array(f, &blocks, halo.low, false);
    ferry_xarray *own = make_array(f, &alone, halo.low, false);
    ferry_plan plan = {0};
    CHECK(ferry_plan_halo(&plan, &blocks, &halo, -1) == 0);
    ferry_plan_reverse(&plan);
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    options.operation.reduction = FERRY_SUM;
    options.ordered = true;
    options.messages = dice_between(d, 0, 1);
    ferry_mover *m, *reference;
    CHECK(ferry_mover_bind(f, &plan, shared, shared, &options, &m) == 0);
    CHECK(ferry_mover_bind(f, &plan, own, own, &options, &reference) == 0);
    for (size_t b = 0; b < blocks.count; b++) {
        ferry_grid *g = ferry_xarray_grid(shared, (int32_t)b);
        ferry_grid *h = ferry_xarray_grid(own, (int32_t)b);
        ferry_point p = h->region.low;
        do {
            double value = 1.0 / (double)(dice_between(d, 1, 1000000)) *
                           (dice_between(d, 0, 1) ? 1e10 : -1e-5);
            *(double *)ferry_grid_at(h, p) = value;
            if (g != NULL)
                *(double *)ferry_grid_at(g, p) = value;
        } while (ferry_region_next(&h->region, &p));
    }
    CHECK(ferry_mover_start(m, NULL) == 0 && ferry_mover_wait(m) == 0);
    CHECK(ferry_mover_start(reference, NULL) == 0 && ferry_mover_wait(reference) == 0);
    for (size_t i = 0; i < shared->local_count; i++) {
        const ferry_grid *g = &shared->grids[i], *h = ferry_xarray_grid(own, shared->local[i]);
        CHECK(memcmp(g->data, h->data, ferry_region_size(g->region) * sizeof(double)) == 0);
    }
    CHECK(ferry_mover_free(m) == 0 && ferry_mover_free(reference) == 0);
    free_array(shared);
    free_array(own);
    ferry_plan_fini(&plan);
    ferry_floorplan_fini(&blocks);
    ferry_floorplan_fini(&alone);
}

/* Fine to coarse by sum, and coarse to fine; blocks of the two levels are unrelated. */
static void levels(ferry *f, dice *d)
{
    int64_t coarse_extents[2] = {12, 10};
    ferry_intersection intersection = FERRY_INTERSECTION_DEFAULTS;
    ferry_region coarse_domain = ferry_region_sized(2, coarse_extents);
    intersection.ratio[0] = 2;
    intersection.ratio[1] = 3;
    ferry_floorplan coarse = random_plan(f, d, coarse_domain, true);
    ferry_floorplan fine =
        random_plan(f, d, ferry_region_refine(coarse_domain, ferry_point_of(2, 3, 1)), true);
    ferry_xarray *c = make_array(f, &coarse, ferry_point_all(0), false);
    ferry_xarray *x = make_array(f, &fine, ferry_point_all(0), false);
    ferry_plan up = {0}, down = {0};
    ferry_mover *refine, *coarsen;
    ferry_mover_options add = FERRY_MOVER_OPTIONS_DEFAULTS;
    add.operation.reduction = FERRY_SUM;
    add.messages = dice_between(d, 0, 1);
    intersection.relation = FERRY_REFINE;
    CHECK(ferry_plan_intersect(&up, &coarse, &fine, &intersection, ferry_rank(f)) == 0);
    intersection.relation = FERRY_COARSEN;
    CHECK(ferry_plan_intersect(&down, &fine, &coarse, &intersection, ferry_rank(f)) == 0);
    CHECK(ferry_mover_bind(f, &up, c, x, NULL, &refine) == 0);
    CHECK(ferry_mover_bind(f, &down, x, c, &add, &coarsen) == 0);
    fill(c, 1);
    CHECK(ferry_mover_start(refine, NULL) == 0 && ferry_mover_wait(refine) == 0);
    CHECK(ferry_mover_start(coarsen, NULL) == 0 && ferry_mover_wait(coarsen) == 0);
    for (size_t i = 0; i < c->local_count; i++) {
        ferry_point p = c->grids[i].region.low;
        do
            CHECK(*(double *)ferry_grid_at(&c->grids[i], p) == 7 * value_of(p, 2, 1));
        while (ferry_region_next(&c->grids[i].region, &p));
    }
    CHECK(ferry_mover_free(refine) == 0 && ferry_mover_free(coarsen) == 0);
    free_array(c);
    free_array(x);
    ferry_plan_fini(&up);
    ferry_plan_fini(&down);
    ferry_floorplan_fini(&coarse);
    ferry_floorplan_fini(&fine);
}

/* Random ghosts of random elements: originals to ghosts, then ghosts back, added. */
static void ghosts(ferry *f, dice *d)
{
    enum { OWN = 50, GHOSTS = 30 };
    int ranks = ferry_ranks(f), self = ferry_rank(f);
    way w = random_way(d);
    const int64_t extent = OWN + GHOSTS;
    ferry_region line = ferry_region_sized(1, &extent);
    ferry_grid grid;
    double plain[OWN + GHOSTS];
    ferry_ghost items[GHOSTS];
    double sums[OWN] = {0};
    if (w.borrowed)
        grid = ferry_grid_over(line, sizeof(double), plain);
    else
        CHECK(ferry_grid_alloc(f, line, sizeof(double), &grid) == 0);
    double *cells = grid.data;
    for (int rank = 0; rank < ranks; rank++) {
        for (int i = 0; i < GHOSTS; i++) {
            ferry_ghost g = {.local = OWN + i,
                             .remote = dice_between(d, 0, OWN - 1),
                             .owner = (int32_t)dice_between(d, 0, ranks - 1)};
            if (rank == self)
                items[i] = g;
            if (g.owner == self)
                sums[g.remote] += self * 1000 + (double)g.remote;
        }
    }
    ferry_ghosts forward = {.items = items, .count = GHOSTS}, back = forward;
    back.back = true;
    ferry_mover *out, *in;
    CHECK(ferry_mover_bind_ghosts(f, &forward, &grid, &grid, &w.options, &out) == 0);
    w.options.operation.reduction = FERRY_SUM;
    CHECK(ferry_mover_bind_ghosts(f, &back, &grid, &grid, &w.options, &in) == 0);
    for (int i = 0; i < OWN; i++)
        cells[i] = self * 1000 + i;
    for (int round = 0; round < 3; round++) {
        CHECK(ferry_mover_start(out, NULL) == 0 && ferry_mover_wait(out) == 0);
        for (int i = 0; i < GHOSTS; i++)
            CHECK(cells[OWN + i] == items[i].owner * 1000 + (double)items[i].remote);
    }
    CHECK(ferry_mover_start(in, NULL) == 0 && ferry_mover_wait(in) == 0);
    for (int i = 0; i < OWN; i++)
        CHECK(cells[i] == self * 1000 + i + sums[i]);
    CHECK(ferry_mover_free(out) == 0 && ferry_mover_free(in) == 0);
    if (self == ranks - 1)
        items[3].remote = OWN + GHOSTS;
    CHECK(ferry_mover_bind_ghosts(f, &forward, &grid, &grid, NULL, &out) == FERRY_EINVAL);
    if (!w.borrowed)
        CHECK(ferry_free(f, grid.data) == 0);
}

/* Random owners for every block. */
static void deal(ferry *f, dice *d, int32_t *owners, size_t count)
{
    for (size_t i = 0; i < count; i++)
        owners[i] = (int32_t)dice_between(d, 0, ferry_ranks(f) - 1);
}

/* Blocks change owners, at random, several times; values and ghost cells go along, and movers that
 * were bound before go on as if nothing had happened: a halo, and one to another array. */
static void remaps(ferry *f, dice *d)
{
    static const int8_t straight[3] = {0, 1, 2};
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    int64_t extents[2] = {30, 20};
    halo.domain = ferry_region_sized(2, extents);
    halo.low = halo.high = ferry_point_all(1);
    halo.periodic[0] = dice_between(d, 0, 1);
    way w = random_way(d), v = random_way(d);
    ferry_floorplan blocks = random_plan(f, d, halo.domain, true);
    ferry_floorplan others = random_plan(f, d, halo.domain, true);
    ferry_xarray *x = make_array(f, &blocks, halo.low, false);
    ferry_xarray *y = make_array(f, &others, ferry_point_all(0), v.borrowed);
    int32_t *owners = calloc(blocks.count, sizeof *owners);
    ferry_plan plan = {0}, across = {0};
    ferry_mover *m, *copy;
    CHECK(ferry_plan_halo(&plan, &x->blocks, &halo, ferry_rank(f)) == 0);
    CHECK(ferry_plan_intersect(&across, &blocks, &others, NULL, ferry_rank(f)) == 0);
    CHECK(ferry_mover_bind(f, &plan, x, x, &w.options, &m) == 0);
    CHECK(ferry_mover_bind(f, &across, x, y, &v.options, &copy) == 0);
    ferry_plan_fini(&plan);
    ferry_plan_fini(&across);
    fill(x, 1);
    for (int round = 1; round < 6; round++) {
        CHECK(ferry_mover_start(m, NULL) == 0 && ferry_mover_wait(m) == 0);
        check_halo(f, x, &halo, round);
        deal(f, d, owners, blocks.count);
        CHECK(ferry_xarray_remap(x, owners) == 0);
        for (size_t i = 0; i < x->local_count; i++)
            CHECK(owners[x->local[i]] == ferry_rank(f));
        check_halo(f, x, &halo, round);
        fill(x, round + 1);
        CHECK(ferry_mover_start(copy, NULL) == 0 && ferry_mover_wait(copy) == 0);
        check_turned(f, y, straight, round + 1);
    }
    owners[0] = ferry_ranks(f);
    CHECK(ferry_xarray_remap(x, owners) == FERRY_EINVAL);
    CHECK(strstr(ferry_error_message(f), "the owner of block 0 is ") != NULL);
    CHECK(ferry_mover_start(m, NULL) == 0 && ferry_mover_wait(m) == 0);
    check_halo(f, x, &halo, 6);
    CHECK(ferry_mover_free(m) == 0 && ferry_mover_free(copy) == 0);
    free(owners);
    free_array(x);
    free_array(y);
    ferry_floorplan_fini(&blocks);
    ferry_floorplan_fini(&others);
}

/* Tall blocks beside each other on one rank, whose columns of ghost cells are copied in pairs, part
 * by part. */
static void columns(ferry *f)
{
    const int64_t extents[2] = {300, 8 * ferry_ranks(f)};
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_floorplan blocks;
    ferry_plan plan = {0};
    ferry_mover *m;
    halo.domain = ferry_region_sized(2, extents);
    halo.low = halo.high = ferry_point_all(1);
    halo.faces_only = halo.periodic[1] = true;
    CHECK(ferry_floorplan_tile(halo.domain, ferry_point_of(300, 4, 1), &blocks) == 0);
    CHECK(ferry_floorplan_map_block(&blocks, ferry_ranks(f)) == 0);
    ferry_xarray *x = make_array(f, &blocks, halo.low, false);
    CHECK(ferry_plan_halo(&plan, &blocks, &halo, ferry_rank(f)) == 0);
    CHECK(ferry_mover_bind(f, &plan, x, x, NULL, &m) == 0);
    ferry_plan_fini(&plan);
    fill(x, 1);
    CHECK(ferry_mover_start(m, NULL) == 0 && ferry_mover_wait(m) == 0);
    check_halo(f, x, &halo, 1);
    CHECK(ferry_mover_free(m) == 0);
    free_array(x);
    ferry_floorplan_fini(&blocks);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    dice common = {argc > 1 ? strtoull(argv[1], NULL, 10) : 1};
    dice own = {common.state + 1000 + (uint64_t)ferry_rank(f)};
    int rounds = argc > 2 ? atoi(argv[2]) : 12;
    columns(f);
    for (int round = 0; round < rounds; round++) {
        halos(f, &common, &own);
        redistributions(f, &common, &own);
        sums(f, &common);
        levels(f, &common);
        ghosts(f, &common);
        remaps(f, &common);
    }
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
