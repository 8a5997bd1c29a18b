/* Goal: nothing is lost, doubled or out of order while elements move, come and go. Method: tiles
 * run steps with messages of their neighbours and reductions. They move at random, and send to each
 * other in numbered order. Mites are inserted and removed at random while their reductions run, and
 * get tracked messages. At the end the test counts and compares what each element has. Arguments:
 * steps, seed. */
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"
#include "../support/random.h"

enum { SIDE_I = 6, SIDE_J = 4, TILES = SIDE_I * SIDE_J, MITES = 40, FIRST = 3, RANKS = 32 };

/* The state of each rank. */
typedef struct world {
    ferry *f;
    ferry_collection *tiles, *mites;
    ferry_handler ping, section, poke, total;
    uint64_t random, steps;
    uint32_t sent[TILES]; /* pings of this rank */
    uint64_t pokes, ended, totals;
    bool over;
} world;

typedef struct tile {
    uint32_t got[RANKS]; /* pings by rank */
    uint64_t steps, all, some, sum;
} tile;

typedef struct mite {
    uint64_t rounds, living;
} mite;

static world *world_of(ferry *f)
{
    return ferry_user_data(f);
}

static uint64_t number_of(ferry_index index)
{
    return (uint64_t)(index.at[0] * SIDE_J + index.at[1]);
}

static uint32_t around(ferry_index of, ferry_index *out)
{
    static const int di[] = {1, 0, SIDE_I - 1, 0}, dj[] = {0, 1, 0, SIDE_J - 1};
    for (int s = 0; s < 4; s++)
        out[s] = ferry_index_of((of.at[0] + di[s]) % SIDE_I, (of.at[1] + dj[s]) % SIDE_J, 0);
    return 4;
}

static void wander(ferry *f, const ferry_element *e)
{
    world *w = world_of(f);
    if (draw(&w->random, 3) == 0)
        CHECK(f, ferry_object_move(f, e->object, (int)draw(&w->random, (uint64_t)ferry_ranks(f))) ==
                     0);
}

static void send_pings(world *w)
{
    for (uint64_t n = draw(&w->random, 4); n > 0; n--) {
        uint64_t to = draw(&w->random, TILES);
        ferry_message message = {.handler = w->ping, .word_count = 1, .words = {w->sent[to]++}};
        ferry_index index = ferry_index_of((int64_t)to / SIDE_J, (int64_t)to % SIDE_J, 0);
        CHECK(w->f, ferry_collection_send(w->tiles, index, &message, NULL) == 0);
    }
}

static void poke_ended(ferry *f, void *arg, const ferry_receipt *receipt)
{
    world *w = arg;
    CHECK(f, receipt->error == 0 || receipt->error == FERRY_ENOENT);
    w->ended++;
}

static void send_poke(world *w)
{
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = track.failed = poke_ended;
    track.completed_arg = track.failed_arg = w;
    ferry_message message = {.handler = w->poke};
    ferry_index to = ferry_index_of((int64_t)draw(&w->random, MITES), 0, 0);
    int error = ferry_collection_send(w->mites, to, &message, &track);
    CHECK(w->f, error == 0 || error == FERRY_ENOENT);
    w->pokes += error == 0;
}

/* Sends to the neighbours, some late, and asks for the step. */
static void tile_go(ferry_element *e, uint64_t number)
{
    ferry *f = ferry_collection_rank(e->collection);
    world *w = world_of(f);
    ferry_index to[4];
    ferry_step needs = FERRY_STEP_DEFAULTS;
    unsigned char data[200];
    needs.messages = around(e->index, to);
    needs.from = number % 3 != 1 ? to : NULL;
    needs.reduction = number % 4 == 3;
    bool asks_first = draw(&w->random, 2) == 0;
    if (asks_first)
        CHECK(f, ferry_step_next(e, &needs) == 0);
    for (uint32_t n = 0; n < needs.messages; n++) {
        size_t size = (size_t)draw(&w->random, sizeof data);
        memset(data, (int)number, sizeof data);
        ferry_message message = {.word_count = 2,
                                 .words = {number, number_of(e->index)},
                                 .data = data,
                                 .size_bytes = size};
        CHECK(f, ferry_step_send(e->collection, e, to[n], number, &message, NULL) == 0);
    }
    if (!asks_first)
        CHECK(f, ferry_step_next(e, &needs) == 0);
}

