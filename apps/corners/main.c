/* The kernel AMR of the Parallel Research Kernels: a stencil on a grid whose corners are refined in
 * turn.
 *
 *   ferry run -n 2 build/apps/corners
 *   ferry sim -n 16 build/apps/corners --point-ns 5 --tiles 16
 *
 * In each iteration a stencil in the shape of a star, RADIUS points deep, takes a derivative of the
 * field on the grid, adds it up, and adds 1 to the field. Every `period` iterations a finer patch
 * appears in the next corner, with values between those of the grid. For `duration` iterations it
 * goes through the same `sub` times per iteration, then it vanishes. The field is linear at first.
 * So all results are known, and the program checks every point.
 *
 * The grid and each patch are cut into `tiles`^2 tiles. A tile is an element of a collection, whose
 * first index is the level: 0 is the grid, 1 to 4 are the patches. A step of a tile needs the edges
 * of its neighbours. The first step of a patch that appears needs the points of the grid below. No
 * tile waits for others than these. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "common/check.h"
#include "common/parameters.h"
#include "corners/corners.h"

/* Messages. */

/* Copies the points of `b` from the field of `t`, or with `back` into it. */
static void copy_points(tile *t, const box *b, double *data, bool back)
{
    const size_t bytes = (size_t)columns(b) * sizeof *data;
    for (long row = b->low[0]; row < b->high[0]; row++, data += columns(b)) {
        double *field = field_at(t, row, b->low[1]);
        memcpy(back ? field : data, back ? data : field, bytes);
    }
}

static void send_points(ferry *f, const state *s, const ferry_element *e, ferry_index to, long step,
                        const box *b)
{
    const ferry_message message = {.data = s->edge,
                                   .size_bytes = (size_t)(rows(b) * columns(b)) * sizeof *s->edge};
    copy_points(e->data, b, s->edge, false);
    check(f, ferry_step_send(e->collection, e, to, (uint64_t)step, &message, NULL));
}

/* The points at a side of a tile, or with `outside` those around it. */
static box edge_points(const box *own, int side, bool outside)
{
    box b = *own;
    int d = side / 2;
    if (side % 2 == 0)
        b.high[d] = b.low[d] + RADIUS;
    else
        b.low[d] = b.high[d] - RADIUS;
    long shift = !outside ? 0 : side % 2 == 0 ? -RADIUS : RADIUS;
    b.low[d] += shift;
    b.high[d] += shift;
    return b;
}

/* Sends the edges for the next step `step`, and asks for those of the neighbours. */
static void go_on(ferry *f, const state *s, ferry_element *e, long step)
{
    ferry_index from[SIDES];
    ferry_step needs = FERRY_STEP_DEFAULTS;
    const tile *t = e->data;
    for (int side = 0; side < SIDES; side++) {
        ferry_index to;
        if (!beside(s, e->index, side, &to))
            continue;
        const box edge = edge_points(&t->own, side, false);
        from[needs.messages++] = to;
        send_points(f, s, e, to, step, &edge);
    }
    needs.from = from;
    check(f, ferry_step_next(e, &needs));
}

static void take_edges(const state *s, const ferry_element *e, const ferry_inputs *in)
{
    tile *t = e->data;
    size_t taken = 0;
    for (int side = 0; side < SIDES; side++) {
        ferry_index from;
        if (!beside(s, e->index, side, &from))
            continue;
        const box edge = edge_points(&t->own, side, true);
        copy_points(t, &edge, (double *)(uintptr_t)in->inputs[taken++].message->data, true);
    }
}

/* The kernel. */

/* Adds the derivative of `count` points to their sums. */
static void add_row(double *restrict sum, const double *restrict in, long stride, long count,
                    const double weight[2 * RADIUS + 1])
{
    for (long j = 0; j < count; j++) {
        double value = sum[j];
        for (int k = -RADIUS; k <= RADIUS; k++)
            value += weight[k + RADIUS] * (in[j + k] + in[j + k * stride]);
        sum[j] = value;
    }
}

static void add_one(double *field, long count)
{
    for (long j = 0; j < count; j++)
        field[j] += 1;
}

/* Adds the derivative to the sums, where the star lies inside the level, and 1 to the field. */
static void update(tile *t, const double weight[2 * RADIUS + 1], long size)
{
    const box all = {{RADIUS, RADIUS}, {size - RADIUS, size - RADIUS}};
    const box inner = overlap(t->own, &all);
    const long stride = columns(&t->own) + 2 * RADIUS;
    for (long row = inner.low[0]; row < inner.high[0]; row++)
        add_row(sum_at(t, row, inner.low[1]), field_at(t, row, inner.low[1]), stride,
                columns(&inner), weight);
    for (long row = t->own.low[0]; row < t->own.high[0]; row++)
        add_one(field_at(t, row, t->own.low[1]), columns(&t->own));
    t->done++;
    t->summed++;
}

