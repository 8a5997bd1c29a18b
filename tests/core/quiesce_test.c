/* Goal: ferry_quiesce returns when nothing is left, never before, every time. Method: storms of
 * requests whose handlers send at random; an oracle outside Ferry counts what is in flight. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ranks.h"

/* Shared by all ranks: the truth. */
typedef struct oracle {
    _Atomic int64_t under_way; /* sent and not yet handled */
    _Atomic uint64_t sent;
    uint64_t rounds;
    uint64_t breaks; /* one in so many handlers breaks its rank's quiescence; 0: none */
    _Atomic uint64_t broken;
    int64_t slow; /* handlers loiter for up to so many microseconds */
    int part;     /* others have other storms */
} oracle;

typedef struct storm {
    ferry_handler handler;
    oracle *oracle;
    uint64_t random;
} storm;

static void send_one(ferry *f, storm *s, uint64_t life)
{
    int target = (int)(next_random(&s->random) % (uint64_t)ferry_ranks(f));
    const ferry_message m = {.handler = s->handler, .word_count = 1, .words = {life}};
    atomic_fetch_add(&s->oracle->under_way, 1);
    atomic_fetch_add(&s->oracle->sent, 1);
    CHECK(ferry_request_send(f, target, &m, NULL) == 0);
}

static void blow(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    storm *s = ferry_user_data(f);
    if (s->oracle->slow > 0)
        loiter(&s->random, (uint32_t)s->oracle->slow);
    if (s->oracle->breaks > 0 && next_random(&s->random) % s->oracle->breaks == 0)
        ferry_quiesce_break(f);
    /* On average each sends less than one until its life is over. */
    uint64_t life = message->words[0], children = next_random(&s->random) % 3;
    for (uint64_t i = 0; life > 0 && i < children; i++)
        send_one(f, s, life - 1);
    atomic_fetch_sub(&s->oracle->under_way, 1);
}

/* A rank that was told to return does as it likes before it goes on: it makes more work, too. */
static void take_up(ferry *f, storm *s)
{
    int error;
    while ((error = ferry_quiesce(f)) == FERRY_ECANCELED) {
        atomic_fetch_add(&s->oracle->broken, 1);
        loiter(&s->random, 20);
        if (next_random(&s->random) % 2 == 0)
            send_one(f, s, 3);
        if (next_random(&s->random) % 2 == 0)
            CHECK(ferry_poll(f) >= 0);
    }
    CHECK(error == 0);
}

static void blow_rounds(ferry *f, void *arg)
{
    oracle *o = arg;
    storm s = {.oracle = o, .random = (uint64_t)(o->part * TEST_RANKS_MAX + ferry_rank(f) + 1)};
    ferry_user_data_set(f, &s);
    CHECK(ferry_handler_register(f, "blow", blow, &s.handler) == 0);
    for (uint64_t round = 0; round < o->rounds; round++) {
        uint64_t seeds = next_random(&s.random) % 20;
        if (next_random(&s.random) % 3 == 0)
            loiter(&s.random, 300);
        for (uint64_t i = 0; i < seeds; i++)
            send_one(f, &s, 60);
        take_up(f, &s);
        /* A rank that has left already may not send before all have looked. */
        CHECK(atomic_load(&o->under_way) == 0);
        CHECK(ferry_barrier(f) == 0);
    }
}

static void test_quiesce_is_never_early(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks++) {
        oracle o = {.rounds = 10, .slow = ranks % 2 * 20};
        for (test_parts p = {.most = 6}; next_part(&p); o.part++)
            run_ranks(ranks, 8, 0, blow_rounds, &o);
        CHECK(atomic_load(&o.under_way) == 0 && (ranks == 1 || atomic_load(&o.sent) > 0));
    }
    oracle o = {.rounds = 4};
    for (test_parts p = {.most = 5}; next_part(&p); o.part++)
        run_ranks(22, 8, 0, blow_rounds, &o); /* a tree of more than two levels */
}

/* Goal: a rank that leaves a quiescence for a while (ferry_quiesce_break) is waited for, and
 * nothing that it sends meanwhile is missed; the numbers of the quiescences stay the same
 * everywhere. */
static void test_quiesce_waits_for_the_rank_that_broke_it(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks++) {
        oracle o = {.rounds = 10, .breaks = 8};
        for (test_parts p = {.most = 6}; next_part(&p); o.part++)
            run_ranks(ranks, 8, 0, blow_rounds, &o);
        CHECK(atomic_load(&o.under_way) == 0 && atomic_load(&o.broken) > 0);
    }
}

