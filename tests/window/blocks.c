/* Goal: a mover and operations by index work on the same memory of a window. Method: the cells of a
 * plate in blocks are elements of a window. In each round any rank puts any cell, the owners look
 * at their grids, a mover fills the ghost cells, and other ranks get cells and ghost cells by index
 * and add to them. Every value is known from its point and round. The window is ordered or direct,
 * a cell one number or three. Then refusals, and elements that change their size while a put waits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"

enum { ROWS = 21, COLUMNS = 17, ROUNDS = 6, FIRST = 5, NUMBERS_MAX = 3 };

typedef struct cell {
    int64_t numbers[NUMBERS_MAX];
} cell;

typedef struct plate {
    ferry *f;
    ferry_window *window;
    ferry_floorplan blocks;
    ferry_xarray *x;
    ferry_mover *halo;
    size_t cell_bytes;
    cell *given, *found; /* one per cell, kept until the fence */
} plate;

static int64_t number_of(ferry_point p, int round)
{
    return (round + 1) * 1000000 + p.at[0] * 1000 + p.at[1];
}

static ferry_window *window_new(ferry *f, bool direct)
{
    ferry_window_options options = FERRY_WINDOW_OPTIONS_DEFAULTS;
    ferry_window *w = NULL;
    options.direct = direct;
    CHECK(f, ferry_window_create(f, &options, &w) == 0);
    return w;
}

static plate plate_new(ferry *f, bool direct, size_t numbers)
{
    const ferry_point one = {{1, 1}};
    const int64_t extents[] = {ROWS, COLUMNS};
    const ferry_region all = ferry_region_sized(2, extents);
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_plan plan = {0};
    plate s = {.f = f, .cell_bytes = numbers * sizeof(int64_t)};
    halo.low = halo.high = one;
    s.window = window_new(f, direct);
    s.given = calloc((size_t)ROWS * COLUMNS, sizeof(cell));
    s.found = calloc((size_t)ROWS * COLUMNS, sizeof(cell));
    CHECK(f, s.given != NULL && s.found != NULL);
    const ferry_point parts = ferry_floorplan_parts(all, 2 * ferry_ranks(f) + 1);
    CHECK(f, ferry_floorplan_cut(all, parts, &s.blocks) == 0);
    CHECK(f, ferry_floorplan_map_cyclic(&s.blocks, ferry_ranks(f), 1) == 0);
    CHECK(f, ferry_window_xarray_create(s.window, FIRST, &s.blocks, s.cell_bytes, one, &s.x) == 0);
    CHECK(f, ferry_plan_halo(&plan, &s.blocks, &halo, ferry_rank(f)) == 0);
    CHECK(f, ferry_mover_bind(f, &plan, s.x, s.x, NULL, &s.halo) == 0);
    ferry_plan_fini(&plan);
    CHECK(f, ferry_window_fence(s.window) == 0);
    return s;
}

static void plate_free(plate *s)
{
    CHECK(s->f, ferry_mover_free(s->halo) == 0);
    ferry_xarray_destroy(s->x);
    CHECK(s->f, ferry_window_free(s->window) == 0);
    ferry_floorplan_fini(&s->blocks);
    free(s->given);
    free(s->found);
}

typedef void visit_fn(plate *s, int round, int32_t block, ferry_point p, int rank, int64_t index);

/* Calls `visit` for the cells that are this rank's turn: each cell once in the job. */
static void each_cell(plate *s, int round, visit_fn *visit)
{
    for (size_t b = 0; b < s->blocks.count; b++) {
        const ferry_region own = s->blocks.blocks[b].region;
        ferry_point p = own.low;
        do {
            int rank = -1;
            int64_t index = -1;
            if ((p.at[0] * COLUMNS + p.at[1] + round) % ferry_ranks(s->f) != ferry_rank(s->f))
                continue;
            CHECK(s->f, ferry_window_xarray_find(s->x, FIRST, (int32_t)b, p, &rank, &index) == 0);
            visit(s, round, (int32_t)b, p, rank, index);
        } while (ferry_region_next(&own, &p));
    }
}

static void put_cell(plate *s, int round, int32_t block, ferry_point p, int rank, int64_t index)
{
    cell *given = &s->given[p.at[0] * COLUMNS + p.at[1]];
    const ferry_window_value value = {given, s->cell_bytes};
    (void)block;
    for (int i = 0; i < NUMBERS_MAX; i++)
        given->numbers[i] = number_of(p, round) + i;
    CHECK(s->f, ferry_window_put(s->window, rank, index, &value, NULL) == 0);
}

/* Gets the ghost cell right of the cell: it was moved there, or lies outside and is zero. */
static void get_cell(plate *s, int round, int32_t block, ferry_point p, int rank, int64_t index)
{
    const ferry_window_target target = {&s->found[p.at[0] * COLUMNS + p.at[1]], s->cell_bytes,
                                        NULL};
    ferry_point right = p;
    int owner;
    (void)round, (void)index;
    right.at[1]++;
    CHECK(s->f, ferry_window_xarray_find(s->x, FIRST, block, right, &owner, &index) == 0);
    CHECK(s->f, owner == rank);
    CHECK(s->f, ferry_window_get(s->window, rank, index, &target, NULL) == 0);
}

