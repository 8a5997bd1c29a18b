/* Advection on two levels of refinement: a blob travels through a periodic square, and fine blocks
 * follow it: they appear, vanish, and are balanced over the ranks.
 *
 *   ferry run -n 4 build/examples/amr [TILES [STEPS [MOVES [PICTURE]]]]
 *
 * The square has TILES^2 coarse tiles of 8^2 cells; where the solution is steep a tile has a fine
 * block of 16^2 cells over it. Coarse cells below fine ones hold their mean. Where flow leaves a
 * fine block, the coarse cell behind takes the flux of the fine side, so nothing is lost: the
 * program checks that the total stays what it was.
 *
 * Tiles and fine blocks are mobile objects: in every step each gets one message, whose handler
 * advances it, and the scheduler moves those that wait on busy ranks to idle ones. Afterwards
 * ferry_blocks_settle brings xarrays and movers into line. The coarse level's movers are bound once
 * and for all; fine blocks get a new xarray when they change. MOVES is how many blocks must have
 * changed ranks at the end, and then one must have vanished; 0 by default: in a real run that is a
 * matter of timing, and of enough steps. In the simulator a cell takes a microsecond. PICTURE is a
 * path for ParaView, of the coarse level at the end: PICTURE.pvti is written or, when it ends so,
 * PICTURE.vtkhdf. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#include "common/parameters.h"
#include <ferry/mover.h>
#include <ferry/mover_blocks.h>
#include <ferry/mover_file.h>

enum { TILE = 8, RATIO = 2, REGRID_STEPS = 4, DIMS = 2 };

static const double speed[DIMS] = {1.0, 0.5};
static const double steep = 0.02;     /* difference of neighbours from which a tile is refined */
static const double cell_time = 1e-6; /* seconds, in the simulator */

typedef struct solver {
    ferry *f;
    int64_t tiles;         /* along an edge */
    double courant[DIMS];  /* of a coarse cell: speed * step / cell */
    ferry_xarray *u;       /* coarse */
    ferry_xarray *edge[2]; /* coarse: sums of fine values that flow into a tile from below in d */
    ferry_mover *halo;     /* of u */
    int32_t *fine_of;      /* per tile: number of its fine block, or -1 */
    ferry_xarray *fine;
    ferry_mover *down, *up, *fine_halo, *edges[2];
    ferry_blocks *tile_set, *fine_set; /* the blocks as objects; tiles have u and the edges */
    ferry_handler advance[2];          /* by level */
    int64_t appeared, vanished, moved;
} solver;

static void check(ferry *f, int error)
{
    if (error == 0)
        return;
    fprintf(stderr, "amr: %s: %s\n", ferry_strerror(error), ferry_error_message(f));
    exit(1);
}

static void move(const solver *s, ferry_mover *m)
{
    check(s->f, ferry_mover_start(m, NULL));
    check(s->f, ferry_mover_wait(m));
}

static double *cell(const ferry_grid *grid, int64_t i, int64_t j)
{
    return ferry_grid_at(grid, ferry_point_of(i, j, 0));
}

static ferry_region own_region(const ferry_xarray *x, size_t i)
{
    return x->blocks.blocks[x->local[i]].region;
}

static void clear(const ferry_xarray *x)
{
    for (size_t i = 0; i < x->local_count; i++) {
        ferry_point p = x->grids[i].region.low;
        do
            *(double *)ferry_grid_at(&x->grids[i], p) = 0;
        while (ferry_region_next(&x->grids[i].region, &p));
    }
}

/* The tile below `tile` in dimension d, round the edge. */
static int64_t below(const solver *s, int64_t tile, int d)
{
    int64_t i = tile / s->tiles, j = tile % s->tiles;
    if (d == 0)
        i = (i + s->tiles - 1) % s->tiles;
    else
        j = (j + s->tiles - 1) % s->tiles;
    return i * s->tiles + j;
}

/* Adds an entry between a coarse and a fine block, when the regions are not empty. */
static void add(const solver *s, ferry_plan *plan, ferry_plan_entry entry)
{
    for (int d = 0; d < FERRY_DIMS_MAX; d++) {
        entry.axis[d] = (int8_t)d;
        entry.ratio[d] = entry.ratio[d] > 0 ? entry.ratio[d] : RATIO;
    }
    if (!ferry_region_is_empty(entry.from))
        check(s->f, ferry_plan_add(plan, &entry));
}

