/* Goal: cells are queues, and parcels are isolated, whatever ranks do at once. Method: ranks as
 * threads of one process, which ThreadSanitizer sees through; random operations; histories of a few
 * operations are checked by trying every order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cell/state.h"
#include "ranks.h"

static const ferry_cell cell = {0, 11};

static ferry_parcel make(ferry *f, uint64_t value)
{
    ferry_parcel parcel;
    void *data;
    CHECK(ferry_parcel_create(f, sizeof(value), &parcel, &data) == 0);
    memcpy(data, &value, sizeof(value));
    return parcel;
}

static uint64_t value_of(ferry *f, ferry_parcel parcel)
{
    uint64_t value;
    const void *data = ferry_parcel_data(f, parcel, NULL);
    CHECK(data != NULL);
    memcpy(&value, data, sizeof(value));
    return value;
}

static void check_all_free(ferry *f)
{
    CHECK(ferry_barrier(f) == 0);
    CHECK(ferry_parcel_count(f) == 0);
    CHECK(ferry_barrier(f) == 0);
}

/* A sanitizer looks at each access. */
#ifdef FERRY_SANITIZED
enum { EACH = 3000, CHANGES = 3000, ROUNDS = 1000 };
#else
enum { EACH = 10000, CHANGES = 10000, ROUNDS = 3000 };
#endif

/* Exactly once. */

enum { PRODUCERS = 8, CONSUMERS = 8, STOP = 0xffff };

typedef struct tally {
    _Atomic uint32_t producers_left;
    _Atomic uint32_t taken[PRODUCERS * EACH];
    size_t limit;
} tally;

static void produce(ferry *f, tally *t)
{
    uint64_t random = (uint64_t)ferry_rank(f);
    for (uint64_t i = 0; i < EACH; i++) {
        ferry_parcel parcel = make(f, (uint64_t)ferry_rank(f) << 32 | i);
        CHECK(ferry_cell_enqueue(f, cell, parcel, FERRY_GIVE, FERRY_FOREVER) == 0);
        if (next_random(&random) % 64 == 0)
            loiter(&random, 100);
    }
    if (atomic_fetch_sub(&t->producers_left, 1) > 1)
        return;
    for (int i = 0; i < CONSUMERS; i++)
        CHECK(ferry_cell_enqueue(f, cell, make(f, (uint64_t)STOP << 32), FERRY_GIVE,
                                 FERRY_FOREVER) == 0);
}

/* Parcels of one producer come to a consumer in the order they were made. */
static void consume(ferry *f, tally *t)
{
    uint64_t next[PRODUCERS] = {0}, random = (uint64_t)ferry_rank(f);
    for (;;) {
        ferry_parcel parcel;
        CHECK(ferry_cell_dequeue(f, cell, &parcel, FERRY_FOREVER) == 0);
        uint64_t value = value_of(f, parcel);
        CHECK(ferry_parcel_release(f, parcel) == 0);
        uint64_t producer = value >> 32, i = value & UINT32_MAX;
        if (producer == STOP)
            return;
        CHECK(producer < PRODUCERS && i < EACH && i >= next[producer]);
        next[producer] = i + 1;
        atomic_fetch_add(&t->taken[producer * EACH + i], 1);
        if (next_random(&random) % 64 == 0)
            loiter(&random, 100);
    }
}

static void produce_or_consume(ferry *f, void *arg)
{
    tally *t = arg;
    if (ferry_rank(f) == cell.rank)
        CHECK(ferry_cell_limit_set(f, cell.number, t->limit) == 0);
    CHECK(ferry_barrier(f) == 0);
    if (ferry_rank(f) < PRODUCERS)
        produce(f, t);
    else
        consume(f, t);
    check_all_free(f);
}

/* Goal: each parcel is taken once, in order, and freed, by waiting producers and consumers. Method:
 * eight of each on one cell, with hardly any room and with plenty. */
