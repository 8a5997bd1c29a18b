/* A window with locks. Element 0 of each array is a sum to which all add under both kinds of locks.
 * Elements 1 and 2 are a pair, which only holders of the exclusive lock change, by reading and
 * putting. The truth outside says who holds each lock. */
#include "mixed.h"

enum { SUM, PAIR, ELEMENTS = 3, EPOCHS_MAX = 6 };

/* An epoch towards one array. */
typedef struct epoch {
    ferry_window *window;
    int rank;
    bool failed; /* an operation, or a call that ends some */
    uint64_t old, added, got[2];
    size_t sizes[2];
} epoch;

static void note(ferry *f, epoch *e, int error, const char *what)
{
    e->failed |= allowed(f, error, what) != 0;
}

/* Whether the rank that had the exclusive lock may have died with it. */
static bool is_dead(ferry *f, int holder)
{
    return has(DEATHS) && holder != 0 &&
           (atomic_load(&t->places[holder - 1].died) || ferry_peer_is_gone(f, holder - 1));
}

static void got_lock(ferry *f, const epoch *e, ferry_window_lock_kind kind)
{
    locked *l = &t->locks[e->rank];
    int holder = kind == FERRY_WINDOW_EXCLUSIVE ? atomic_exchange(&l->holder, ferry_rank(f) + 1)
                                                : atomic_load(&l->holder);
    if (kind == FERRY_WINDOW_SHARED)
        atomic_fetch_add(&l->readers, 1);
    if (holder != 0 && !is_dead(f, holder))
        wrong(f, "a lock was given that another rank holds", (uint64_t)e->rank, (uint64_t)holder);
    if (kind == FERRY_WINDOW_EXCLUSIVE && atomic_load(&l->readers) != 0 && !has(DEATHS))
        wrong(f, "an exclusive lock was given beside shared ones", (uint64_t)e->rank, 0);
    if (kind == FERRY_WINDOW_SHARED && has(DEATHS) && holder != 0)
        atomic_compare_exchange_strong(&l->holder, &holder, 0);
}

static void gives_lock(ferry *f, const epoch *e, ferry_window_lock_kind kind)
{
    locked *l = &t->locks[e->rank];
    int own = ferry_rank(f) + 1;
    if (kind == FERRY_WINDOW_SHARED)
        atomic_fetch_sub(&l->readers, 1);
    else if (!atomic_compare_exchange_strong(&l->holder, &own, 0))
        wrong(f, "an exclusive lock was given twice", (uint64_t)e->rank, (uint64_t)own);
}

/* Adds to the sum. `old` tells a fetch what was there. */
static void add(ferry *f, account *a, epoch *e, uint64_t *value)
{
    *value = 1 + draw(&a->random, 50);
    const ferry_window_change change = {FERRY_UINT64, FERRY_SUM, value, 1};
    atomic_fetch_add(&t->locks[e->rank].begun[SUM], *value);
    e->added += *value;
    if (one_in(&a->random, 2))
        note(f, e, ferry_window_accumulate(e->window, e->rank, SUM, &change, NULL), "accumulate");
    else
        note(f, e, ferry_window_fetch(e->window, e->rank, SUM, &change, &e->old, NULL), "fetch");
}

static void get_pair(ferry *f, epoch *e)
{
    for (int i = 0; i < 2; i++) {
        const ferry_window_target target = {&e->got[i], sizeof e->got[i], &e->sizes[i]};
        note(f, e, ferry_window_get(e->window, e->rank, PAIR + i, &target, NULL), "get");
    }
    note(f, e, ferry_window_flush(e->window, e->rank), "flush");
    if (e->failed)
        return;
    if (e->sizes[0] != sizeof e->got[0] || (e->got[0] != e->got[1] && !has(DEATHS)))
        wrong(f, "a pair under a lock differs", e->got[0], e->got[1]);
}