static void mean(void *arg, void *target, ptrdiff_t target_stride, const void *source,
                 ptrdiff_t source_stride, size_t count)
{
    (void)arg;
    for (size_t i = 0; i < count; i++) {
        double *to = (double *)(void *)((char *)target + (ptrdiff_t)i * target_stride);
        *to +=
            *(const double *)(const void *)((const char *)source + (ptrdiff_t)i * source_stride) /
            (RATIO * RATIO);
    }
}

static ferry_mover *bind(const solver *s, ferry_plan *plan, ferry_xarray *from, ferry_xarray *to,
                         ferry_combine how)
{
    ferry_mover_options options = FERRY_MOVER_DEFAULTS;
    ferry_mover *m;
    options.operation.combine = how;
    options.operation.fn = mean;
    options.ordered = how != FERRY_COMBINE_COPY;
    check(s->f, ferry_mover_bind(s->f, plan, from, to, &options, &m));
    ferry_plan_fini(plan);
    return m;
}

static ferry_mover *bind_halo(const solver *s, ferry_xarray *x, int64_t cells)
{
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_plan plan = {0};
    halo.domain = ferry_region_sized(DIMS, (int64_t[]){cells, cells});
    halo.low = halo.high = ferry_point_all(1);
    halo.faces_only = true;
    halo.periodic[0] = halo.periodic[1] = true;
    check(s->f, ferry_plan_halo(&plan, &x->blocks, &halo, ferry_rank(s->f)));
    return bind(s, &plan, x, x, FERRY_COMBINE_COPY);
}

/* The layer of cells that flow enters block `r` through in dimension d, or with `last` leaves. */
static ferry_region layer(ferry_region r, int d, bool last)
{
    if (last)
        r.low.at[d] = r.high.at[d];
    else
        r.high.at[d] = r.low.at[d];
    return r;
}

/* What moves between the levels: means down, ghost cells up, values at edges where flow leaves. */
static void bind_levels(solver *s)
{
    ferry_plan down = {0}, up = {0}, edges[DIMS] = {{0}, {0}};
    const ferry_point ratio = ferry_point_all(RATIO), one = ferry_point_all(1);
    for (int64_t t = 0; t < s->tiles * s->tiles; t++) {
        ferry_region tile = s->u->blocks.blocks[t].region;
        int32_t block = s->fine_of[t];
        for (int d = 0; d < DIMS; d++) {
            int64_t from = below(s, t, d);
            if (block >= 0 || s->fine_of[from] < 0)
                continue;
            ferry_plan_entry entry = {.source = s->fine_of[from], .target = (int32_t)t};
            entry.from = ferry_region_refine(s->u->blocks.blocks[from].region, ratio);
            entry.from = layer(entry.from, d, true);
            entry.to = layer(tile, d, false);
            entry.ratio[d] = 1;
            entry.relation = FERRY_COARSEN;
            add(s, &edges[d], entry);
        }
        if (block < 0)
            continue;
        ferry_region fine = ferry_region_refine(tile, ratio);
        add(s, &down,
            (ferry_plan_entry){.source = block,
                               .target = (int32_t)t,
                               .from = fine,
                               .to = tile,
                               .relation = FERRY_COARSEN});
        ferry_region ring[2 * FERRY_DIMS_MAX];
        int count = ferry_region_difference(ferry_region_grow(fine, one), fine, ring);
        for (int i = 0; i < count; i++)
            add(s, &up,
                (ferry_plan_entry){.source = (int32_t)t,
                                   .target = block,
                                   .from = ferry_region_coarsen(ring[i], ratio),
                                   .to = ring[i],
                                   .relation = FERRY_REFINE});
    }
    s->down = bind(s, &down, s->fine, s->u, FERRY_COMBINE_USER);
    s->up = bind(s, &up, s->u, s->fine, FERRY_COMBINE_COPY);
    for (int d = 0; d < DIMS; d++)
        s->edges[d] = bind(s, &edges[d], s->fine, s->edge[d], FERRY_COMBINE_ADD);
    s->fine_halo = bind_halo(s, s->fine, s->tiles * TILE * RATIO);
}

static void free_levels(solver *s)
{
    ferry_mover *movers[] = {s->down, s->up, s->edges[0], s->edges[1], s->fine_halo};
    for (size_t i = 0; i < sizeof movers / sizeof *movers; i++)
        check(s->f, ferry_mover_free(movers[i]));
}