static void test_each_parcel_is_taken_once(void **state)
{
    (void)state;
    static const size_t limits[] = {2, 4096};
    for (size_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++) {
        static tally t;
        memset(&t, 0, sizeof(t));
        t.producers_left = PRODUCERS;
        t.limit = limits[l];
        run_ranks(PRODUCERS + CONSUMERS, 8, 1024, produce_or_consume, &t);
        for (size_t i = 0; i < sizeof(t.taken) / sizeof(t.taken[0]); i++)
            assert_int_equal(t.taken[i], 1);
    }
}

/* Isolation. */

enum { SHARERS = 4, WORDS = 200 };

static void check_uniform(ferry *f, ferry_parcel parcel, uint64_t expected)
{
    const uint64_t *words = ferry_parcel_data(f, parcel, NULL);
    for (int i = 0; i < WORDS; i++)
        CHECK(words[i] == words[0]);
    CHECK(expected == UINT64_MAX || words[0] == expected);
}

static void change_and_look(ferry *f, void *arg)
{
    (void)arg;
    uint64_t random = (uint64_t)ferry_rank(f) + 99;
    ferry_parcel own;
    void *data;
    CHECK(ferry_parcel_create(f, WORDS * sizeof(uint64_t), &own, &data) == 0);
    memset(data, 0, WORDS * sizeof(uint64_t));
    uint64_t mine = 0;
    for (uint64_t i = 0; i < CHANGES; i++) {
        check_uniform(f, own, mine);
        switch (next_random(&random) % 4) {
        case 0:
            CHECK(ferry_cell_write(f, cell, own, FERRY_KEEP) == 0);
            break;
        case 1: {
            ferry_parcel seen;
            if (ferry_cell_read(f, cell, &seen, 0) != 0)
                break;
            CHECK(ferry_parcel_release(f, own) == 0);
            own = seen;
            check_uniform(f, own, UINT64_MAX);
            mine = *(const uint64_t *)ferry_parcel_data(f, own, NULL);
            break;
        }
        default:
            CHECK(ferry_parcel_modify(f, &own, &data) == 0);
            mine = i << 8 | (uint64_t)ferry_rank(f);
            for (int w = 0; w < WORDS; w++)
                ((uint64_t *)data)[w] = mine;
        }
    }
    CHECK(ferry_parcel_release(f, own) == 0);
    CHECK(ferry_barrier(f) == 0);
    CHECK(ferry_cell_clear(f, cell) == 0);
    check_all_free(f);
}

/* Goal: nobody sees another rank's writes. Method: ranks share one parcel after the other and
 * change them at once; every word of a parcel must stay the same as the others. */
static void test_changes_are_isolated(void **state)
{
    (void)state;
    run_ranks(SHARERS, 8, 1024, change_and_look, NULL);
}

/* Linearizability. */

enum { ACTORS = 3, STEPS = 4, EVENTS = ACTORS * STEPS };

typedef enum act { ACT_ENQ, ACT_DEQ, ACT_READ, ACT_WRITE, ACT_ZAP, ACT_COUNT, ACTS } act;

typedef struct event {
    act what;
    uint64_t begun, ended, value; /* value: given, or seen; 0: the cell was empty */
} event;

typedef struct history {
    _Atomic uint64_t clock;
    event events[EVENTS];
} history;

typedef struct model {
    uint64_t values[EVENTS];
    uint32_t count;
} model;

/* Whether the event can happen next to the queue; does it. */
static bool replay(model *m, const event *e)
{
    uint64_t first = m->count == 0 ? 0 : m->values[0];
    switch (e->what) {
    case ACT_WRITE:
        m->count = 0;
        m->values[m->count++] = e->value;
        return true;
    case ACT_ENQ:
        m->values[m->count++] = e->value;
        return true;
    case ACT_ZAP:
        m->count = 0;
        return true;
    case ACT_COUNT:
        return m->count == e->value;
    case ACT_READ:
        return first == e->value;
    default:
        if (first != e->value)
            return false;
        if (m->count > 0)
            memmove(m->values, m->values + 1, --m->count * sizeof(m->values[0]));
        return true;
    }
}

