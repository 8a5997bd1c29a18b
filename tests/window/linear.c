/* Goal: all operations on one element happen one after the other, each between its call and its
 * end. Method: all ranks change a few elements, also their sizes, in epochs of locks. They note
 * what they did and found in memory that simulated ranks and threads share, with the count of a
 * common clock before and after. For each element an order is searched that explains everything
 * that was found (Wing and Gong). An operation that failed with FERRY_EPEER or FERRY_ENOMEM, or has
 * not ended, may have had its effect or not.
 *
 * Run as linear [ROUNDS [SEED]], as threads or under the simulator, where ranks may die. */
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "../sim/oracle.h"
#include "../support/survive.h"

enum { RANKS_MAX = 8, ELEMENTS = 3, ROUNDS_MAX = 8, OPS = 8, ENTRIES = 64, LARGE = 100 };
enum { SEEN_BITS = 18, SEEN_MAX = 1 << SEEN_BITS };

typedef enum verb { PUT, ACCUMULATE, FETCH, SWAP, GET, VERBS } verb;

/* An element: 1 + its size, or 0; the first bytes of its value. */
typedef struct state {
    uint64_t size, word;
} state;

typedef struct entry {
    verb verb;
    ferry_reduction reduction;
    state given;
    uint64_t compared;
    state found;
    int error;
    uint64_t called, ended; /* 0: it has not */
} entry;

typedef struct history {
    _Atomic int count;
    entry entries[ENTRIES];
} history;

static history histories[ROUNDS_MAX][ELEMENTS];
static _Atomic uint64_t ticks;

/* Applies `e` to an element that is `s`; whether that explains what it found. */
static bool explains(const entry *e, state *s)
{
    const state before = *s;
    const bool other_size = before.size != 0 && before.size != 1 + sizeof(uint64_t);
    const uint64_t number = before.size == 0 ? 0 : before.word;
    switch (e->verb) {
    case PUT:
        *s = e->given;
        return e->error == 0;
    case GET:
        return e->error == 0 && e->found.size == (before.size == 0 ? 1 : before.size) &&
               (e->found.size == 1 || e->found.word == before.word);
    default:
        break;
    }
    if (other_size)
        return e->error == FERRY_EINVAL;
    if (e->error != 0 || (e->verb != ACCUMULATE && e->found.word != number))
        return false;
    *s = e->given;
    if (e->verb == SWAP && e->compared != number)
        *s = before;
    else if (e->verb != SWAP && before.size != 0 && e->reduction == FERRY_SUM)
        s->word = number + e->given.word;
    else if (e->verb != SWAP && before.size != 0 && e->reduction == FERRY_XOR)
        s->word = number ^ e->given.word;
    return true;
}

/* Whether the end of `e` says nothing about its effect. */
static bool is_open(const entry *e)
{
    return e->ended == 0 || e->error == FERRY_EPEER || e->error == FERRY_ENOMEM;
}

typedef struct search {
    const entry *entries;
    int count;
    int seen_count;
    struct seen {
        uint64_t done;
        state s;
        bool used;
    } seen[SEEN_MAX];
} search;

/* Whether this was looked at before, or is too much to look at. */
static bool is_seen(search *all, uint64_t done, state s)
{
    uint64_t hash = (done * 0x9e3779b97f4a7c15u ^ s.word) * 0xbf58476d1ce4e5b9u + s.size;
    for (uint64_t i = hash >> (64 - SEEN_BITS);; i++) {
        struct seen *place = &all->seen[i % SEEN_MAX];
        if (!place->used) {
            *place = (struct seen){done, s, true};
            return ++all->seen_count > SEEN_MAX / 2;
        }
        if (place->done == done && place->s.size == s.size && place->s.word == s.word)
            return true;
    }
}