static void tile_step(ferry *f, ferry_element *e, const ferry_inputs *in)
{
    world *w = world_of(f);
    tile *t = e->data;
    ferry_index from[4];
    w->tiles = e->collection; /* ferry_collection_create may not have returned here yet */
    (void)around(e->index, from);
    CHECK(f, in->step == t->steps && in->count == 4);
    for (size_t n = 0; n < in->count; n++) {
        const ferry_input *input = &in->inputs[n];
        CHECK(f, !input->from_rank && input->message->words[0] == in->step);
        CHECK(f, input->message->words[1] == number_of(input->from));
        if (in->step % 3 != 1)
            CHECK(f, ferry_index_equal(input->from, from[n]));
        for (size_t i = 0; i < input->message->size_bytes; i++)
            CHECK(f, ((const unsigned char *)input->message->data)[i] == (in->step & 0xff));
    }
    if (in->step % 4 == 3) {
        const uint64_t *sum = in->reduced;
        CHECK(f, in->reduced_count == 2 && sum[0] == TILES);
        CHECK(f, sum[1] == TILES * (TILES - 1) / 2 + TILES * (in->step - 1));
    }
    t->steps++;
    if (in->step % 4 == 2) {
        ferry_contribution sum = FERRY_CONTRIBUTION_DEFAULTS;
        uint64_t values[] = {1, number_of(e->index) + in->step};
        sum.values = values;
        sum.count = 2;
        sum.type = FERRY_UINT64;
        sum.to = FERRY_REDUCED_RANKS;
        sum.handler = w->total;
        CHECK(f, ferry_element_contribute(e, &sum) == 0);
    }
    ferry_compute(f, (double)draw(&w->random, 50) * 1e-6);
    send_pings(w);
    if (w->mites != NULL)
        send_poke(w);
    if (t->steps < w->steps)
        tile_go(e, t->steps);
    wander(f, e);
}

static void take_ping(ferry *f, ferry_object object, void *data, int source,
                      const ferry_message *message)
{
    ferry_element *e = data;
    tile *t = e->data;
    CHECK(f, ferry_object_equal(object, e->object));
    CHECK(f, message->words[0] == t->got[source]++);
    wander(f, e);
}

static void take_section(ferry *f, ferry_object object, void *data, int source,
                         const ferry_message *message)
{
    tile *t = ((ferry_element *)data)->data;
    (void)f, (void)object, (void)source;
    CHECK(f, message->words[1] == 7 && message->words[3] == 9 && message->size_bytes == 5);
    if (message->words[0] == 0)
        t->all++;
    else
        t->some++;
}

static void take_poke(ferry *f, ferry_object object, void *data, int source,
                      const ferry_message *message)
{
    (void)object, (void)source, (void)message;
    wander(f, data);
}

static void take_total(ferry *f, int source, const ferry_message *message)
{
    const uint64_t *values = message->data;
    (void)source;
    CHECK(f, message->words[0] == world_of(f)->totals++ && values[0] == TILES);
}

static void *make_tile(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size_bytes)
{
    void *memory;
    CHECK(f, ferry_alloc(f, sizeof(tile), &memory) == 0);
    tile *t = memset(memory, 0, sizeof *t);
    CHECK(f, arg == world_of(f) && bytes == NULL && size_bytes == 0);
    world_of(f)->tiles = e->collection;
    tile_go(e, 0);
    return t;
}

/* A mite counts the mites in every round, and waits for the sum. */
static void mite_go(ferry_element *e, uint64_t living)
{
    ferry *f = ferry_collection_rank(e->collection);
    ferry_contribution one = FERRY_CONTRIBUTION_DEFAULTS;
    ferry_step needs = FERRY_STEP_DEFAULTS;
    uint64_t value = 1;
    (void)living;
    one.values = &value;
    one.count = 1;
    one.type = FERRY_UINT64;
    CHECK(f, ferry_element_contribute(e, &one) == 0);
    needs.reduction = true;
    CHECK(f, ferry_step_next(e, &needs) == 0);
}

static void mite_step(ferry *f, ferry_element *e, const ferry_inputs *in)
{
    world *w = world_of(f);
    mite *m = e->data;
    m->living = *(const uint64_t *)in->reduced;
    m->rounds++;
    CHECK(f, in->count == 0 && m->living >= FIRST && m->living <= 2 * MITES);
    if (m->rounds == w->steps)
        return;
    bool changes = m->rounds + 1 < w->steps;
    for (uint64_t n = draw(&w->random, 3); changes && n > 0; n--) {
        uint64_t rounds = m->rounds;
        ferry_index to = ferry_index_of((int64_t)draw(&w->random, MITES), 0, 0);
        CHECK(f, ferry_collection_insert(e->collection, e, to, &rounds, sizeof rounds) == 0);
    }
    if (changes && e->index.at[0] >= FIRST && draw(&w->random, 4) == 0) {
        if (draw(&w->random, 2) == 0)
            CHECK(f, ferry_collection_remove(e->collection, e->index) == 0);
        else
            CHECK(f, ferry_object_destroy(f, e->object) == 0);
        return;
    }
    mite_go(e, 0);
    wander(f, e);
}

static void *make_mite(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size_bytes)
{
    mite *m = calloc(1, sizeof *m);
    CHECK(f, m != NULL && arg == world_of(f) && size_bytes == sizeof(uint64_t));
    memcpy(&m->rounds, bytes, sizeof m->rounds);
    for (int i = 1; e->index.at[0] == 0 && i < FIRST; i++)
        CHECK(f, ferry_collection_insert(e->collection, e, ferry_index_of(i, 0, 0), bytes,
                                         size_bytes) == 0);
    if (m->rounds != UINT64_MAX)
        mite_go(e, 0);
    return m;
}