/* Tries every event that nothing left has to precede. Recursion ends at EVENTS. */
static bool has_order(const history *h, uint32_t done, const model *m)
{
    if (done == (1u << EVENTS) - 1)
        return true;
    uint64_t first_end = UINT64_MAX;
    for (int i = 0; i < EVENTS; i++)
        if (!(done >> i & 1) && h->events[i].ended < first_end)
            first_end = h->events[i].ended;
    for (int i = 0; i < EVENTS; i++) {
        model next = *m;
        if (!(done >> i & 1) && h->events[i].begun < first_end && replay(&next, &h->events[i]) &&
            has_order(h, done | 1u << i, &next))
            return true;
    }
    return false;
}

static void perform(ferry *f, event *e, uint64_t value)
{
    ferry_parcel parcel = {0};
    size_t count = 0;
    int error = 0;
    if (e->what == ACT_ENQ || e->what == ACT_WRITE)
        parcel = make(f, e->value = value);
    if (e->what == ACT_ENQ)
        CHECK(ferry_cell_enqueue(f, cell, parcel, FERRY_GIVE, 0) == 0);
    else if (e->what == ACT_WRITE)
        CHECK(ferry_cell_write(f, cell, parcel, FERRY_GIVE) == 0);
    else if (e->what == ACT_ZAP)
        CHECK(ferry_cell_clear(f, cell) == 0);
    else if (e->what == ACT_COUNT)
        CHECK(ferry_cell_count(f, cell, &count) == 0);
    else
        error = e->what == ACT_DEQ ? ferry_cell_dequeue(f, cell, &parcel, 0)
                                   : ferry_cell_read(f, cell, &parcel, 0);
    CHECK(error == 0 || error == FERRY_EAGAIN);
    if (e->what == ACT_COUNT)
        e->value = count;
    if ((e->what == ACT_DEQ || e->what == ACT_READ) && error == 0) {
        e->value = value_of(f, parcel);
        CHECK(ferry_parcel_release(f, parcel) == 0);
    }
}

static void act_at_random(ferry *f, void *arg)
{
    history *h = arg;
    uint64_t random = (uint64_t)ferry_rank(f) + 7;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        CHECK(ferry_barrier(f) == 0);
        for (int i = 0; i < STEPS; i++) {
            event *e = &h->events[ferry_rank(f) * STEPS + i];
            *e = (event){.what = (act)(next_random(&random) % ACTS)};
            e->begun = atomic_fetch_add(&h->clock, 1);
            perform(f, e, (round * EVENTS + (uint64_t)(ferry_rank(f) * STEPS + i)) + 1);
            e->ended = atomic_fetch_add(&h->clock, 1);
        }
        CHECK(ferry_barrier(f) == 0);
        const model empty = {0};
        if (ferry_rank(f) == 0)
            CHECK(has_order(h, 0, &empty));
        if (ferry_rank(f) == 0)
            CHECK(ferry_cell_clear(f, cell) == 0);
        CHECK(ferry_barrier(f) == 0);
    }
    check_all_free(f);
}

/* Goal: what ranks see of operations that overlap is what they would see of some order of them. */
static void test_histories_have_an_order(void **state)
{
    (void)state;
    static history h;
    run_ranks(ACTORS, 8, 1024, act_at_random, &h);
}

/* Waiting. */