/* Whether the operations that are not in `done` can follow on `s`. */
static bool can_follow(search *all, uint64_t done, state s)
{
    uint64_t first_end = UINT64_MAX;
    bool complete = true;
    for (int i = 0; i < all->count; i++) {
        const entry *e = &all->entries[i];
        if ((done >> i & 1) != 0 || is_open(e))
            continue;
        complete = false;
        first_end = e->ended < first_end ? e->ended : first_end;
    }
    if (complete)
        return true;
    if (is_seen(all, done, s))
        return false;
    for (int i = 0; i < all->count; i++) {
        entry e = all->entries[i];
        state after = s;
        if ((done >> i & 1) != 0 || e.called > first_end)
            continue;
        if (is_open(&e)) {
            e.error = 0;
            e.found = (state){1 + sizeof(uint64_t), s.size == 0 ? 0 : s.word};
            if (e.verb == GET || !explains(&e, &after))
                continue;
        } else if (!explains(&e, &after)) {
            continue;
        }
        if (can_follow(all, done | UINT64_C(1) << i, after))
            return true;
    }
    return false;
}

static void history_check(ferry *f, const history *h)
{
    search *all = calloc(1, sizeof(*all));
    if (all == NULL)
        must(f, FERRY_ENOMEM, "the test's own memory");
    all->entries = h->entries;
    all->count = atomic_load(&h->count);
    bool good = can_follow(all, 0, (state){0, 0});
    if (!good && all->seen_count > SEEN_MAX / 2)
        printf("linear: a history of %d was too long to be searched\n", all->count);
    else if (!good) {
        for (int i = 0; i < all->count; i++) {
            const entry *e = &h->entries[i];
            fprintf(stderr,
                    "%" PRIu64 "-%" PRIu64 ": verb %d %d size %" PRIu64 " word %" PRIx64
                    " compared %" PRIx64 " found %" PRIu64 " %" PRIx64 " error %d\n",
                    e->called, e->ended, (int)e->verb, (int)e->reduction, e->given.size,
                    e->given.word, e->compared, e->found.size, e->found.word, e->error);
        }
        wrong(f, "no order explains what was found", (uint64_t)all->count, 0);
    }
    free(all);
}

static uint64_t tick(void)
{
    return 1 + atomic_fetch_add(&ticks, 1);
}

static void choose(entry *e, uint64_t *random, uint64_t last)
{
    static const ferry_reduction reductions[] = {FERRY_SUM, FERRY_XOR, FERRY_REPLACE};
    static const uint64_t sizes[] = {0, 4, 8, 8, 8, 8, LARGE};
    e->verb = (verb)draw(random, VERBS);
    e->reduction = reductions[draw(random, 3)];
    e->given = (state){1 + sizeof(uint64_t), 1 + draw(random, 1000)};
    if (e->verb == PUT) {
        uint64_t size = sizes[draw(random, 7)];
        e->given.size = size == 0 ? 0 : 1 + size;
        e->given.word = size == 0 ? 0 : e->given.word;
    }
    e->compared = draw(random, 2) == 0 ? last : 0;
}

/* Begins an operation: an error, or `op` to wait for, or it is to be flushed (NULL). */
static int begin(ferry_window *w, int rank, int64_t index, entry *e, unsigned char *bytes,
                 size_t *size, ferry_op *op)
{
    ferry_track tracked = FERRY_TRACK_DEFAULTS, *track = op == NULL ? NULL : &tracked;
    tracked.op = op;
    memcpy(bytes, &e->given.word, sizeof(e->given.word));
    const ferry_window_value value = {e->given.size == 0 ? NULL : bytes,
                                      e->given.size == 0 ? 0 : (size_t)e->given.size - 1};
    const ferry_window_change change = {FERRY_UINT64, e->reduction, &e->given.word, 1};
    const ferry_window_swap swap = {&e->compared, &e->given.word, sizeof(uint64_t)};
    const ferry_window_target target = {bytes, LARGE, size};
    switch (e->verb) {
    case PUT:
        return ferry_window_put(w, rank, index, &value, track);
    case ACCUMULATE:
        return ferry_window_accumulate(w, rank, index, &change, track);
    case FETCH:
        return ferry_window_fetch(w, rank, index, &change, &e->found.word, track);
    case SWAP:
        return ferry_window_compare_swap(w, rank, index, &swap, &e->found.word, track);
    default:
        memset(bytes, 0, LARGE);
        return ferry_window_get(w, rank, index, &target, track);
    }
}

