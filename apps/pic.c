/* The particle-in-cell kernel PIC of the Parallel Research Kernels, on objects that move.
 *
 *   ferry run -n 4 build/apps/pic
 *   ferry sim -n 64 build/apps/pic --particle-ns 1000
 *
 * Fixed charges stand on the points of a periodic grid, positive and negative in turn from column
 * to column. Each particle begins in the middle of a cell, with a charge that carries it
 * 2 * shift + 1 cells to the right per step, and a velocity of `rise` cells per step upwards. So
 * the position of each particle is known in advance, and the program checks all of them.
 *
 * The grid is cut into square tiles. A tile is a schedulable object in the shared heap, so within a
 * node it moves by its pointer. In each step it sends one message to each of its eight neighbours,
 * with the particles that go there. It starts step k + 1 when it has the eight messages of step k.
 * There is no barrier between steps. A neighbour is at most one step ahead, so a tile keeps the
 * particles of two steps apart. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "common/check.h"
#include "common/parameters.h"

enum { NEIGHBOURS = 8 };

typedef enum distribution { GEOMETRIC, SINUSOIDAL, LINEAR, PATCH } distribution;
typedef enum load_rule { LOAD_ALL, LOAD_STEP, LOAD_NONE } load_rule;

typedef struct options {
    long cells, particles, tiles, steps, shift, rise, columns;
    int distribution, load;
    double ratio, particle_ns, patch;
    bool no_balance;
} options;

typedef struct particle {
    double x, y, vx, vy, charge;
    double x0, y0; /* where it began */
    uint64_t id;
} particle;

typedef struct particles {
    particle *at;
    size_t count, capacity;
} particles;

/* The particles of step `step`, which is the next to run, and those of the step after it. */
typedef struct tile {
    long column, row;
    long step;
    int messages[2]; /* that have come, of the steps with this parity */
    particles present[2];
} tile;

typedef struct state {
    options options;
    ferry_object_type type;
    ferry_handler arrive, advance;
    ferry_object *tiles;
    uint64_t tile_steps, work_ns, sent, sent_away;
    uint64_t begun_count, begun_ids;
    particles leaving[NEIGHBOURS]; /* scratch */
} state;

/* Makes room for `more` particles, in the shared heap. */
static void reserve(ferry *f, particles *list, size_t more)
{
    const size_t need = list->count + more;
    void *larger;
    if (need <= list->capacity)
        return;
    list->capacity = 2 * list->capacity > need ? 2 * list->capacity : need;
    check(f, ferry_alloc(f, list->capacity * sizeof *list->at, &larger));
    if (list->count != 0)
        memcpy(larger, list->at, list->count * sizeof *list->at);
    check(f, ferry_free(f, list->at));
    list->at = larger;
}

static void append(ferry *f, particles *to, const particle *from, size_t count)
{
    reserve(f, to, count);
    if (count != 0)
        memcpy(to->at + to->count, from, count * sizeof *from);
    to->count += count;
}

/* Packing, for ranks of other nodes: the tile, then the particles of both steps. */

static size_t tile_packed_size(ferry *f, const void *data)
{
    const tile *t = data;
    (void)f;
    return sizeof *t + (t->present[0].count + t->present[1].count) * sizeof(particle);
}

static void tile_pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    const tile *t = data;
    unsigned char *at = buffer;
    (void)f;
    (void)size_bytes;
    memcpy(at, t, sizeof *t);
    at += sizeof *t;
    for (int i = 0; i < 2; i++) {
        if (t->present[i].count != 0)
            memcpy(at, t->present[i].at, t->present[i].count * sizeof(particle));
        at += t->present[i].count * sizeof(particle);
    }
}

static void tile_destroy(ferry *f, void *data)
{
    tile *t = data;
    check(f, ferry_free(f, t->present[0].at));
    check(f, ferry_free(f, t->present[1].at));
    check(f, ferry_free(f, t));
}

static void *tile_unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    const particle *at = (const particle *)(const void *)((const tile *)buffer + 1);
    void *memory;
    (void)object;
    (void)size_bytes;
    if (ferry_alloc(f, sizeof(tile), &memory) != 0)
        return NULL;
    tile *t = memcpy(memory, buffer, sizeof *t);
    for (int i = 0; i < 2; i++) {
        size_t count = t->present[i].count;
        t->present[i] = (particles){0};
        append(f, &t->present[i], at, count);
        at += count;
    }
    return t;
}