/* Coarse cells below fine ones get their mean. */
static void restrict_fine(const solver *s)
{
    for (size_t i = 0; i < s->u->local_count; i++) {
        ferry_region own = own_region(s->u, i);
        ferry_point p = own.low;
        if (s->fine_of[s->u->local[i]] < 0)
            continue;
        do
            *(double *)ferry_grid_at(&s->u->grids[i], p) = 0;
        while (ferry_region_next(&own, &p));
    }
    move(s, s->down);
}

/* Tiles that are steep, or next to one: the same answer on every rank. */
static void flag(const solver *s, int64_t *flags)
{
    const int64_t n = s->tiles;
    int64_t *marks = calloc((size_t)(n * n), sizeof *marks);
    if (marks == NULL)
        exit(1);
    move(s, s->halo);
    for (size_t b = 0; b < s->u->local_count; b++) {
        ferry_region own = own_region(s->u, b);
        ferry_point p = own.low;
        do {
            const double *u = ferry_grid_at(&s->u->grids[b], p);
            const ptrdiff_t row = s->u->grids[b].stride[0] / (ptrdiff_t)sizeof(double);
            if (fabs(u[0] - u[-1]) > steep || fabs(u[0] - u[-row]) > steep)
                marks[s->u->local[b]] = 1;
        } while (ferry_region_next(&own, &p));
    }
    check(s->f, ferry_allreduce(s->f, FERRY_INT64, FERRY_MAX, marks, marks, (size_t)(n * n)));
    for (int64_t t = 0; t < n * n; t++) {
        flags[t] = 0;
        for (int64_t k = 0; k < 9; k++)
            flags[t] |= marks[(t / n + n + k / 3 - 1) % n * n + (t % n + n + k % 3 - 1) % n];
    }
    free(marks);
}

/* Makes objects of a level's blocks, which the scheduler may move from then on. */
static ferry_blocks *make_mobile(const solver *s, ferry_xarray *const *arrays, size_t count,
                                 double load)
{
    ferry_blocks *set;
    check(s->f, ferry_blocks_create(s->f, arrays, count, &set));
    for (size_t i = 0; i < arrays[0]->local_count; i++)
        check(s->f, ferry_balance_add(s->f, ferry_blocks_object(set, arrays[0]->local[i]), load));
    return set;
}

/* The new fine array: from the coarse level, then from the old fine blocks where there were any. */
static void fill_fine(const solver *s, ferry_xarray *next)
{
    ferry_plan coarse = {0}, same = {0};
    ferry_meeting meeting = FERRY_MEETING_DEFAULTS;
    meeting.relation = FERRY_REFINE;
    meeting.ratio[0] = meeting.ratio[1] = RATIO;
    check(s->f, ferry_plan_meet(&coarse, &s->u->blocks, &next->blocks, &meeting, ferry_rank(s->f)));
    check(s->f, ferry_plan_meet(&same, &s->fine->blocks, &next->blocks, NULL, ferry_rank(s->f)));
    ferry_mover *movers[] = {bind(s, &coarse, s->u, next, FERRY_COMBINE_COPY),
                             bind(s, &same, s->fine, next, FERRY_COMBINE_COPY)};
    for (int i = 0; i < 2; i++) {
        move(s, movers[i]);
        check(s->f, ferry_mover_free(movers[i]));
    }
}

static void regrid(solver *s)
{
    const size_t count = s->u->blocks.count;
    int64_t *flags = calloc(count, sizeof *flags);
    ferry_floorplan blocks = {.dims = DIMS};
    ferry_xarray *next;
    if (flags == NULL)
        exit(1);
    flag(s, flags);
    free_levels(s);
    for (size_t t = 0; t < count; t++) {
        ferry_block tile = s->u->blocks.blocks[t];
        if (s->fine_of[t] >= 0)
            tile.owner = s->fine->blocks.blocks[s->fine_of[t]].owner;
        s->appeared += flags[t] && s->fine_of[t] < 0;
        s->vanished += !flags[t] && s->fine_of[t] >= 0;
        s->fine_of[t] = flags[t] ? (int32_t)blocks.count : -1;
        if (flags[t])
            check(s->f, ferry_floorplan_add(
                            &blocks, ferry_region_refine(tile.region, ferry_point_all(RATIO)),
                            tile.owner));
    }
    check(s->f, ferry_xarray_create(s->f, &blocks, sizeof(double), ferry_point_all(1), &next));
    fill_fine(s, next);
    check(s->f, ferry_blocks_destroy(s->fine_set));
    ferry_xarray_destroy(s->fine);
    s->fine = next;
    bind_levels(s);
    s->fine_set = make_mobile(s, &s->fine, 1, RATIO * RATIO);
    ferry_floorplan_fini(&blocks);
    free(flags);
}

