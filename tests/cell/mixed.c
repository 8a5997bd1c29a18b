/* Goal: at every moment a parcel has one holder that may change it, and one content. Method: all
 * ranks work on cells of all ranks, with every operation, tracked ones that time out or are
 * cancelled among them. Each parcel's content follows from its id and its version. A rank checks
 * what it gets and what it holds. Tokens are parcels that are only moved: each must exist once in
 * the end, changed as often as the ranks have changed it. Arguments: operations, seed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/random.h"

enum { HELD_MAX = 10, OPEN_MAX = 8, TOKENS = 6, WORDS_MAX = 40 };
enum { TOKEN_CELL = 30, PLAIN_CELL = 32, FULL = 5 };

/* The parcels that a rank holds. */
typedef struct held {
    ferry_parcel parcel;
    uint64_t id, version;
} held;

/* A tracked operation, and which versions of the tokens this rank knew when it began. */
typedef struct open_op {
    ferry_op op;
    ferry_parcel out;
    bool used, takes, tokens;
    uint64_t known[TOKENS + 1];
} open_op;

typedef struct work {
    ferry *f;
    uint64_t random, created;
    held plain[HELD_MAX], tokens[TOKENS + 1];
    int plain_count, token_count;
    open_op open[OPEN_MAX];
    uint64_t known[TOKENS + 1];
    int64_t changes[TOKENS + 1], gave_up, both;
} work;

static void failed(const work *w, const char *text, int line)
{
    fprintf(stderr, "mixed.c:%d: rank %d: %s (%s)\n", line, ferry_rank(w->f), text,
            ferry_error_message(w->f));
    exit(1);
}

#define CHECK(w, condition) ((condition) ? (void)0 : failed(w, #condition, __LINE__))

static size_t words_of(uint64_t id)
{
    return 3 + id * 7 % (WORDS_MAX - 3);
}

static void fill(uint64_t *words, uint64_t id, uint64_t version)
{
    words[0] = id;
    words[1] = version;
    for (size_t i = 2; i < words_of(id); i++)
        words[i] = (id * 31 + version) * UINT64_C(0x9e3779b97f4a7c15) + i;
}

/* Reads the id and the version of a parcel that this rank holds; all of it must be theirs. */
static held look(const work *w, ferry_parcel parcel)
{
    size_t size;
    const uint64_t *words = ferry_parcel_data(w->f, parcel, &size);
    CHECK(w, words != NULL);
    CHECK(w, size >= 3 * sizeof(*words) && size == words_of(words[0]) * sizeof(*words));
    uint64_t expected[WORDS_MAX];
    fill(expected, words[0], words[1]);
    CHECK(w, memcmp(expected, words, size) == 0);
    return (held){parcel, words[0], words[1]};
}

static void check_held(const work *w, const held *h)
{
    held now = look(w, h->parcel);
    CHECK(w, now.id == h->id && now.version == h->version);
}

static ferry_parcel make(const work *w, uint64_t id)
{
    ferry_parcel parcel;
    void *data;
    CHECK(w, ferry_parcel_create(w->f, words_of(id) * sizeof(uint64_t), &parcel, &data) == 0);
    fill(data, id, 0);
    return parcel;
}

static void change(work *w, held *h)
{
    void *data;
    check_held(w, h);
    CHECK(w, ferry_parcel_modify(w->f, &h->parcel, &data) == 0);
    fill(data, h->id, ++h->version);
    /* Holding a parcel twice is not sharing it. */
    for (int i = 0; i < w->plain_count; i++)
        if (w->plain[i].parcel.word == h->parcel.word)
            w->plain[i].version = h->version;
    if (h->id <= TOKENS) {
        w->changes[h->id]++;
        w->known[h->id] = h->version;
    }
}

/* Takes up a parcel that an operation has brought, which began when `known` was. */
static void got(work *w, ferry_parcel parcel, bool taken, const uint64_t *known)
{
    held h = look(w, parcel);
    if (h.id <= TOKENS) {
        CHECK(w, h.version >= (taken ? w->known[h.id] : known[h.id]));
        if (h.version > w->known[h.id])
            w->known[h.id] = h.version;
    }
    if (h.id <= TOKENS && taken) {
        for (int i = 0; i < w->token_count; i++)
            CHECK(w, w->tokens[i].id != h.id);
        CHECK(w, w->token_count < TOKENS);
        w->tokens[w->token_count++] = h;
    } else if (w->plain_count == HELD_MAX || h.id <= TOKENS) {
        CHECK(w, ferry_parcel_release(w->f, parcel) == 0);
    } else {
        w->plain[w->plain_count++] = h;
    }
}