static void wait_and_wake(ferry *f, void *arg)
{
    (void)arg;
    enum { TIMES = 60 };
    const ferry_cell back = {1, 2};
    ferry_parcel parcel;
    CHECK(ferry_barrier(f) == 0);
    if (ferry_rank(f) == 2) {
        uint64_t start = ferry_now(f);
        CHECK(ferry_cell_dequeue(f, (ferry_cell){2, 0}, &parcel, 20000000) == FERRY_ETIMEDOUT);
        CHECK(ferry_now(f) - start >= 20000000);
    }
    for (uint64_t i = 0; i < TIMES && ferry_rank(f) < 2; i++) {
        if (ferry_rank(f) == 1) {
            CHECK(ferry_cell_dequeue(f, cell, &parcel, FERRY_FOREVER) == 0);
            CHECK(value_of(f, parcel) == i);
            CHECK(ferry_cell_enqueue(f, back, parcel, FERRY_GIVE, 0) == 0);
            continue;
        }
        /* Long enough for the other to sleep, sometimes. */
        ferry_wait(f, i % 3 * 1000000);
        CHECK(ferry_cell_enqueue(f, cell, make(f, i), FERRY_GIVE, 0) == 0);
        CHECK(ferry_cell_read(f, back, &parcel, FERRY_FOREVER) == 0);
        CHECK(ferry_parcel_release(f, parcel) == 0);
        CHECK(ferry_cell_clear(f, back) == 0);
    }
    check_all_free(f);
}

/* Goal: who waits is woken by what it waits for, and by nothing else before its time. */
static void test_waiting_ends_when_it_should(void **state)
{
    (void)state;
    run_ranks(3, 8, 1024, wait_and_wake, NULL);
}

/* Locks that were written over. */

enum { OVERWRITTEN = 4 };

static void work_on(ferry *f, ferry_cell at, ferry_parcel parcel)
{
    ferry_parcel taken;
    CHECK(ferry_cell_enqueue(f, at, parcel, FERRY_KEEP, 0) == 0);
    CHECK(ferry_cell_dequeue(f, at, &taken, 0) == 0 && taken.word == parcel.word);
    CHECK(ferry_parcel_release(f, taken) == 0);
}

static void overwrite(ferry *f, void *arg)
{
    _Atomic uint32_t *met = arg;
    const uint32_t own = (uint32_t)ferry_rank(f) + 1;
    const uint32_t next = own % OVERWRITTEN + 1;
    const uint32_t values[] = {own, next, UINT32_MAX, FERRY_CELLS};
    const ferry_cell at = {ferry_rank(f), 3};
    const fy_cells *c = fy_cells_of(f);
    fy_cell *inside = &c->board->cells[at.number];
    ferry_parcel parcel = make(f, 5);
    fy_parcel *p = fy_parcel_find(c, parcel.word);
    CHECK(ferry_barrier(f) == 0);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        /* All at once: who is asked may be waiting for a lock itself. */
        atomic_store(&inside->lock, values[i]);
        work_on(f, at, parcel);
        atomic_store(&p->lock, values[i]);
        work_on(f, at, parcel);
        CHECK(atomic_load(&inside->lock) == 0 && atomic_load(&p->lock) == 0);
    }
    /* With its header, by which the named rank knows that it is a lock. */
    atomic_store(&p->lock, next);
    p->check++;
    CHECK(fy_parcel_keep(fy_cells_of(f), p));
    p->check--;
    fy_parcel_drop(fy_cells_of(f), p, c->place, 1);
    /* Or asleep. */
    if (ferry_rank(f) == 0) {
        atomic_store(&inside->lock, next);
        work_on(f, at, parcel);
        atomic_store(met, 1);
    }
    CHECK(ferry_barrier(f) == 0);
    CHECK(atomic_load(met) == 1);
    CHECK(ferry_parcel_release(f, parcel) == 0);
    check_all_free(f);
}

/* Goal: a lock that was written over, with whatever number, wedges nobody: not with one's own, not
 * with that of a rank that lives, nor with what is no rank's. Method: each rank has one of its
 * cells and a parcel name each of these, and works on them. */
static void test_overwritten_locks_block_nobody(void **state)
{
    (void)state;
    static _Atomic uint32_t met;
    atomic_store(&met, 0);
    run_ranks(OVERWRITTEN, 8, 1024, overwrite, &met);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_parcel_is_taken_once),
        cmocka_unit_test(test_changes_are_isolated),
        cmocka_unit_test(test_histories_have_an_order),
        cmocka_unit_test(test_waiting_ends_when_it_should),
        cmocka_unit_test(test_overwritten_locks_block_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