/* One step of a row of cells, against the flow. `row` has the values of the row below and gets this
 * one's; `left` is the cell before the first. Behind a fine block its values take their place. */
static void advance_row(const solver *s, const ferry_block_data *b, ferry_region own, double *row,
                        int64_t i, int64_t refinement)
{
    const double c0 = s->courant[0] * (double)refinement, c1 = s->courant[1] * (double)refinement;
    const bool coarse = refinement == 1;
    const bool fine_0 = coarse && i == own.low.at[0] && s->fine_of[below(s, b->block, 0)] >= 0;
    const bool fine_1 = coarse && s->fine_of[below(s, b->block, 1)] >= 0;
    double side = *cell(&b->grids[0], i, own.low.at[1] - 1);
    for (int64_t j = own.low.at[1]; j <= own.high.at[1]; j++) {
        double *u = cell(&b->grids[0], i, j), old = *u, low = row[j - own.low.at[1]];
        if (fine_0)
            low = *cell(&b->grids[1], i, j) / RATIO;
        if (fine_1 && j == own.low.at[1])
            side = *cell(&b->grids[2], i, j) / RATIO;
        *u = old - c0 * (old - low) - c1 * (old - side);
        row[j - own.low.at[1]] = old;
        side = old;
    }
}

/* One step of a block, wherever it is. */
static void advance(ferry *f, const ferry_block_data *b, ferry_region own, int64_t refinement)
{
    double row[TILE * RATIO];
    for (int64_t j = own.low.at[1]; j <= own.high.at[1]; j++)
        row[j - own.low.at[1]] = *cell(&b->grids[0], own.low.at[0] - 1, j);
    for (int64_t i = own.low.at[0]; i <= own.high.at[0]; i++)
        advance_row(ferry_user_data(f), b, own, row, i, refinement);
    ferry_compute(f, cell_time * (double)ferry_region_size(own));
}

static void advance_tile(ferry *f, ferry_object object, void *data, int source,
                         const ferry_message *message)
{
    const solver *s = ferry_user_data(f);
    const ferry_block_data *b = data;
    (void)object;
    (void)source;
    (void)message;
    advance(f, b, s->u->blocks.blocks[b->block].region, 1);
}

static void advance_fine(ferry *f, ferry_object object, void *data, int source,
                         const ferry_message *message)
{
    const solver *s = ferry_user_data(f);
    const ferry_block_data *b = data;
    (void)object;
    (void)source;
    (void)message;
    advance(f, b, s->fine->blocks.blocks[b->block].region, RATIO);
}

/* One step of all blocks of both levels, each where the scheduler has it. */
static void advance_all(solver *s)
{
    ferry_blocks *sets[2] = {s->tile_set, s->fine_set};
    for (int level = 0; level < 2; level++) {
        const ferry_message message = {.handler = s->advance[level]};
        check(s->f, ferry_blocks_send(sets[level], &message));
    }
    for (int level = 0; level < 2; level++) {
        size_t moved;
        check(s->f, ferry_blocks_settle(sets[level], &moved));
        s->moved += (int64_t)moved;
    }
}

static void step(solver *s)
{
    restrict_fine(s);
    move(s, s->halo);
    move(s, s->up);
    move(s, s->fine_halo);
    for (int d = 0; d < DIMS; d++) {
        clear(s->edge[d]);
        move(s, s->edges[d]);
    }
    advance_all(s);
}

/* Everything there is, in units of a coarse cell. */
static double total(const solver *s)
{
    double sum = 0;
    for (int level = 0; level < 2; level++) {
        const ferry_xarray *x = level ? s->fine : s->u;
        for (size_t b = 0; b < x->local_count; b++) {
            ferry_region own = own_region(x, b);
            ferry_point p = own.low;
            if (level == 0 && s->fine_of[x->local[b]] >= 0)
                continue;
            do
                sum += *(double *)ferry_grid_at(&x->grids[b], p) / (level ? RATIO * RATIO : 1);
            while (ferry_region_next(&own, &p));
        }
    }
    check(s->f, ferry_allreduce(s->f, FERRY_DOUBLE, FERRY_SUM, &sum, &sum, 1));
    return sum;
}

