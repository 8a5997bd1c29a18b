/* Heat in a square that is cut into tiles, which are elements of a collection. A step of a tile
 * needs the edges of its neighbours, and every tenth step the heat of all tiles. No tile counts
 * messages, and there is no barrier.
 *
 *     cc tiles.c $(pkg-config --cflags --libs ferry-data) -o tiles
 *     ferry run -n 4 ./tiles */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

enum { TILES = 8, SIDE = 16, STEPS = 100, ROW = SIDE + 2 };

typedef struct tile {
    double cell[ROW][ROW], next[ROW][ROW]; /* with a rim of ghost cells */
} tile;

/* Up, down, left, right: the neighbours of a tile, as far as there are any. */
static uint32_t neighbours(ferry_index of, ferry_index *out, int *side)
{
    static const int di[] = {-1, 1, 0, 0}, dj[] = {0, 0, -1, 1};
    uint32_t count = 0;
    for (int s = 0; s < 4; s++) {
        int64_t i = of.at[0] + di[s], j = of.at[1] + dj[s];
        side[count] = s;
        out[count] = ferry_index_of(i, j, 0);
        count += i >= 0 && j >= 0 && i < TILES && j < TILES;
    }
    return count;
}

/* The cell at place `k` of a side: its outermost row, or the rim beyond it. */
static double *edge(tile *t, int side, int k, int rim)
{
    int at = side % 2 == 0 ? !rim : SIDE + rim;
    return side < 2 ? &t->cell[at][k] : &t->cell[k][at];
}

/* Sends the edges for step `number`, and says what this tile needs for it. */
static void go_on(ferry_element *e, tile *t, uint64_t number)
{
    ferry_index around[4];
    double row[SIDE];
    int side[4];
    uint32_t count = neighbours(e->index, around, side);
    for (uint32_t n = 0; n < count; n++) {
        for (int k = 0; k < SIDE; k++)
            row[k] = *edge(t, side[n], k + 1, 0);
        ferry_message message = {.data = row, .size_bytes = sizeof row};
        if (ferry_step_send(e->collection, e, around[n], number, &message, NULL) != 0)
            abort();
    }
    ferry_step needs = {.size = sizeof needs, .messages = count, .from = around};
    needs.reduction = number % 10 == 9;
    if (ferry_step_next(e, &needs) != 0)
        abort();
}

static void step(ferry *f, ferry_element *e, const ferry_inputs *in)
{
    tile *t = e->data;
    double heat = 0;
    ferry_index around[4];
    int side[4];
    (void)f, (void)neighbours(e->index, around, side);
    for (size_t n = 0; n < in->count; n++) /* in the order of `needs.from` */
        for (int k = 0; k < SIDE; k++)
            *edge(t, side[n], k + 1, 1) = ((const double *)in->inputs[n].message->data)[k];
    if (in->reduced != NULL && e->index.at[0] + e->index.at[1] == 0)
        printf("step %d: heat %.3f\n", (int)in->step, *(const double *)in->reduced);
    for (int i = 1; i <= SIDE; i++)
        for (int j = 1; j <= SIDE; j++)
            heat += t->next[i][j] =
                (t->cell[i - 1][j] + t->cell[i + 1][j] + t->cell[i][j - 1] + t->cell[i][j + 1]) / 4;
    memcpy(t->cell, t->next, sizeof t->cell);
    ferry_contribution all = FERRY_CONTRIBUTION_DEFAULTS;
    all.values = &heat;
    all.count = 1;
    if (in->step % 10 == 8 && ferry_element_contribute(e, &all) != 0)
        abort();
    if (in->step + 1 < STEPS)
        go_on(e, t, in->step + 1);
}

static void *make(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size)
{
    (void)f, (void)arg, (void)bytes, (void)size;
    tile *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->cell[SIDE / 2][SIDE / 2] = e->index.at[0] == 4 && e->index.at[1] == 4 ? 1000 : 0;
    go_on(e, t, 0);
    return t;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    ferry_collection *c;
    (void)argc, (void)argv;
    ferry_object_ops tiles = FERRY_OBJECT_OPS_DEFAULTS;
    tiles.flat_bytes = sizeof(tile);
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    options.dims = 2;
    options.extents[0] = options.extents[1] = TILES;
    options.ops = &tiles;
    options.make = make;
    options.step = step;
    if (ferry_balance_enable(f, true) != 0 || ferry_collection_create(f, &options, &c) != 0 ||
        ferry_quiesce(f) != 0 || ferry_collection_check(c) != 0)
        ferry_abort(f, 1, ferry_error_message(f));
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