static double tile_load(ferry *f, const void *data, const ferry_message *message)
{
    const state *s = ferry_user_data(f);
    const tile *t = data;
    if (message->handler.index == s->advance.index)
        return (double)t->present[t->step % 2].count + 1;
    return s->options.load == LOAD_ALL ? 1 : 0;
}

/* The kernel. */

/* Adds to `*ax` and `*ay` what a charge `q` does at (dx, dy) from it. */
static void push(double dx, double dy, double q, double *ax, double *ay)
{
    double r2 = dx * dx + dy * dy, r = sqrt(r2), force = q / r2;
    *ax += force * dx / r;
    *ay += force * dy / r;
}

/* One step of one particle; the position is not yet taken back into the periodic grid. */
static void move_particle(particle *p)
{
    double column = floor(p->x), dx = p->x - column, dy = p->y - floor(p->y);
    double left = (long)column % 2 == 0 ? p->charge : -p->charge, ax = 0, ay = 0;
    push(dx, dy, left, &ax, &ay);
    push(dx, dy - 1, left, &ax, &ay);
    push(dx - 1, dy, -left, &ax, &ay);
    push(dx - 1, dy - 1, -left, &ax, &ay);
    p->x += p->vx + 0.5 * ax;
    p->y += p->vy + 0.5 * ay;
    p->vx += ax;
    p->vy += ay;
}

/* The charge that moves a particle in the middle of a cell of column `x` to the right. */
static double charge_of(const options *o, long x)
{
    double r2 = 0.5, cosine = 0.5 / sqrt(r2);
    double charge = (double)(2 * o->shift + 1) / (2 * cosine / r2);
    return x % 2 == 0 ? charge : -charge;
}

static double wrap(double x, double size)
{
    x = fmod(x, size);
    return x < 0 ? x + size : x;
}

/* -1, 0 or 1: where `x`, which is not wrapped, is seen from the tile of place `place`. */
static int way(double x, long place, long side)
{
    double from = x - (double)(place * side);
    return from < 0 ? -1 : from >= (double)side;
}

/* Moves all particles of a step. Those that stay in the tile remain in `all`. */
static void move_all(ferry *f, state *s, const tile *t, particles *all)
{
    const options *o = &s->options;
    long side = o->cells / o->tiles;
    size_t stay = 0;
    for (size_t i = 0; i < all->count; i++) {
        particle p = all->at[i];
        move_particle(&p);
        int to = 3 * (way(p.y, t->row, side) + 1) + way(p.x, t->column, side) + 1;
        if (to == 4) {
            all->at[stay++] = p;
            continue;
        }
        p.x = wrap(p.x, (double)o->cells);
        p.y = wrap(p.y, (double)o->cells);
        append(f, &s->leaving[to - (to > 4)], &p, 1);
    }
    all->count = stay;
}

static ferry_object neighbour(const state *s, const tile *t, int index)
{
    int place = index + (index >= 4);
    long n = s->options.tiles;
    long column = (t->column + place % 3 - 1 + n) % n, row = (t->row + place / 3 - 1 + n) % n;
    return s->tiles[row * n + column];
}

static void send_away(ferry *f, state *s, const tile *t)
{
    for (int i = 0; i < NEIGHBOURS; i++) {
        ferry_object to = neighbour(s, t, i);
        const ferry_message message = {.handler = s->arrive,
                                       .word_count = 1,
                                       .words = {(uint64_t)t->step},
                                       .data = s->leaving[i].at,
                                       .size_bytes = s->leaving[i].count * sizeof(particle)};
        int rank = -1;
        (void)ferry_object_locate(f, to, &rank);
        s->sent++;
        s->sent_away += rank != ferry_rank(f);
        check(f, ferry_object_send(f, to, &message, NULL));
        s->leaving[i].count = 0;
    }
}

/* Asks for the next step when all it needs is here. */
static void advance_if_complete(ferry *f, const state *s, ferry_object object, const tile *t)
{
    const ferry_message message = {.handler = s->advance};
    if (t->messages[t->step % 2] == NEIGHBOURS && t->step < s->options.steps)
        check(f, ferry_object_send(f, object, &message, NULL));
}