/* Sends the points below a patch that appears to its tiles. */
static void send_below(ferry *f, const state *s, const ferry_element *e, long iteration)
{
    const tile *t = e->data;
    const long turn = iteration / s->period / CORNERS;
    ferry_index to = {{iteration / s->period % CORNERS + 1, 0, 0}};
    for (to.at[1] = 0; to.at[1] < s->tiles; to.at[1]++)
        for (to.at[2] = 0; to.at[2] < s->tiles; to.at[2]++) {
            const box need = below(s, to), b = overlap(t->own, &need);
            if (rows(&b) > 0 && columns(&b) > 0)
                send_points(f, s, e, to, patch_step(s, turn), &b);
        }
}

/* Asks for the points of the grid below, in the step in which the patch appears. */
static void need_below(ferry *f, const state *s, ferry_element *e, long turn)
{
    ferry_index *from = (ferry_index *)(void *)s->edge, at = {{0}};
    const box need = below(s, e->index);
    ferry_step needs = {
        .size = sizeof needs, .from = from, .number = (uint64_t)patch_step(s, turn)};
    if (patch_begins(s, e->index.at[0], turn) >= s->steps)
        return;
    for (at.at[1] = 0; at.at[1] < s->tiles; at.at[1]++)
        for (at.at[2] = 0; at.at[2] < s->tiles; at.at[2]++) {
            const box own = own_points(s, at), b = overlap(own, &need);
            if (rows(&b) > 0 && columns(&b) > 0)
                from[needs.messages++] = at;
        }
    check(f, ferry_step_next(e, &needs));
}

/* Fills a tile of a patch with values between those of the grid. */
static void fill_between(const state *s, const ferry_element *e, const double *coarse)
{
    tile *t = e->data;
    const box b = below(s, e->index);
    const double part = 1 / (double)finer(s);
    for (long row = t->own.low[0]; row < t->own.high[0]; row++)
        for (long column = t->own.low[1]; column < t->own.high[1]; column++) {
            long r = row / finer(s) + origin(s, e->index.at[0], 0) - b.low[0];
            long c = column / finer(s) + origin(s, e->index.at[0], 1) - b.low[1];
            double y = (double)(row % finer(s)) * part, x = (double)(column % finer(s)) * part;
            const double *at = coarse + r * columns(&b) + c;
            const double *up = at + (r + 1 < rows(&b) ? columns(&b) : 0);
            long right = c + 1 < columns(&b) ? 1 : 0;
            *field_at(t, row, column) =
                (at[0] * (1 - x) + at[right] * x) * (1 - y) + (up[0] * (1 - x) + up[right] * x) * y;
        }
}

/* Puts the points together that the tiles of the grid have sent. */
static void appear(ferry *f, const state *s, const ferry_element *e, const ferry_inputs *in)
{
    tile *t = e->data;
    const box b = below(s, e->index);
    double *coarse = malloc((size_t)(rows(&b) * columns(&b)) * sizeof *coarse);
    check(f, coarse != NULL ? 0 : FERRY_ENOMEM);
    for (size_t i = 0; i < in->count; i++) {
        const box own = own_points(s, in->inputs[i].from), part = overlap(own, &b);
        const double *data = in->inputs[i].message->data;
        for (long row = part.low[0]; row < part.high[0]; row++, data += columns(&part))
            memcpy(coarse + (row - b.low[0]) * columns(&b) + part.low[1] - b.low[1], data,
                   (size_t)columns(&part) * sizeof *data);
    }
    fill_between(s, e, coarse);
    free(coarse);
    t->done = 0;
}

/* Step 0 of a tile of the grid only sends its edges. Step k is iteration k - 1. */
static void step_grid(ferry *f, const state *s, ferry_element *e, const ferry_inputs *in)
{
    const long iteration = (long)in->step - 1;
    if (iteration >= 0) {
        take_edges(s, e, in);
        if (iteration % s->period == 0)
            send_below(f, s, e, iteration);
        update(e->data, s->weight, s->points);
    }
    if (iteration + 1 < s->steps)
        go_on(f, s, e, iteration + 2);
}

static void step_patch(ferry *f, const state *s, ferry_element *e, const ferry_inputs *in)
{
    tile *t = e->data;
    const long length = patch_step(s, 1), turn = (long)in->step / length;
    double weight[2 * RADIUS + 1];
    for (int k = 0; k <= 2 * RADIUS; k++)
        weight[k] = s->weight[k] * (double)finer(s);
    t->begun = patch_begins(s, e->index.at[0], turn);
    if ((long)in->step % length == 0) {
        appear(f, s, e, in);
    } else {
        take_edges(s, e, in);
        update(t, weight, extent(s, e->index.at[0]));
    }
    if (t->done < updates_from(s, t->begun))
        go_on(f, s, e, (long)in->step + 1);
    else
        need_below(f, s, e, turn + 1);
}