/* Without barriers: ranks that leave early send to ranks still inside. */
static void rush(ferry *f, void *arg)
{
    oracle *o = arg;
    storm s = {.oracle = o, .random = (uint64_t)(o->part * TEST_RANKS_MAX + ferry_rank(f) + 1)};
    ferry_user_data_set(f, &s);
    CHECK(ferry_handler_register(f, "blow", blow, &s.handler) == 0);
    for (uint64_t round = 0; round < o->rounds; round++) {
        send_one(f, &s, 10);
        CHECK(ferry_quiesce(f) == 0);
    }
    CHECK(ferry_quiesce(f) == 0);
    CHECK(atomic_load(&o->under_way) == 0);
}

static void test_quiesce_repeats_without_barriers(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 6; ranks++) {
        oracle o = {.rounds = 30};
        for (test_parts p = {.most = 10}; next_part(&p); o.part++)
            run_ranks(ranks, 0, 0, rush, &o);
    }
}

/* How the quiescences of the ranks ended. */
typedef struct ways {
    _Atomic int by_board, without_waves;
} ways;

static void heed(ferry *f, int source, const ferry_message *message)
{
    (void)f;
    (void)source;
    (void)message;
}

enum { RESTS = 64 };

static void rest_often(ferry *f, void *arg)
{
    ways *w = arg;
    ferry_handler handler;
    CHECK(ferry_handler_register(f, "heed", heed, &handler) == 0);
    for (int i = 0; i < RESTS; i++) {
        const ferry_message m = {.handler = handler};
        uint32_t waves = f->quiescence.begun;
        CHECK(ferry_request_send(f, (ferry_rank(f) + 1) % ferry_ranks(f), &m, NULL) == 0);
        CHECK(ferry_quiesce(f) == 0);
        atomic_fetch_add(&w->by_board, f->quiescence.by_board);
        atomic_fetch_add(&w->without_waves, ferry_rank(f) == 0 && f->quiescence.begun == waves);
    }
}

/* Goal: ranks that share memory need no frames to see that nothing is left. Method: if they come
 * together, the root begins no wave. A busy machine may hold up a rank, but not in each round. */
static void test_quiesce_ends_by_the_board(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 8; ranks *= 2) {
        ways w = {0};
        run_ranks(ranks, 0, 0, rest_often, &w);
        CHECK(atomic_load(&w.by_board) > 0 && atomic_load(&w.without_waves) > 0);
    }
}

/* Goal: more ranks than the board serves still end by waves. */
static void test_quiesce_of_many_ranks_needs_waves(void **state)
{
    (void)state;
    ways w = {0};
    run_ranks(33, 0, 0, rest_often, &w);
    CHECK(atomic_load(&w.by_board) == 0 && atomic_load(&w.without_waves) == 0);
}

enum { LINKS = 1000 };

/* A long chain of requests holds quiescence off until its end. */
static void chain(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    storm *s = ferry_user_data(f);
    atomic_fetch_add(&s->oracle->sent, 1);
    if (message->words[0] == 0)
        return;
    const ferry_message next = {
        .handler = s->handler, .word_count = 1, .words = {message->words[0] - 1}};
    CHECK(ferry_request_send(f, (ferry_rank(f) + 1) % ferry_ranks(f), &next, NULL) == 0);
}

static void follow(ferry *f, void *arg)
{
    storm s = {.oracle = arg};
    ferry_user_data_set(f, &s);
    CHECK(ferry_handler_register(f, "chain", chain, &s.handler) == 0);
    const ferry_message first = {.handler = s.handler, .word_count = 1, .words = {LINKS}};
    if (ferry_rank(f) == 0)
        CHECK(ferry_request_send(f, ferry_ranks(f) - 1, &first, NULL) == 0);
    CHECK(ferry_quiesce(f) == 0);
    CHECK(atomic_load(&s.oracle->sent) == LINKS + 1);
}

static void test_quiesce_waits_for_a_chain(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 5; ranks += 2) {
        oracle o = {0};
        run_ranks(ranks, 0, 0, follow, &o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quiesce_is_never_early),
        cmocka_unit_test(test_quiesce_repeats_without_barriers),
        cmocka_unit_test(test_quiesce_ends_by_the_board),
        cmocka_unit_test(test_quiesce_of_many_ranks_needs_waves),
        cmocka_unit_test(test_quiesce_waits_for_the_rank_that_broke_it),
        cmocka_unit_test(test_quiesce_waits_for_a_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