static void fill(const solver *s)
{
    const double n = (double)(s->tiles * TILE);
    for (size_t b = 0; b < s->u->local_count; b++) {
        ferry_region own = own_region(s->u, b);
        ferry_point p = own.low;
        do {
            double x = (double)p.at[0] / n - 0.3, y = (double)p.at[1] / n - 0.3;
            *(double *)ferry_grid_at(&s->u->grids[b], p) = exp(-200 * (x * x + y * y));
        } while (ferry_region_next(&own, &p));
    }
}

static void solver_init(solver *s)
{
    ferry *f = s->f;
    const int64_t cells = s->tiles * TILE;
    ferry_floorplan tiles, none = {.dims = DIMS};
    check(f, ferry_floorplan_tile(ferry_region_sized(DIMS, (int64_t[]){cells, cells}),
                                  ferry_point_all(TILE), &tiles));
    check(f, ferry_map_curve(&tiles, ferry_ranks(f), NULL));
    check(f, ferry_xarray_create(f, &tiles, sizeof(double), ferry_point_all(1), &s->u));
    for (int d = 0; d < DIMS; d++) {
        check(f, ferry_xarray_create(f, &tiles, sizeof(double), ferry_point_all(0), &s->edge[d]));
        s->courant[d] = speed[d] * 0.4 / RATIO;
    }
    check(f, ferry_xarray_create(f, &none, sizeof(double), ferry_point_all(1), &s->fine));
    s->fine_of = calloc(tiles.count, sizeof *s->fine_of);
    if (s->fine_of == NULL)
        exit(1);
    for (size_t t = 0; t < tiles.count; t++)
        s->fine_of[t] = -1;
    ferry_floorplan_fini(&tiles);
    s->halo = bind_halo(s, s->u, cells);
    bind_levels(s);
    fill(s);
    check(f, ferry_object_handler_register(f, "advance_tile", advance_tile, &s->advance[0]));
    check(f, ferry_object_handler_register(f, "advance_fine", advance_fine, &s->advance[1]));
    ferry_user_data_set(f, s);
    s->tile_set = make_mobile(s, (ferry_xarray *[]){s->u, s->edge[0], s->edge[1]}, 3, 1);
    s->fine_set = make_mobile(s, &s->fine, 1, RATIO * RATIO);
    check(f, ferry_balance_phase(f, true));
}

static void solver_fini(solver *s)
{
    check(s->f, ferry_balance_phase(s->f, false));
    check(s->f, ferry_blocks_destroy(s->fine_set));
    check(s->f, ferry_blocks_destroy(s->tile_set));
    free_levels(s);
    check(s->f, ferry_mover_free(s->halo));
    ferry_xarray *arrays[] = {s->u, s->edge[0], s->edge[1], s->fine};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        ferry_xarray_destroy(arrays[i]);
    free(s->fine_of);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    long tiles = 16, steps = 100, moves = 0;
    const char *picture = NULL;
    const parameter table[] = {
        {"TILES", "along an edge", 3, 64, .whole = &tiles}, /* more: nothing is steep */
        {"STEPS", "in time", 1, 1e6, .whole = &steps},
        {"MOVES", "of blocks between ranks that there have to be", 0, 1e9, .whole = &moves},
        {"PICTURE", "file for ParaView", .text = &picture},
        {0},
    };
    int status = parameters_read(f, argc, argv, "Advection on two levels that follow it.", table);
    if (status >= 0)
        return status;
    solver s = {.f = f, .tiles = tiles};
    solver_init(&s);
    const double before = total(&s);
    double worst = 0;
    for (long i = 0; i < steps; i++) {
        if (i % REGRID_STEPS == 0) {
            restrict_fine(&s);
            regrid(&s);
        }
        step(&s);
        worst = fmax(worst, fabs(total(&s) / before - 1));
    }
    bool conserved = worst < 1e-12;
    bool good = conserved && s.appeared > 0 && s.moved >= moves && (moves == 0 || s.vanished > 0);
    if (ferry_rank(f) == 0)
        printf("%ld steps, %zu tiles, %zu fine blocks at the end; %lld appeared, %lld vanished, "
               "%lld blocks changed ranks; total %.12f, off by %.1e: %s\n",
               steps, s.u->blocks.count, s.fine->blocks.count, (long long)s.appeared,
               (long long)s.vanished, (long long)s.moved, before, worst,
               good        ? "conserved"
               : conserved ? "conserved, but too few blocks moved, appeared or vanished"
                           : "NOT conserved");
    if (picture != NULL) {
        restrict_fine(&s);
        check(f, ferry_picture_write(s.u, picture, NULL));
    }
    solver_fini(&s);
    return !good;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main);
}