/* One epoch of a lock. The values that it puts stay until it ends. */
static int play_epoch(ferry *f, account *a, ferry_window *window, int rank)
{
    ferry_window_lock_kind kind =
        one_in(&a->random, 2) ? FERRY_WINDOW_SHARED : FERRY_WINDOW_EXCLUSIVE;
    epoch e = {.window = window, .rank = rank};
    locked *l = &t->locks[rank];
    uint64_t values[4], next;
    const ferry_window_value put = {&next, sizeof next};
    int error = allowed(f, ferry_window_lock(window, kind, rank), "lock");
    if (error != 0)
        return error;
    got_lock(f, &e, kind);
    for (uint64_t i = 0, count = draw(&a->random, 4); i < count; i++) {
        add(f, a, &e, &values[i]);
        if (one_in(&a->random, 3))
            act(f, a);
        if (one_in(&a->random, 3))
            note(f, &e, ferry_window_flush(window, rank), "flush");
    }
    get_pair(f, &e);
    bool puts = kind == FERRY_WINDOW_EXCLUSIVE && !e.failed;
    for (int i = 0; i < 2 && puts; i++) {
        next = e.got[0] + 1;
        note(f, &e, ferry_window_put(window, rank, PAIR + i, &put, NULL), "put");
    }
    if (puts)
        atomic_fetch_add(&l->begun[PAIR], 1);
    if (one_in(&a->random, 4))
        act(f, a);
    gives_lock(f, &e, kind);
    note(f, &e, ferry_window_unlock(window, rank), "unlock");
    if (!e.failed) {
        atomic_fetch_add(&l->done[SUM], e.added);
        atomic_fetch_add(&l->done[PAIR], puts);
    }
    atomic_fetch_add(&t->locked, 1);
    return 0;
}

/* This rank's array, when all have ended their epochs. */
static void check_array(ferry *f, ferry_window *window)
{
    const locked *l = &t->locks[ferry_rank(f)];
    uint64_t values[ELEMENTS];
    size_t size_bytes;
    for (int i = 0; i < ELEMENTS; i++) {
        must(f, ferry_window_read(window, i, &values[i], sizeof values[i], &size_bytes), "read");
        uint64_t least = atomic_load(&l->done[i != SUM]), most = atomic_load(&l->begun[i != SUM]);
        if (size_bytes != sizeof values[i] || values[i] < least || values[i] > most)
            wrong(f, "an element that was changed under locks", (uint64_t)i, values[i]);
        if (!has(DEATHS) && least != most)
            wrong(f, "changes under locks", least, most);
    }
}

int locks_session(ferry *f, account *a, uint64_t *random)
{
    static const uint64_t zero = 0;
    const ferry_window_value values[ELEMENTS] = {
        {&zero, sizeof zero}, {&zero, sizeof zero}, {&zero, sizeof zero}};
    ferry_window_options options = FERRY_WINDOW_OPTIONS_DEFAULTS;
    locked *own = &t->locks[ferry_rank(f)];
    ferry_window *window;
    options.direct = one_in(random, 2);
    options.values = values;
    options.count = ELEMENTS;
    atomic_store(&own->holder, 0);
    atomic_store(&own->readers, 0);
    for (int i = 0; i < 2; i++) {
        atomic_store(&own->begun[i], 0);
        atomic_store(&own->done[i], 0);
    }
    int error = allowed(f, ferry_window_create(f, &options, &window), "window of locks");
    if (error != 0)
        return error;
    int count = ferry_member_count(f);
    for (uint64_t i = 0, epochs = draw(&a->random, EPOCHS_MAX); i < epochs; i++) {
        int place = (int)draw(&a->random, (uint64_t)count);
        (void)play_epoch(f, a, window, ferry_member_rank(f, place));
        act(f, a);
    }
    error = allowed(f, ferry_barrier(f), "barrier after locks");
    if (error == 0)
        check_array(f, window);
    int freed = allowed(f, ferry_window_free(window), "window_free");
    return error != 0 ? error : freed;
}
