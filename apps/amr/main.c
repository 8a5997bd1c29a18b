/* Advection on two levels of refinement: a blob travels through a periodic square, and fine blocks
 * follow it: they appear, vanish, and are balanced over the ranks.
 *
 *   ferry run -n 4 build/apps/amr [TILES [STEPS [MOVES [PICTURE]]]]
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

#include <ferry/mover_file.h>

#include "amr/amr.h"
#include "common/parameters.h"

static const double speed[DIMS] = {1.0, 0.5};
static const double cell_time = 1e-6; /* seconds, in the simulator */

static double *cell(const ferry_grid *grid, int64_t i, int64_t j)
{
    return ferry_grid_at(grid, ferry_point_of(i, j, 0));
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

/* One step of a row of cells, against the flow. `row` has the values of the row below and gets this
 * one's. Behind a fine block its values take their place. */
static void advance_row(const solver *s, const ferry_block_data *b, ferry_region own, double *row,
                        int64_t i, int64_t refinement)
{
    const double c0 = s->courant[0] * (double)refinement, c1 = s->courant[1] * (double)refinement;
    const bool coarse = refinement == 1;
    const bool fine_0 = coarse && i == own.low.at[0] && s->fine_of[amr_below(s, b->block, 0)] >= 0;
    const bool fine_1 = coarse && s->fine_of[amr_below(s, b->block, 1)] >= 0;
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
    amr_restrict_fine(s);
    amr_move(s, s->halo);
    amr_move(s, s->up);
    amr_move(s, s->fine_halo);
    for (int d = 0; d < DIMS; d++) {
        clear(s->edge[d]);
        amr_move(s, s->edges[d]);
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
            ferry_region own = amr_own_region(x, b);
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
        ferry_region own = amr_own_region(s->u, b);
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
    check(f, ferry_floorplan_map_curve(&tiles, ferry_ranks(f), NULL));
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
    s->halo = amr_bind_halo(s, s->u, cells);
    amr_bind_levels(s);
    fill(s);
    check(f, ferry_object_handler_register(f, "advance_tile", advance_tile, &s->advance[0]));
    check(f, ferry_object_handler_register(f, "advance_fine", advance_fine, &s->advance[1]));
    ferry_user_data_set(f, s);
    s->tile_set = amr_make_mobile(s, (ferry_xarray *[]){s->u, s->edge[0], s->edge[1]}, 3, 1);
    s->fine_set = amr_make_mobile(s, &s->fine, 1, RATIO * RATIO);
    check(f, ferry_balance_enable(f, true));
}

static void solver_fini(solver *s)
{
    check(s->f, ferry_balance_enable(s->f, false));
    check(s->f, ferry_blocks_destroy(s->fine_set));
    check(s->f, ferry_blocks_destroy(s->tile_set));
    amr_free_levels(s);
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
            amr_restrict_fine(&s);
            amr_regrid(&s);
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
        amr_restrict_fine(&s);
        check(f, ferry_vtk_write(s.u, picture, NULL));
    }
    solver_fini(&s);
    return !good;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
