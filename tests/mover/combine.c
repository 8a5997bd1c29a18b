/* Goal: movers that combine bring the minimum, the maximum, or what the program's operation makes,
 * within a rank and between ranks, by every way. Ordered movers apply an operation that depends on
 * the order in the order that mover.h states, on any number of ranks. Deferred movements end while
 * the program does not call Ferry, by the thread of ferry_background_begin. Method: a program of
 * any number of ranks. Several blocks write one cell; the same by hand. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ferry/ferry.h>
#include <ferry/mover.h>

#include "arrays.h"

enum { SOURCES = 9 };

/* Neither commutative nor associative. */
static void append_digits(void *arg, void *target, ptrdiff_t d, const void *source, ptrdiff_t s,
                          size_t count)
{
    (void)arg;
    for (size_t i = 0; i < count; i++) {
        double *to = (double *)(void *)((char *)target + (ptrdiff_t)i * d);
        *to = *to * 10 + *(const double *)(const void *)((const char *)source + (ptrdiff_t)i * s);
    }
}

static double combined(const ferry_operation *operation, double a, double b)
{
    switch (operation->reduction) {
    case FERRY_SUM:
        return a + b;
    case FERRY_MIN:
        return a < b ? a : b;
    case FERRY_MAX:
        return a > b ? a : b;
    default:
        return a * 10 + b;
    }
}

/* The content of source block `i`. */
static double value_at(int i)
{
    return (i * 5 + 3) % SOURCES + 1;
}

/* Every block of a row of sources, dealt round the ranks, goes to the one target cell of rank 0's
 * block, in plans whose entries stand in any order. */
static void regions(ferry *f, const ferry_mover_options *options, bool borrowed)
{
    ferry_floorplan sources = {.dims = 1}, targets = {.dims = 1};
    ferry_plan plan = {0};
    ferry_mover *m;
    const ferry_region cell = box(1, 1);
    double wanted = 2;
    for (int i = 0; i < SOURCES; i++) {
        const ferry_region place = ferry_region_shift(cell, ferry_point_all(i));
        CHECK(ferry_floorplan_add(&sources, place, i % ferry_ranks(f)) == 0);
        const int k = (i * 7 + 4) % SOURCES; /* any order, not that of the blocks */
        CHECK(ferry_plan_copy(&plan, 0, cell, k, ferry_region_shift(cell, ferry_point_all(k))) ==
              0);
    }
    CHECK(ferry_floorplan_add(&targets, cell, ferry_ranks(f) - 1) == 0);
    ferry_xarray *from = make_array(f, &sources, ferry_point_all(0), borrowed);
    ferry_xarray *to = make_array(f, &targets, ferry_point_all(0), borrowed);
    for (size_t i = 0; i < from->local_count; i++)
        *(double *)from->grids[i].data = value_at(from->local[i]);
    CHECK(ferry_mover_bind(f, &plan, from, to, options, &m) == 0);
    for (int round = 0; round < 3; round++) {
        if (to->local_count > 0)
            *(double *)to->grids[0].data = 2;
        CHECK(ferry_mover_start(m, NULL) == 0);
        int error;
        while ((error = ferry_mover_test(m)) == FERRY_EAGAIN)
            CHECK(ferry_mover_start(m, NULL) == FERRY_ESTATE);
        CHECK(error == 0 && ferry_mover_wait(m) == 0);
        wanted = 2;
        for (int i = 0; i < SOURCES; i++) /* the stated order: one target, one place, by source */
            wanted = combined(&options->operation, wanted, value_at(i));
        CHECK(to->local_count == 0 || *(double *)to->grids[0].data == wanted);
    }
    CHECK(ferry_mover_free(m) == 0);
    free_array(from);
    free_array(to);
    ferry_plan_fini(&plan);
    ferry_floorplan_fini(&sources);
    ferry_floorplan_fini(&targets);
}

/* Three ghosts on each rank stand for cell 0 of rank 0, and bring it their digits: own ones first,
 * then those of the other ranks by number, each rank's by index. */