static void check_got(plate *s, int round, int32_t block, ferry_point p, int rank, int64_t index)
{
    const int64_t *numbers = s->found[p.at[0] * COLUMNS + p.at[1]].numbers;
    (void)block, (void)rank, (void)index;
    p.at[1]++;
    for (size_t i = 0; i < s->cell_bytes / sizeof(int64_t); i++)
        CHECK(s->f, numbers[i] == (p.at[1] == COLUMNS ? 0 : number_of(p, round) + (int64_t)i));
}

static void add_to_cell(plate *s, int round, int32_t block, ferry_point p, int rank, int64_t index)
{
    const size_t count = s->cell_bytes / sizeof(int64_t);
    const ferry_window_change change = {FERRY_INT64, FERRY_SUM,
                                        &s->given[p.at[0] * COLUMNS + p.at[1]], count};
    (void)block, (void)round;
    CHECK(s->f, ferry_window_accumulate(s->window, rank, index, &change, NULL) == 0);
}

/* Checks this rank's own memory: it has `times` the numbers of the round, and in ghost cells those
 * that the mover has brought. */
static void check_grids(plate *s, int round, int64_t times, bool moved)
{
    for (size_t b = 0; b < s->x->local_count; b++) {
        const ferry_grid *grid = &s->x->grids[b];
        const ferry_region own = ferry_floorplan_block(&s->blocks, s->x->local[b])->region;
        ferry_point p = grid->region.low;
        do {
            const bool inside = p.at[0] >= 0 && p.at[0] < ROWS && p.at[1] >= 0 && p.at[1] < COLUMNS;
            const int64_t *numbers = ferry_grid_at(grid, p);
            const bool is_own = ferry_region_contains_point(own, p);
            for (size_t i = 0; i < s->cell_bytes / sizeof(int64_t) && (is_own || moved); i++)
                CHECK(s->f, numbers[i] == (!inside ? 0
                                                   : (is_own ? times : 1) *
                                                         (number_of(p, round) + (int64_t)i)));
        } while (ferry_region_next(&grid->region, &p));
    }
}

static void rounds(ferry *f, bool direct, size_t numbers)
{
    plate s = plate_new(f, direct, numbers);
    for (int round = 0; round < ROUNDS; round++) {
        each_cell(&s, round, put_cell);
        CHECK(f, ferry_window_fence(s.window) == 0);
        check_grids(&s, round, 1, false);
        CHECK(f, ferry_mover_start(s.halo, NULL) == 0 && ferry_mover_wait(s.halo) == 0);
        check_grids(&s, round, 1, true);
        CHECK(f, ferry_window_fence(s.window) == 0);
        each_cell(&s, round, get_cell);
        CHECK(f, ferry_window_fence(s.window) == 0);
        each_cell(&s, round, check_got);
        each_cell(&s, round, add_to_cell);
        CHECK(f, ferry_window_fence(s.window) == 0);
        check_grids(&s, round, 2, true);
        CHECK(f, ferry_window_fence(s.window) == 0);
    }
    plate_free(&s);
}

/* Puts `size` bytes, and returns the error of the call or of the fence, where all ranks come to. */
static int put_fence(ferry_window *w, int rank, int64_t index, const void *data, size_t size,
                     bool puts)
{
    const ferry_window_value value = {data, size};
    const int error = puts ? ferry_window_put(w, rank, index, &value, NULL) : 0;
    const int later = ferry_window_fence(w);
    return error != 0 ? error : later;
}

static void refusals(ferry *f)
{
    const int64_t word = 3;
    int64_t *own = NULL;
    void *more = NULL;
    ferry_window *w = window_new(f, false);
    const int to = (ferry_rank(f) + 1) % ferry_ranks(f);
    CHECK(f, ferry_window_view(w, 2, 4, 8, (void **)&own) == 0);
    CHECK(f, ferry_window_length(w) == 6 && (uintptr_t)own % 64 == 0);
    CHECK(f, own[0] == 0 && own[3] == 0);
    /* Elements that have values, of a view too, are left alone. */
    CHECK(f, ferry_window_view(w, 5, 3, 8, &more) == FERRY_EINVAL && more == NULL);
    CHECK(f, ferry_window_view(w, -1, 3, 8, &more) == FERRY_EINVAL);
    CHECK(f, ferry_window_view(w, 9, 0, 8, &more) == FERRY_EINVAL);
    CHECK(f, ferry_window_view(w, 9, 1, 0, &more) == FERRY_EINVAL);
    CHECK(f, ferry_window_view(w, 9, SIZE_MAX / 2, 8, &more) == FERRY_ENOMEM);
    CHECK(f, ferry_window_view(w, 6, 1, 5, &more) == 0 && more != NULL);
    CHECK(f, ferry_window_fence(w) == 0);
    /* An element of a view keeps its size. */
    CHECK(f, put_fence(w, to, 2, &word, 4, true) == FERRY_EINVAL);
    CHECK(f, put_fence(w, to, 2, NULL, 0, true) == FERRY_EINVAL);
    CHECK(f, put_fence(w, to, 6, "abcdef", 6, true) == FERRY_EINVAL);
    CHECK(f, strstr(ferry_error_message(f), "element 6") != NULL &&
                 strstr(ferry_error_message(f), "another size") != NULL);
    CHECK(f, put_fence(w, to, 6, "abcde", 5, true) == 0 && memcmp(more, "abcde", 5) == 0);
    CHECK(f, put_fence(w, to, 5, &word, 8, true) == 0 && own[3] == 3);
    /* The array grows beyond it as ever. */
    CHECK(f, put_fence(w, to, 300, "xyz", 3, true) == 0 && ferry_window_length(w) == 301);
    CHECK(f, own[3] == 3);
    CHECK(f, ferry_window_free(w) == 0);
}