/* Adds the particles that stay to the few that came early, and leaves `stay` empty. */
static void join(ferry *f, particles *early, particles *stay)
{
    particles both = *stay;
    append(f, &both, early->at, early->count);
    *stay = (particles){.at = early->at, .capacity = early->capacity};
    *early = both;
}

static void on_advance(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    state *s = ferry_user_data(f);
    tile *t = data;
    particles *now = &t->present[t->step % 2];
    double present = (double)now->count;
    uint64_t begin_ns = ferry_now(f);
    (void)source;
    (void)message;
    move_all(f, s, t, now);
    ferry_compute(f, s->options.particle_ns * 1e-9 * present);
    s->work_ns += ferry_now(f) - begin_ns;
    s->tile_steps++;
    t->messages[t->step % 2] = 0;
    t->step++;
    join(f, &t->present[t->step % 2], now);
    send_away(f, s, t);
    advance_if_complete(f, s, object, t);
}

static void on_arrive(ferry *f, ferry_object object, void *data, int source,
                      const ferry_message *message)
{
    tile *t = data;
    long step = (long)message->words[0];
    (void)source;
    append(f, &t->present[step % 2], message->data, message->size_bytes / sizeof(particle));
    t->messages[step % 2]++;
    if (step == t->step)
        advance_if_complete(f, ferry_user_data(f), object, t);
}

/* The beginning. */

/* A number from 0 to 1 for a cell, the same on every rank. */
static double noise(uint64_t cell)
{
    uint64_t z = (cell + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* How many particles a cell of column `x` and row `y` has in the mean. */
static double density(const options *o, long x, long y)
{
    const double pi = 3.14159265358979323846;
    double n = (double)o->cells, mean = (double)o->particles / (n * n), wave;
    switch ((distribution)o->distribution) {
    case GEOMETRIC:
        if (o->ratio == 1)
            return mean;
        return mean * n * (1 - o->ratio) / (1 - pow(o->ratio, n)) * pow(o->ratio, (double)x);
    case SINUSOIDAL:
        wave = cos(2 * pi * (double)x / n);
        return mean * 2 * wave * wave;
    case LINEAR:
        return mean * 2 * (1 - (double)x / (n - 1));
    case PATCH:
        n *= o->patch;
        return (double)x < n && (double)y < n ? mean / (o->patch * o->patch) : 0;
    }
    return 0;
}

static void fill_tile(ferry *f, state *s, tile *t)
{
    const options *o = &s->options;
    long side = o->cells / o->tiles;
    for (long y = t->row * side; y < (t->row + 1) * side; y++)
        for (long x = t->column * side; x < (t->column + 1) * side; x++) {
            uint64_t cell = (uint64_t)(y * o->cells + x);
            long count = (long)(density(o, x, y) + noise(cell));
            particle p = {.x = (double)x + 0.5, .y = (double)y + 0.5, .vy = (double)o->rise};
            p.x0 = p.x;
            p.y0 = p.y;
            p.charge = charge_of(o, x);
            for (long i = 0; i < count; i++) {
                p.id = s->begun_count++ + ((uint64_t)ferry_rank(f) << 40);
                s->begun_ids += p.id;
                append(f, &t->present[0], &p, 1);
            }
        }
}

/* How many blocks of ranks stand side by side: as near to a square as the number of ranks allows.
 */
static long square_columns(long ranks)
{
    long columns = 1;
    for (long i = 1; i * i <= ranks; i++)
        if (ranks % i == 0)
            columns = i;
    return columns;
}

/* The rank where a tile begins. Each rank has a block of tiles. */
static int first_rank(const ferry *f, const options *o, long column, long row)
{
    long rows = ferry_ranks(f) / o->columns;
    return (int)(row * rows / o->tiles * o->columns + column * o->columns / o->tiles);
}

/* Makes this rank's tiles and tells every rank all names. */
static void create_tiles(ferry *f, state *s)
{
    const options *o = &s->options;
    size_t count = (size_t)(o->tiles * o->tiles);
    uint64_t *names = calloc(count, sizeof *names);
    s->tiles = calloc(count, sizeof *s->tiles);
    check(f, names != NULL && s->tiles != NULL ? 0 : FERRY_ENOMEM);
    for (size_t i = 0; i < count; i++) {
        long column = (long)i % o->tiles, row = (long)i / o->tiles;
        if (first_rank(f, o, column, row) != ferry_rank(f))
            continue;
        void *memory;
        check(f, ferry_alloc(f, sizeof(tile), &memory));
        tile *t = memory;
        *t = (tile){.column = column, .row = row, .messages = {NEIGHBOURS, 0}};
        fill_tile(f, s, t);
        check(f, ferry_object_create(f, s->type, t, &s->tiles[i]));
        check(f, ferry_balance_add(f, s->tiles[i], NULL));
        names[i] = s->tiles[i].word;
    }
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, names, names, count));
    for (size_t i = 0; i < count; i++)
        s->tiles[i].word = names[i];
    free(names);
}