static ferry_cell any_cell(work *w, bool tokens)
{
    const int ranks = ferry_ranks(w->f);
    return (ferry_cell){(int)draw(&w->random, (uint64_t)ranks),
                        (tokens ? TOKEN_CELL : PLAIN_CELL) + (int)draw(&w->random, 2)};
}

/* Takes or reads, and waits for it. */
static void fetch(work *w, bool takes, bool tokens)
{
    ferry_parcel out = {0};
    uint64_t known[TOKENS + 1],
        timeout_ns = draw(&w->random, 3) == 0 ? 1000 + draw(&w->random, 100000) : 0;
    memcpy(known, w->known, sizeof(known));
    int error = takes ? ferry_cell_dequeue(w->f, any_cell(w, tokens), &out, timeout_ns)
                      : ferry_cell_read(w->f, any_cell(w, tokens), &out, timeout_ns);
    CHECK(w, error == 0 || error == (timeout_ns > 0 ? FERRY_ETIMEDOUT : FERRY_EAGAIN));
    CHECK(w, (error == 0) == (out.word != 0));
    if (error == 0)
        got(w, out, takes, known);
}

static void fetch_start(work *w, bool takes, bool tokens)
{
    int at = 0;
    while (at < OPEN_MAX && w->open[at].used)
        at++;
    if (at == OPEN_MAX)
        return;
    open_op *o = &w->open[at];
    const ferry_track track = {.size = sizeof(track),
                               .op = &o->op,
                               .timeout_ns =
                                   draw(&w->random, 2) == 0 ? 1000 + draw(&w->random, 200000) : 0};
    *o = (open_op){.used = true, .takes = takes, .tokens = tokens, .out = {77}};
    memcpy(o->known, w->known, sizeof(o->known));
    ferry_cell cell = any_cell(w, tokens);
    int error = takes ? ferry_cell_dequeue_start(w->f, cell, &o->out, &track)
                      : ferry_cell_read_start(w->f, cell, &o->out, &track);
    CHECK(w, error == 0);
}

/* The operation has ended, or was given up: whether there is a parcel says `out`. */
static void settle(work *w, open_op *o, bool given_up)
{
    if (o->out.word != 0)
        got(w, o->out, o->takes, o->known);
    w->gave_up += given_up;
    w->both += given_up && o->out.word != 0;
    o->used = false;
}

static void test_or_cancel(work *w)
{
    open_op *o = &w->open[draw(&w->random, OPEN_MAX)];
    if (!o->used)
        return;
    if (draw(&w->random, 4) == 0) {
        CHECK(w, ferry_op_cancel(w->f, &o->op) == 0);
        settle(w, o, true);
        return;
    }
    int error = ferry_op_test(w->f, &o->op);
    CHECK(w, error == 0 || error == FERRY_EAGAIN || error == FERRY_ETIMEDOUT);
    CHECK(w, error == FERRY_EAGAIN || (error == 0) == (o->out.word != 0));
    if (error != FERRY_EAGAIN)
        settle(w, o, error != 0);
}

static void add_token(work *w)
{
    if (w->token_count == 0)
        return;
    held h = w->tokens[--w->token_count];
    check_held(w, &h);
    const ferry_track track = FERRY_TRACK_DEFAULTS;
    ferry_cell cell = any_cell(w, true);
    int error = draw(&w->random, 2) == 0
                    ? ferry_cell_enqueue_start(w->f, cell, h.parcel, FERRY_GIVE, &track)
                    : ferry_cell_enqueue(w->f, cell, h.parcel, FERRY_GIVE, FERRY_FOREVER);
    CHECK(w, error == 0);
}

static void add_plain(work *w, bool replaces)
{
    if (w->plain_count == 0 || draw(&w->random, 2) == 0)
        got(w, make(w, ++w->created << 12 | (uint64_t)(ferry_rank(w->f) + TOKENS + 1)), true,
            w->known);
    int at = (int)draw(&w->random, (uint64_t)w->plain_count), error;
    held h = w->plain[at];
    ferry_hold hold = draw(&w->random, 2) == 0 ? FERRY_GIVE : FERRY_KEEP;
    const ferry_track track = {.size = sizeof(track)};
    ferry_cell cell = any_cell(w, false);
    check_held(w, &h);
    if (replaces)
        error = ferry_cell_write(w->f, cell, h.parcel, hold);
    else if (draw(&w->random, 3) == 0)
        error = ferry_cell_enqueue_start(w->f, cell, h.parcel, hold, &track);
    else
        error = ferry_cell_enqueue(w->f, cell, h.parcel, hold, 1 + draw(&w->random, 50000));
    CHECK(w, error == 0 || error == FERRY_ETIMEDOUT);
    /* While the call waited, nothing has changed what this rank holds. */
    if (error == 0 && hold == FERRY_GIVE)
        w->plain[at] = w->plain[--w->plain_count];
}