static void refusals_of_blocks(ferry *f)
{
    plate s = plate_new(f, false, 1);
    const ferry_point outside = {{ROWS + 1, 0}};
    int32_t *owners = calloc(s.blocks.count, sizeof(*owners));
    int rank = -1;
    int64_t index = -1;
    ferry_xarray *x = NULL;
    CHECK(f, owners != NULL && ferry_xarray_remap(s.x, owners) == FERRY_EINVAL);
    CHECK(f, ferry_window_xarray_find(s.x, FIRST, 0, outside, &rank, &index) == FERRY_EINVAL);
    CHECK(f, ferry_window_xarray_find(s.x, FIRST, -1, outside, &rank, &index) == FERRY_EINVAL);
    CHECK(f, ferry_window_xarray_find(s.x, FIRST, (int32_t)s.blocks.count, outside, &rank,
                                      &index) == FERRY_EINVAL);
    CHECK(f, ferry_window_xarray_create(s.window, FIRST, &s.blocks, 8, (ferry_point){{1, 1}}, &x) ==
                 FERRY_EINVAL);
    CHECK(f, ferry_window_xarray_create(s.window, 999999, &s.blocks, 8, (ferry_point){{-1, 1}},
                                        &x) == FERRY_EINVAL);
    CHECK(f, ferry_window_xarray_create(s.window, FIRST, NULL, 8, outside, &x) == FERRY_EINVAL);
    CHECK(f,
          ferry_window_xarray_create(s.window, FIRST, &s.blocks, 8, outside, NULL) == FERRY_EINVAL);
    CHECK(f, ferry_xarray_create(f, NULL, 8, outside, &x) == FERRY_EINVAL);
    CHECK(f, ferry_xarray_create(f, &s.blocks, 8, outside, NULL) == FERRY_EINVAL);
    CHECK(f, x == NULL && index == -1);
    free(owners);
    plate_free(&s);
}

/* Rank 1 makes the number of rank 0 a text while a put of rank 0 waits, and while a sum does. */
static void size_changes(ferry *f)
{
    const int64_t word = 7;
    const ferry_window_value number = {&word, 8}, text = {"text", 4};
    const ferry_window_change sum = {FERRY_INT64, FERRY_SUM, &word, 1};
    ferry_window *w = window_new(f, false);
    const int rank = ferry_rank(f);
    for (int i = 0; i < 2 && ferry_ranks(f) > 1; i++) {
        int64_t found = 0;
        CHECK(f, ferry_window_lock(w, FERRY_WINDOW_SHARED, 0) == 0);
        CHECK(f, rank != 0 || ferry_window_put(w, 0, i, &number, NULL) == 0);
        CHECK(f, ferry_window_flush(w, 0) == 0);
        if (rank == 0)
            CHECK(f, (i == 0 ? ferry_window_put(w, 0, i, &number, NULL)
                             : ferry_window_accumulate(w, 0, i, &sum, NULL)) == 0);
        CHECK(f, ferry_barrier(f) == 0);
        CHECK(f, rank != 1 || ferry_window_put(w, 0, i, &text, NULL) == 0);
        CHECK(f, rank == 0 || ferry_window_unlock(w, 0) == 0);
        CHECK(f, ferry_barrier(f) == 0);
        if (rank == 0)
            CHECK(f, ferry_window_unlock(w, 0) == (i == 0 ? 0 : FERRY_EINVAL));
        if (rank == 0 && i == 0)
            CHECK(f, ferry_window_read(w, i, &found, 8, NULL) == 0 && found == word);
    }
    CHECK(f, ferry_window_free(w) == 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int i = 0; i < 4; i++)
        rounds(f, i % 2 != 0, i < 2 ? 1 : NUMBERS_MAX);
    refusals(f);
    refusals_of_blocks(f);
    size_changes(f);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