/* The end. */

static bool is_where(double x, double begin, long cells_per_step, const options *o)
{
    double size = (double)o->cells;
    double away = fabs(x - wrap(begin + (double)(cells_per_step * o->steps), size));
    return away < 1e-5 || size - away < 1e-5;
}

/* Whether all particles are there, each where it must be. */
static bool verify(ferry *f, const state *s)
{
    enum { LOST_COUNT, LOST_IDS, WRONG, STEPS, SUMS };
    const options *o = &s->options;
    uint64_t sums[SUMS] = {s->begun_count, s->begun_ids, 0, s->tile_steps};
    for (long i = 0; i < o->tiles * o->tiles; i++) {
        const tile *t = ferry_object_data(f, s->tiles[i]);
        for (size_t k = 0; t != NULL && k < t->present[o->steps % 2].count; k++) {
            const particle *p = &t->present[o->steps % 2].at[k];
            bool right =
                is_where(p->x, p->x0, 2 * o->shift + 1, o) && is_where(p->y, p->y0, o->rise, o);
            sums[LOST_COUNT]--;
            sums[LOST_IDS] -= p->id;
            sums[WRONG] += !right;
        }
    }
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, SUMS));
    uint64_t steps = (uint64_t)(o->tiles * o->tiles * o->steps);
    bool valid =
        sums[LOST_COUNT] == 0 && sums[LOST_IDS] == 0 && sums[WRONG] == 0 && sums[STEPS] == steps;
    if (!valid && ferry_rank(f) == 0)
        fprintf(stderr,
                "pic: %" PRId64 " particles are lost, %" PRIu64 " stand where they must not; "
                "%" PRIu64 " steps of tiles ran, expected %" PRIu64 "\n",
                (int64_t)sums[LOST_COUNT], sums[WRONG], sums[STEPS], steps);
    return valid;
}

static void print(ferry *f, const state *s, double took_ms, bool valid)
{
    const options *o = &s->options;
    ferry_stats stats = FERRY_STATS_DEFAULTS;
    check(f, ferry_stats_get(f, &stats));
    enum { MOVES, FORWARDS, SENT, AWAY, WORK, SUMS };
    uint64_t sums[SUMS] = {stats.objects_out, stats.messages_forwarded, s->sent, s->sent_away,
                           s->work_ns};
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, SUMS));
    double bound_ms = (double)sums[WORK] / 1e6 / ferry_ranks(f);
    if (ferry_rank(f) == 0)
        printf("scheduler %s, %d ranks, %ld x %ld tiles, %ld steps: %.3f ms per step, ratio %.3f, "
               "%" PRIu64 " moves, %" PRIu64 " forwards, %.1f%% of messages leave, %s\n",
               o->no_balance ? "off" : ferry_balance_scheduler(f), ferry_ranks(f), o->tiles,
               o->tiles, o->steps, took_ms / (double)o->steps, took_ms / bound_ms, sums[MOVES],
               sums[FORWARDS], 100 * (double)sums[AWAY] / (double)sums[SENT],
               valid ? "valid" : "INVALID");
}