static void indices(ferry *f, ferry_mover_options options)
{
    enum { GHOSTS = 3 };
    const ferry_region line = ferry_region_sized(1, (int64_t[]){1 + GHOSTS});
    ferry_ghost items[GHOSTS];
    double cells[1 + GHOSTS], wanted = 2;
    const ferry_grid grid = ferry_grid_over(line, sizeof *cells, cells);
    const ferry_ghosts ghosts = {.items = items, .count = GHOSTS, .back = true};
    ferry_mover *m;
    for (int i = 0; i < GHOSTS; i++)
        items[i] = (ferry_ghost){.local = GHOSTS - i, .remote = 0, .owner = 0};
    CHECK(ferry_mover_bind_ghosts(f, &ghosts, &grid, &grid, &options, &m) == 0);
    for (int round = 0; round < 3; round++) {
        cells[0] = 2;
        for (int i = 0; i < GHOSTS; i++)
            cells[1 + i] = (ferry_rank(f) * GHOSTS + i) % 9 + 1;
        CHECK(ferry_mover_start(m, NULL) == 0 && ferry_mover_wait(m) == 0);
        wanted = 2;
        for (int i = 0; i < GHOSTS * ferry_ranks(f); i++)
            wanted = combined(&options.operation, wanted, i % 9 + 1);
        CHECK(ferry_rank(f) != 0 || cells[0] == wanted);
    }
    CHECK(ferry_mover_free(m) == 0);
}

static void operations(ferry *f)
{
    static const ferry_operation list[] = {
        {.reduction = FERRY_SUM},
        {.reduction = FERRY_MIN},
        {.reduction = FERRY_MAX},
        {.reduction = FERRY_USER, .fn = append_digits},
    };
    for (int i = 0; i < 16; i++) {
        ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
        options.operation = list[i % 4];
        options.ordered = options.operation.reduction == FERRY_USER || i % 3 == 0;
        options.messages = i / 4 % 2;
        options.packet_bytes = i / 8 ? 8 : 0;
        options.check = i / 4 == 1;
        regions(f, &options, i / 4 == 2);
        indices(f, options);
    }
}

/* A copy between neighbours while the program sleeps and Ferry's thread has the rank. */
typedef struct watch {
    _Atomic int ended;
    int error;
} watch;

static void on_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    watch *w = arg;
    (void)f;
    w->error = receipt->error;
    /* release: pairs with the acquire in by_the_helper */
    atomic_store_explicit(&w->ended, 1, memory_order_release);
}

static void by_the_helper(ferry *f)
{
    const int64_t extent[] = {6 * ferry_ranks(f), 400};
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_floorplan blocks;
    ferry_plan plan = {0};
    ferry_mover *m;
    halo.domain = ferry_region_sized(2, extent);
    halo.low = halo.high = ferry_point_all(2);
    halo.periodic[0] = true;
    options.deferred = true;
    CHECK(ferry_floorplan_tile(halo.domain, ferry_point_of(6, 400, 0), &blocks) == 0);
    CHECK(ferry_floorplan_map_block(&blocks, ferry_ranks(f)) == 0);
    ferry_xarray *x = make_array(f, &blocks, halo.low, false);
    CHECK(ferry_plan_halo(&plan, &blocks, &halo, ferry_rank(f)) == 0);
    for (int messages = 0; messages < 2; messages++) {
        options.messages = messages;
        CHECK(ferry_mover_bind(f, &plan, x, x, &options, &m) == 0);
        for (int round = 1; round <= 5; round++) {
            watch w = {0};
            ferry_track track = FERRY_TRACK_DEFAULTS;
            track.completed = on_completed;
            track.completed_arg = &w;
            fill(x, round);
            CHECK(ferry_mover_start(m, &track) == 0);
            const int begun = ferry_background_begin(f);
            CHECK(begun == 0 || begun == FERRY_ENOTSUP);
            if (begun == 0) {
                /* acquire: pairs with the release in on_completed */
                while (!atomic_load_explicit(&w.ended, memory_order_acquire))
                    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
                CHECK(ferry_background_end(f) == 0 && w.error == 0);
            }
            CHECK(ferry_mover_wait(m) == 0);
            check_halo(f, x, &halo, round);
        }
        CHECK(ferry_mover_free(m) == 0);
    }
    ferry_plan_fini(&plan);
    free_array(x);
    ferry_floorplan_fini(&blocks);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    operations(f);
    by_the_helper(f);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