static void step(ferry *f, ferry_element *e, const ferry_inputs *in)
{
    state *s = ferry_user_data(f);
    const tile *t = e->data;
    const uint64_t begin_ns = ferry_now(f);
    if (e->index.at[0] == 0)
        step_grid(f, s, e, in);
    else
        step_patch(f, s, e, in);
    ferry_compute(f, s->point_ns * 1e-9 * (double)(rows(&t->own) * columns(&t->own)));
    s->work_ns += ferry_now(f) - begin_ns;
}

/* The beginning and the end. */

static size_t packed_size(ferry *f, const void *data)
{
    (void)f;
    return tile_bytes(&((const tile *)data)->own);
}

static void *make(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size)
{
    const state *s = ferry_user_data(f);
    const box own = own_points(s, e->index);
    void *memory;
    (void)arg, (void)bytes, (void)size;
    check(f, ferry_alloc(f, tile_bytes(&own), &memory));
    tile *t = memset(memory, 0, tile_bytes(&own));
    t->own = own;
    for (long row = own.low[0]; row < own.high[0] && e->index.at[0] == 0; row++)
        for (long column = own.low[1]; column < own.high[1]; column++)
            *field_at(t, row, column) = (double)(row + column);
    if (e->index.at[0] != 0)
        need_below(f, s, e, 0);
    else
        check(f, ferry_step_next(e, &(ferry_step){.size = sizeof(ferry_step), .messages = 1}));
    return t;
}

/* Each rank has a run of tiles of the grid. A tile of a patch begins on the rank below its middle,
 * or with --spread on the rank that has the tile of the grid with the same indices. */
static int first_rank(void *arg, ferry_index index, int ranks)
{
    const state *s = arg;
    const box need = below(s, index);
    int64_t at[2] = {index.at[1], index.at[2]};
    for (int d = 0; d < 2 && index.at[0] > 0 && !s->spread; d++)
        at[d] = (need.low[d] + need.high[d]) / 2 * s->tiles / s->points;
    return (int)((at[0] * s->tiles + at[1]) * ranks / (s->tiles * s->tiles));
}

static ferry_collection *create(ferry *f, state *s)
{
    ferry_collection *c;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ops.name = "tile";
    ops.packed_size = packed_size;
    ops.flags = FERRY_OBJECT_SHARED;
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    options.dims = 3;
    options.extents[0] = 1 + CORNERS;
    options.extents[1] = options.extents[2] = s->tiles;
    options.ops = &ops;
    options.make = make;
    options.map_fn = first_rank;
    options.map_arg = s;
    options.step = step;
    options.fixed = s->no_balance;
    check(f, ferry_collection_create(f, &options, &c));
    return c;
}

static void start(ferry *f, const state *s, ferry_collection *c)
{
    ferry_index at = {{0}};
    for (at.at[1] = 0; at.at[1] < s->tiles; at.at[1]++)
        for (at.at[2] = 0; at.at[2] < s->tiles; at.at[2]++)
            if (ferry_collection_home(c, at) == ferry_rank(f))
                check(f, ferry_step_send(c, NULL, at, 0, &(ferry_message){0}, NULL));
}

/* How many times a tile must have been updated. */
static long expected_updates(const state *s, int64_t level)
{
    long count = level == 0 ? s->steps : 0;
    for (long turn = 0; level > 0 && patch_begins(s, level, turn) < s->steps; turn++)
        count += updates_from(s, patch_begins(s, level, turn));
    return count;
}

/* The largest difference of a point of the tile from what it must be. */
static double error_of(const state *s, const ferry_element *e)
{
    tile *t = e->data;
    const long size = extent(s, e->index.at[0]);
    const double part = e->index.at[0] == 0 ? 1 : 1 / (double)finer(s);
    const long first = e->index.at[0] == 0
                           ? 0
                           : origin(s, e->index.at[0], 0) + origin(s, e->index.at[0], 1) + t->begun;
    double worst = fabs((double)(t->summed - expected_updates(s, e->index.at[0])));
    for (long row = t->own.low[0]; row < t->own.high[0] && t->summed > 0; row++)
        for (long column = t->own.low[1]; column < t->own.high[1]; column++) {
            const bool inner =
                row >= RADIUS && column >= RADIUS && row < size - RADIUS && column < size - RADIUS;
            double field = (double)(first + t->done) + (double)(row + column) * part;
            double sum = inner ? 2 * (double)t->summed : 0;
            worst = fmax(worst, fabs(*field_at(t, row, column) - field));
            worst = fmax(worst, fabs(*sum_at(t, row, column) - sum));
        }
    return worst;
}