static void drop_plain(work *w)
{
    if (w->plain_count == 0)
        return;
    held h = w->plain[--w->plain_count];
    check_held(w, &h);
    CHECK(w, ferry_parcel_release(w->f, h.parcel) == 0);
}

static void step(work *w)
{
    const bool tokens = draw(&w->random, 2) == 0;
    switch (draw(&w->random, 16)) {
    case 0:
    case 1:
        fetch(w, true, tokens);
        break;
    case 2:
    case 3:
        fetch(w, false, tokens);
        break;
    case 4:
    case 5:
        fetch_start(w, true, tokens);
        break;
    case 6:
        fetch_start(w, false, tokens);
        break;
    case 7:
    case 8:
        add_token(w);
        break;
    case 9:
    case 10:
        add_plain(w, false);
        break;
    case 11:
        drop_plain(w);
        break;
    case 12:
        if (draw(&w->random, 3) == 0)
            CHECK(w, ferry_cell_clear(w->f, any_cell(w, false)) == 0);
        else if (draw(&w->random, 2) == 0)
            add_plain(w, true);
        break;
    case 13:
        if (w->token_count > 0)
            change(w, &w->tokens[draw(&w->random, (uint64_t)w->token_count)]);
        break;
    case 14:
        if (w->plain_count > 0)
            change(w, &w->plain[draw(&w->random, (uint64_t)w->plain_count)]);
        break;
    default:
        ferry_poll(w->f);
    }
    test_or_cancel(w);
    for (int i = 0; i < w->plain_count; i++)
        check_held(w, &w->plain[i]);
    for (int i = 0; i < w->token_count; i++)
        check_held(w, &w->tokens[i]);
}

/* Gives up what is open, puts the tokens back and counts them. */
static void close_all(work *w)
{
    for (int i = 0; i < OPEN_MAX; i++)
        if (w->open[i].used) {
            CHECK(w, ferry_op_cancel(w->f, &w->open[i].op) == 0);
            settle(w, &w->open[i], true);
        }
    while (w->token_count > 0)
        add_token(w);
    while (w->plain_count > 0)
        drop_plain(w);
    /* Operations that still wait for room get it. */
    for (int i = 0; i < 2; i++)
        CHECK(w, ferry_cell_limit_set(w->f, PLAIN_CELL + i, FERRY_CELL_LIMIT) == 0);
    CHECK(w, ferry_quiesce(w->f) == 0);
    int64_t total[TOKENS + 1];
    CHECK(w, ferry_allreduce(w->f, FERRY_INT64, FERRY_SUM, w->changes, total, TOKENS + 1) == 0);
    if (ferry_rank(w->f) == 0) {
        for (int cell = 0; cell < 2 * ferry_ranks(w->f); cell++) {
            ferry_parcel out;
            while (ferry_cell_dequeue(w->f, (ferry_cell){cell / 2, TOKEN_CELL + cell % 2}, &out,
                                      0) == 0)
                got(w, out, true, w->known);
        }
        CHECK(w, w->token_count == TOKENS);
        for (int i = 0; i < TOKENS; i++)
            CHECK(w, (int64_t)w->tokens[i].version == total[w->tokens[i].id]);
        for (int i = 0; i < TOKENS; i++)
            CHECK(w, ferry_parcel_release(w->f, w->tokens[i].parcel) == 0);
    }
    CHECK(w, ferry_barrier(w->f) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(w, ferry_cell_clear(w->f, (ferry_cell){ferry_rank(w->f), PLAIN_CELL + i}) == 0);
    CHECK(w, ferry_barrier(w->f) == 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 3000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    work *w = calloc(1, sizeof(*w));
    if (w == NULL)
        return 1;
    w->f = f;
    w->random = (seed * 1000 + (uint64_t)ferry_rank(f) + 1) * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < 2; i++)
        CHECK(w, ferry_cell_limit_set(f, PLAIN_CELL + i, FULL) == 0);
    CHECK(w, ferry_barrier(f) == 0);
    for (uint64_t id = 1; id <= TOKENS && ferry_rank(f) == 0; id++)
        CHECK(w, ferry_cell_enqueue(f, any_cell(w, true), make(w, id), FERRY_GIVE, 0) == 0);
    for (long i = 0; i < count; i++)
        step(w);
    close_all(w);
    /* A parcel that was read is kept while it may be read again. */
    CHECK(w, ferry_parcel_count(f) <= (size_t)4 * (size_t)ferry_ranks(f));
    if (ferry_rank(f) == 0)
        fprintf(stderr, "mixed %ld %" PRIu64 ": %" PRId64 " given up, %" PRId64 " with a parcel\n",
                count, seed, w->gave_up, w->both);
    CHECK(w, ferry_barrier(f) == 0);
    free(w);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