/* One operation, from its call to its end. */
static void operate(ferry *f, ferry_window *w, int rank, int64_t index, history *h,
                    uint64_t *random, uint64_t *last)
{
    int at = atomic_fetch_add(&h->count, 1);
    unsigned char bytes[LARGE] = {0};
    size_t size = 0;
    ferry_op op;
    if (at >= ENTRIES)
        wrong(f, "too many operations for the test", (uint64_t)at, ENTRIES);
    entry *e = &h->entries[at];
    choose(e, random, *last);
    e->called = tick();
    const bool tracked = draw(random, 3) == 0;
    e->error = begin(w, rank, index, e, bytes, &size, tracked ? &op : NULL);
    if (e->error == 0) {
        int flushed = 0;
        if (!tracked || e->verb == PUT || e->verb == ACCUMULATE)
            flushed = ferry_window_flush(w, rank);
        e->error = tracked ? ferry_op_wait(f, &op) : flushed;
    }
    if (e->verb == GET) {
        e->found.size = 1 + size;
        memcpy(&e->found.word, bytes, sizeof(e->found.word));
    }
    *last = e->found.word;
    e->ended = tick();
}

/* No death of a rank, and no lack of memory: that is told, since others may fail for it. */
static bool is_well(ferry *f, int error)
{
    if (error == FERRY_ENOMEM)
        fprintf(stderr, "linear: no memory: %s\n", ferry_error_message(f));
    else if (error != 0 && error != FERRY_EPEER)
        must(f, error, "a call");
    return error == 0;
}

static void round_run(ferry *f, ferry_window *w, int round, uint64_t *random)
{
    uint64_t last = 0;
    for (int done = 0; done < OPS;) {
        int element = (int)draw(random, ELEMENTS), target = element % ferry_ranks(f);
        int error = ferry_window_lock(w, (ferry_window_lock_kind)(draw(random, 8) == 0), target);
        if (!is_well(f, error)) {
            done++;
            continue;
        }
        for (uint64_t n = 1 + draw(random, 3); n > 0 && done < OPS; n--, done++)
            operate(f, w, target, (int64_t)round * ELEMENTS + element, &histories[round][element],
                    random, &last);
        (void)is_well(f, ferry_window_unlock(w, target));
    }
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS_MAX;
    const char *simulated = getenv("FERRY_SIM_SEED");
    const int seed = argc > 2 ? atoi(argv[2]) : simulated != NULL ? atoi(simulated) : 1;
    uint64_t random = ((uint64_t)seed * 2 + 1) * 1000003 + (uint64_t)ferry_rank(f);
    ferry_window_options options = FERRY_WINDOW_OPTIONS_DEFAULTS;
    ferry_window *w;
    options.direct = seed % 2 == 0;
    if (ferry_ranks(f) > RANKS_MAX || rounds > ROUNDS_MAX)
        wrong(f, "too many ranks or rounds for the test", (uint64_t)ferry_ranks(f), RANKS_MAX);
    must(f, survive_deaths(f), "watch");
    bool all = is_well(f, ferry_window_create(f, &options, &w));
    for (int round = 0; round < rounds && all; round++) {
        round_run(f, w, round, &random);
        all = is_well(f, ferry_barrier(f));
        for (int i = 0; i < ELEMENTS; i++)
            if (!all || i % ferry_ranks(f) == ferry_rank(f))
                history_check(f, &histories[round][i]);
    }
    (void)ferry_quiesce(f);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