static int run(ferry *f, state *s)
{
    const options *o = &s->options;
    create_tiles(f, s);
    check(f, o->no_balance ? ferry_barrier(f) : ferry_balance_enable(f, true));
    uint64_t begin_ns = ferry_now(f);
    for (long i = 0; i < o->tiles * o->tiles; i++) {
        const tile *t = ferry_object_data(f, s->tiles[i]);
        if (t != NULL)
            advance_if_complete(f, s, s->tiles[i], t);
    }
    check(f, ferry_quiesce(f));
    double took_ms = (double)(ferry_now(f) - begin_ns) / 1e6;
    if (!o->no_balance)
        check(f, ferry_balance_enable(f, false));
    bool valid = verify(f, s);
    print(f, s, took_ms, valid);
    return valid ? 0 : 1;
}

/* -1, or what the program ends with. */
static int check_options(ferry *f, options *o)
{
    long side = o->cells / o->tiles;
    if (o->columns == 0)
        o->columns = square_columns(ferry_ranks(f));
    if (o->cells % 2 == 0 && o->cells % o->tiles == 0 && ferry_ranks(f) % o->columns == 0 &&
        2 * o->shift + 1 <= side && labs(o->rise) <= side)
        return -1;
    if (ferry_rank(f) == 0)
        fprintf(stderr,
                "pic: %ld cells, %ld tiles, shift %ld, rise %ld, %ld columns on %d ranks: expected "
                "an even number of cells that the tiles divide, no more than a tile per step (%ld "
                "cells), and columns that divide the ranks\n",
                o->cells, o->tiles, o->shift, o->rise, o->columns, ferry_ranks(f), side);
    return 2;
}

static int read_options(ferry *f, int argc, char **argv, options *o)
{
    static const char *const distributions[] = {"geometric", "sinusoidal", "linear", "patch", NULL};
    static const char *const rules[] = {"all", "step", "none", NULL};
    const parameter table[] = {
        {"cells", "along an edge of the grid", 2, 1e5, .whole = &o->cells},
        {"particles", "about so many", 1, 1e9, .whole = &o->particles},
        {"tiles", "along an edge", 1, 1000, .whole = &o->tiles},
        {"steps", "time steps", 1, 1e6, .whole = &o->steps},
        {"shift", "k: particles go 2 k + 1 cells to the right per step", 0, 1e4,
         .whole = &o->shift},
        {"rise", "cells upwards per step", -1e4, 1e4, .whole = &o->rise},
        {"columns", "of ranks (0: as near to a square as can be)", 0, 1e6, .whole = &o->columns},
        {"distribution", "of the particles", .choice = &o->distribution, .of = distributions},
        {"ratio", "geometric: of particles in a column to the one before", 1e-3, 1,
         .real = &o->ratio},
        {"patch", "patch: its edge, as a part of the grid's", 1e-3, 1, .real = &o->patch},
        {"particle-ns", "spent for each particle and step, for the simulator", 0, 1e9,
         .real = &o->particle_ns},
        {"load", "what the load callback counts: arrivals too, steps alone, or there is none",
         .choice = &o->load, .of = rules},
        {"no-balance", "every tile where it was made", .flag = &o->no_balance},
        {0},
    };
    int status = parameters_read(f, argc, argv, "Particles that drift through a grid.", table);
    return status >= 0 ? status : check_options(f, o);
}

static void free_state(ferry *f, state *s)
{
    for (int i = 0; i < NEIGHBOURS; i++)
        check(f, ferry_free(f, s->leaving[i].at));
    free(s->tiles);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    state s = {.options = {.cells = 768,
                           .particles = 300000,
                           .tiles = 64,
                           .steps = 20,
                           .rise = 1,
                           .ratio = 0.99,
                           .patch = 0.25}};
    int status = read_options(f, argc, argv, &s.options);
    if (status >= 0)
        return status;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ops.name = "tile";
    ops.packed_size = tile_packed_size;
    ops.pack = tile_pack;
    ops.unpack = tile_unpack;
    ops.destroy = tile_destroy;
    ops.flags = FERRY_OBJECT_SHARED;
    ops.load = s.options.load == LOAD_NONE ? NULL : tile_load;
    ferry_user_data_set(f, &s);
    check(f, ferry_object_type_register(f, &ops, &s.type));
    check(f, ferry_object_handler_register(f, "arrive", on_arrive, &s.arrive));
    check(f, ferry_object_handler_register(f, "advance", on_advance, &s.advance));
    status = run(f, &s);
    free_state(f, &s);
    return status;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