static int report(ferry *f, const state *s, ferry_collection *c, double took_ms)
{
    ferry_stats stats = FERRY_STATS_DEFAULTS;
    double worst = 0;
    uint64_t elements = 0;
    for (ferry_element *e = NULL; (e = ferry_collection_next(c, e)) != NULL; elements++)
        worst = fmax(worst, error_of(s, e));
    check(f, ferry_stats_get(f, &stats));
    uint64_t sums[] = {elements, stats.objects_out, s->work_ns};
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, 3));
    check(f, ferry_allreduce(f, FERRY_DOUBLE, FERRY_MAX, &worst, &worst, 1));
    const bool valid = worst < 1e-8 && sums[0] == (uint64_t)((1 + CORNERS) * s->tiles * s->tiles);
    if (ferry_rank(f) == 0)
        printf("%ld^2 points, patches of %ld^2, %ld steps on %d ranks: %.3f ms per step, ratio "
               "%.3f, %" PRIu64 " moves, error %.1e: %s\n",
               s->points, extent(s, 1), s->steps, ferry_ranks(f), took_ms / (double)s->steps,
               took_ms * 1e6 * ferry_ranks(f) / (double)sums[2], sums[1], worst,
               valid ? "valid" : "INVALID");
    return valid ? 0 : 1;
}

static int run(ferry *f, state *s)
{
    check(f, ferry_balance_enable(f, true));
    ferry_collection *c = create(f, s);
    check(f, ferry_barrier(f));
    const uint64_t begin_ns = ferry_now(f);
    start(f, s, c);
    check(f, ferry_quiesce(f));
    const double took_ms = (double)(ferry_now(f) - begin_ns) / 1e6;
    check(f, ferry_collection_check(c));
    check(f, ferry_balance_enable(f, false));
    int status = report(f, s, c, took_ms);
    check(f, ferry_collection_destroy(c));
    return status;
}

/* -1, or what the program ends with. */
static int check_options(const ferry *f, const state *s)
{
    if (s->patch <= s->points && s->points / s->tiles >= RADIUS &&
        extent(s, 1) / s->tiles >= RADIUS && s->duration <= s->period)
        return -1;
    if (ferry_rank(f) == 0)
        fprintf(
            stderr,
            "corners: %ld points, patches of %ld, %ld tiles, duration %ld of %ld: expected a "
            "patch in the grid, tiles of %d points and more, and a duration within the period\n",
            s->points, s->patch, s->tiles, s->duration, s->period, RADIUS);
    return 2;
}

static int read_options(ferry *f, int argc, char **argv, state *s)
{
    const parameter table[] = {
        {"points", "of the grid along an edge", 2 * RADIUS + 1, 1e5, .whole = &s->points},
        {"patch", "points of the grid below a patch, along an edge", 2, 1e5, .whole = &s->patch},
        {"level", "a patch has 2^level points for each of the grid", 0, 6, .whole = &s->level},
        {"period", "iterations from patch to patch", 1, 1e6, .whole = &s->period},
        {"duration", "iterations that a patch lives", 1, 1e6, .whole = &s->duration},
        {"sub", "updates of a patch per iteration", 1, 1e4, .whole = &s->sub},
        {"steps", "iterations", 1, 1e6, .whole = &s->steps},
        {"tiles", "along an edge of a level", 1, TILES_MAX, .whole = &s->tiles},
        {"point-ns", "spent for each point and step, for the simulator", 0, 1e6,
         .real = &s->point_ns},
        {"spread", "each patch begins on all ranks, not on those below it", .flag = &s->spread},
        {"no-balance", "every tile where it was made", .flag = &s->no_balance},
        {0},
    };
    int status = parameters_read(f, argc, argv, "A stencil on a grid with refined corners.", table);
    return status >= 0 ? status : check_options(f, s);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    state s = {.points = 1000,
               .patch = 100,
               .level = 3,
               .period = 10,
               .duration = 5,
               .sub = 4,
               .steps = 80,
               .tiles = 8};
    int status = read_options(f, argc, argv, &s);
    if (status >= 0)
        return status;
    for (int k = 1; k <= RADIUS; k++) {
        s.weight[RADIUS + k] = 1 / (2.0 * k * RADIUS);
        s.weight[RADIUS - k] = -s.weight[RADIUS + k];
    }
    const size_t points = (size_t)(most(s.points, extent(&s, 1)) / s.tiles + 1);
    s.edge = malloc(points * points * sizeof *s.edge + NEEDS_MAX * sizeof(ferry_index));
    check(f, s.edge != NULL ? 0 : FERRY_ENOMEM);
    ferry_user_data_set(f, &s);
    status = run(f, &s);
    free(s.edge);
    return status;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