static void create(world *w)
{
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    ops.name = "mite";
    ops.flat_bytes = sizeof(mite);
    options.ops = &ops;
    options.make = make_mite;
    options.make_arg = w;
    options.step = mite_step;
    CHECK(w->f, ferry_collection_create(w->f, &options, &w->mites) == 0);
    uint64_t rounds = 0;
    if (ferry_rank(w->f) == 0)
        CHECK(w->f, ferry_collection_insert(w->mites, NULL, ferry_index_of(0, 0, 0), &rounds,
                                            sizeof rounds) == 0);
    ops.name = "tile";
    ops.flat_bytes = sizeof(tile);
    ops.flags = FERRY_OBJECT_SHARED;
    options.dims = 2;
    options.extents[0] = SIDE_I;
    options.extents[1] = SIDE_J;
    options.make = make_tile;
    options.step = tile_step;
    options.map = (ferry_map)(w->steps % 5);
    CHECK(w->f, ferry_collection_create(w->f, &options, &w->tiles) == 0);
}

static void send_sections(world *w)
{
    ferry_section some = {{{1, 0, 0}}, {{SIDE_I - 1, SIDE_J - 1, 0}}, {{2, 3, 0}}};
    ferry_message message = {.handler = w->section,
                             .word_count = 4,
                             .words = {0, 7, 8, 9},
                             .data = "data",
                             .size_bytes = 5};
    CHECK(w->f, ferry_collection_send_section(w->tiles, NULL, &message) == 0);
    message.words[0] = 1;
    CHECK(w->f, ferry_collection_send_section(w->tiles, &some, &message) == 0);
}

/* Numbers of elements, and of pings got and sent, over all ranks. */
static void compare(world *w)
{
    ferry *f = w->f;
    uint64_t counts[6] = {0}, ranks = (uint64_t)ferry_ranks(f), living = 0;
    for (ferry_element *e = NULL; (e = ferry_collection_next(w->tiles, e)) != NULL;) {
        const tile *t = e->data;
        bool in_some = e->index.at[0] % 2 == 1 && e->index.at[1] % 3 == 0;
        CHECK(f, t->steps == w->steps && t->all == ranks && t->some == (in_some ? ranks : 0));
        CHECK(f, ferry_collection_home(w->tiles, e->index) < ferry_ranks(f));
        counts[0]++;
        for (int r = 0; r < RANKS; r++)
            counts[1] += t->got[r];
    }
    for (ferry_element *e = NULL; (e = ferry_collection_next(w->mites, e)) != NULL;) {
        const mite *m = e->data;
        CHECK(f, m->rounds == w->steps);
        living = m->living;
        counts[2]++;
    }
    for (int i = 0; i < TILES; i++)
        counts[3] += w->sent[i];
    CHECK(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, counts, counts, 6) == 0);
    CHECK(f, ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, &living, &living, 1) == 0);
    CHECK(f, counts[0] == TILES && counts[1] == counts[3] && counts[2] == living);
    CHECK(f, w->totals == (w->steps + 1) / 4);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    world w = {.f = f, .steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 12};
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, none = UINT64_MAX;
    w.random = seed * 0x9e3779b97f4a7c15u + (uint64_t)ferry_rank(f) * 77 + 1;
    ferry_user_data_set(f, &w);
    CHECK(f, ferry_object_handler_register(f, "ping", take_ping, &w.ping) == 0);
    CHECK(f, ferry_object_handler_register(f, "section", take_section, &w.section) == 0);
    CHECK(f, ferry_object_handler_register(f, "poke", take_poke, &w.poke) == 0);
    CHECK(f, ferry_handler_register(f, "total", take_total, &w.total) == 0);
    CHECK(f, ferry_balance_enable(f, true) == 0);
    create(&w);
    send_sections(&w);
    for (int n = 0; n < 5; n++)
        send_poke(&w);
    CHECK(f, ferry_quiesce(f) == 0);
    /* Pokes to indices that never had a mite wait: the only thing that does. */
    int error = ferry_collection_check(w.tiles);
    CHECK(f, error == 0);
    compare(&w);
    CHECK(f, ferry_barrier(f) == 0);
    for (int i = FIRST; ferry_rank(f) == 0 && i < MITES; i++)
        CHECK(f, ferry_collection_insert(w.mites, NULL, ferry_index_of(i, 0, 0), &none,
                                         sizeof none) == 0);
    CHECK(f, ferry_quiesce(f) == 0 && ferry_collection_check(w.mites) == 0);
    /* The end of an operation is no work: it may come after quiescence. */
    uint64_t limit_ns = ferry_now(f) + UINT64_C(20000000000);
    while (w.ended != w.pokes && ferry_now(f) < limit_ns)
        CHECK(f, ferry_wait(f, 1000000) >= 0);
    CHECK(f, w.ended == w.pokes);
    CHECK(f, ferry_collection_destroy(w.mites) == 0);
    CHECK(f, ferry_collection_destroy(w.tiles) == 0 && ferry_object_count(f) == 0);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
