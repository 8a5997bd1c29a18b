/* What each scheduler decides (prema.txt 5.4.2; docs/balancing.md), one rule at a time: conform.c
 * shows that nothing is lost under any of them, this that each is the one it says it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "balance/schedulers/bundle/bundle.h"
#include "balance/schedulers/schedulers.h"
#include "world.h"

/* First words of what is sent, as the schedulers number them. */
enum { QUERY, LOAD, ASK, REFUSE };              /* diffusion */
enum { OFFER = 2, TAKE };                       /* diffusion-sender */
enum { STEAL, STEAL_REFUSE, STEAL_HINT };       /* stealing */
enum { STATUS, GRADIENT_OFFER, GRADIENT_TAKE }; /* gradient */
enum { HEAD, HEAD_ASK, HEAD_NONE };             /* multilist */
enum { CHUNK_ASK };                             /* master */

/* Adds `count` objects of loads 1, 2, ... to `rank` and lets it run one of them. */
static void occupy(world *w, int rank, int count)
{
    for (int i = 1; i <= count; i++)
        world_add(w, rank, i);
    assert_non_null(world_run(w, rank));
}

/* To how many ranks words `what` of rank `from` went; each must have got them once. */
static int distinct(const world *w, int since, uint64_t what, int from)
{
    int count = 0;
    for (int i = 0; i < w->ranks; i++) {
        assert_in_range(world_words(w, since, what, from, i), 0, 1);
        count += world_words(w, since, what, from, i);
    }
    return count;
}

/* Ends the task that `rank` runs, which is its last. */
static void run_last(world *w, int rank)
{
    world_end(w, rank);
    assert_null(world_run(w, rank));
}

/* Goal: an idle rank asks as many as NEIGHBOURS says and gets the heaviest object of the most
 * loaded of them. Method: rank 0 of 9, the others with 1 to 8 objects behind the one that runs. */
static void test_diffusion_takes_from_the_most_loaded(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_diffusion, 9, "NEIGHBOURS=3");
    int most = 0;
    for (int i = 1; i < 9; i++)
        occupy(w, i, 1 + i);
    int since = w->sent;
    assert_null(world_run(w, 0));
    assert_int_equal(world_words(w, since, QUERY, 0, -1), 3);
    assert_int_equal(distinct(w, since, QUERY, 0), 3);
    for (int i = 1; i < 9; i++)
        most = world_words(w, since, QUERY, 0, i) > 0 ? i : most;
    world_deliver_all(w);
    assert_int_equal(world_words(w, since, ASK, 0, -1), 1);
    assert_int_equal(world_words(w, since, ASK, 0, most), 1);
    assert_int_equal(world_moves(w, since, -1, -1), 1);
    assert_int_equal(world_moves(w, since, most, 0), 1);
    assert_true(world_run(w, 0)->load == 1 + most);
    world_close(w);
}

/* Goal: THRESHOLD is the load at which a rank asks, and START_AHEAD has it ask when its last task
 * begins; without either it asks when it has none. */
static void test_diffusion_starts_at_its_threshold(void **state)
{
    static const struct {
        const char *parameters;
        int waiting;
        bool asks;
    } cases[] = {
        {"", 0, false},           {"START_AHEAD=1", 0, true}, {"START_AHEAD=1", 1, false},
        {"THRESHOLD=2", 2, true}, {"THRESHOLD=2", 3, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world *w = world_open(&fy_scheduler_diffusion, 4, cases[i].parameters);
        for (int k = 0; k <= cases[i].waiting; k++)
            world_add(w, 0, 1);
        assert_non_null(world_run(w, 0));
        assert_int_equal(world_words(w, 0, QUERY, 0, -1) > 0, cases[i].asks);
        world_close(w);
    }
}

/* Goal: neighbours that have nothing are replaced, so that whoever has something is found; when
 * none has, the rank rests. Method: 11 ranks, 2 neighbours at a time; all but one have no work. */
static void test_diffusion_replaces_neighbours(void **state)
{
    (void)state;
    for (int rich = 0; rich < 11; rich++) {
        world *w = world_open(&fy_scheduler_diffusion, 11, "NEIGHBOURS=2");
        if (rich != 0)
            occupy(w, rich, 3);
        int since = w->sent;
        assert_null(world_run(w, 0));
        world_deliver_all(w);
        assert_int_equal(world_moves(w, since, rich, 0), rich != 0);
        if (rich == 0) {
            assert_int_equal(distinct(w, since, QUERY, 0), 10);
            since = w->sent;
            world_wake(w, 0); /* after a pause it begins again */
            assert_int_equal(world_words(w, since, QUERY, 0, -1), 2);
        }
        world_close(w);
    }
}

/* Goal: a rank above HIGH asks its neighbourhood and sends its heaviest object to the least loaded;
 * at HIGH it does not. Method: 5 ranks, all neighbours; the others have different loads. */
static void test_sender_gives_its_heaviest_to_the_least_loaded(void **state)
{
    (void)state;
    for (int extra = 0; extra < 2; extra++) {
        world *w = world_open(&fy_scheduler_diffusion_sender, 5, "NEIGHBOURS=4 HIGH=9 PING_US=0");
        for (int i = 1; i < 5; i++)
            world_add(w, i, i == 3 ? 1 : 5);
        for (int i = 1; i < 5; i++)
            world_run(w, i);
        world_add(w, 0, 20);
        world_run(w, 0);
        world_add(w, 0, 3);
        int since = w->sent;
        thing *heavy = world_add(w, 0, 6 + extra);
        assert_int_equal(world_words(w, since, QUERY, 0, -1), extra == 0 ? 0 : 4);
        world_deliver_all(w);
        assert_int_equal(world_moves(w, since, -1, -1), extra);
        assert_int_equal(heavy->rank, extra == 0 ? 0 : 3);
        assert_int_equal(world_words(w, since, OFFER, 0, 3), extra);
        world_close(w);
    }
}

/* Goal: two that hear of one idle rank do not both send to it; PING_US has them ask again by the
 * clock, and 0 never. Method: both offer before either has sent. */
static void test_sender_commits_first_and_pings(void **state)
{
    (void)state;
    for (int ping = 0; ping < 2; ping++) {
        world *w = world_open(&fy_scheduler_diffusion_sender, 3,
                              ping ? "NEIGHBOURS=2 PING_US=500" : "NEIGHBOURS=2 PING_US=0");
        for (int i = 0; i < 2; i++) {
            world_add(w, i, 4);
            world_run(w, i);
        }
        for (int i = 0; i < 2; i++)
            world_add(w, i, 8);
        while (world_words(w, 0, OFFER, -1, 2) < 2)
            world_deliver(w);
        world_deliver_all(w);
        assert_int_equal(world_moves(w, 0, -1, 2), 1);
        int loser = world_moves(w, 0, 0, 2) == 0 ? 0 : 1, since = w->sent;
        assert_int_equal(w->of[loser].wake_ns != 0, ping);
        if (ping) {
            assert_true(w->of[loser].wake_ns - w->now_ns <= 500 * 1000);
            world_wake(w, loser);
            assert_int_equal(world_words(w, since, QUERY, loser, -1), 2);
        }
        world_close(w);
    }
}

/* Goal: a thief asks one at a time, the next after a refusal, all in turn, and then rests; what
 * it gets is the heaviest of what waits there. When work comes, the refused hear of it. */
static void test_stealing_asks_one_after_the_other(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_stealing, 8, "");
    assert_null(world_run(w, 0));
    for (int asked = 1; asked < 8; asked++) {
        assert_int_equal(world_words(w, 0, STEAL, 0, -1), asked);
        world_deliver(w); /* the request */
        assert_int_equal(world_words(w, 0, STEAL, 0, -1), asked);
        world_deliver(w); /* the refusal */
    }
    assert_int_equal(distinct(w, 0, STEAL, 0), 7);
    assert_int_equal(world_words(w, 0, STEAL_REFUSE, -1, 0), 7);
    assert_true(w->of[0].wake_ns != 0);
    occupy(w, 5, 4);
    assert_in_range(world_words(w, 0, STEAL_HINT, 5, 0), 1, 3);
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 5, 0), 1);
    assert_true(world_run(w, 0)->load == 4);
    world_close(w);
}

/* Goal: word of an idle rank spreads with its distance, from neighbour to neighbour, and is not
 * passed on by who knows a nearer one. Method: a ring of 12 without far links, all busy, where
 * first rank 0 and then rank 4 becomes idle. */
static void test_gradient_spreads_proximity(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_gradient, 12, "NEIGHBOURS=2 FAR=0");
    for (int i = 0; i < 12; i++)
        if (i != 0 && i != 4)
            occupy(w, i, 1);
    assert_null(world_run(w, 0));
    world_deliver_all(w);
    uint64_t nearest[12];
    for (int i = 0; i < 12; i++)
        nearest[i] = UINT64_MAX;
    for (int i = 0; i < w->sent; i++)
        if (w->mail[i].words[1] == 0 && w->mail[i].words[2] < nearest[w->mail[i].to])
            nearest[w->mail[i].to] = w->mail[i].words[2];
    for (int i = 1; i < 12; i++)
        assert_int_equal(nearest[i], (i < 6 ? i : 12 - i) - 1);
    int since = w->sent;
    assert_null(world_run(w, 4));
    world_deliver_all(w);
    for (int i = since; i < w->sent; i++)
        assert_true(w->mail[i].from > 1 && w->mail[i].from < 9);
    /* Rank 3 has too much: it offers to rank 4, not to 0. */
    world_add(w, 3, 1);
    assert_int_equal(world_words(w, since, GRADIENT_OFFER, 3, 4), 1);
    assert_int_equal(world_words(w, 0, GRADIENT_OFFER, -1, -1), 1);
    world_close(w);
}

/* Goal: LOW is at how many waiting objects a rank says that it wants some; at 0 it has no task
 * either. Method: rank 0 with three objects. */
static void test_gradient_is_low_at_its_mark(void **state)
{
    (void)state;
    for (int low = 0; low < 3; low++) {
        world *w =
            world_open(&fy_scheduler_gradient, 3, (const char *[]){"LOW=0", "LOW=1", "LOW=2"}[low]);
        occupy(w, 0, 4);
        for (int waiting = 3; waiting > 0; waiting--) {
            bool says = low > 0 && waiting <= low;
            assert_int_equal(world_words(w, 0, STATUS, 0, -1), says ? 2 : 0);
            world_end(w, 0);
            assert_non_null(world_run(w, 0));
        }
        assert_int_equal(world_words(w, 0, STATUS, 0, -1), low > 0 ? 2 : 0);
        run_last(w, 0);
        assert_int_equal(world_words(w, 0, STATUS, 0, -1), 2);
        world_close(w);
    }
}

/* Goal: HIGH is what a rank keeps; an offer is answered with at most BATCH, once; the objects go
 * together. Method: rank 0 idle, 1 and 2 with two more than they keep. */
static void test_gradient_commits_before_it_sends(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_gradient, 3, "NEIGHBOURS=2 HIGH=2 BATCH=3");
    occupy(w, 1, 5); /* one runs, four wait */
    occupy(w, 2, 5);
    assert_null(world_run(w, 0));
    while (world_words(w, 0, GRADIENT_OFFER, -1, 0) < 2)
        world_deliver(w);
    assert_int_equal(world_moves(w, 0, -1, -1), 0);
    world_deliver_all(w);
    assert_int_equal(world_words(w, 0, GRADIENT_TAKE, 0, -1), 2);
    assert_int_equal(world_moves(w, 0, -1, 0), 2);
    assert_true(world_moves(w, 0, 1, 0) == 2 || world_moves(w, 0, 2, 0) == 2);
    world_close(w);
}

/* Goal: an idle rank asks where the object is that is most wanted on it, by the object's priority
 * for this rank, and gets the one there that is best for it. Method: two ranks with two objects
 * each, which want to be on different ranks. */
static void test_multilist_goes_by_the_priority_for_the_asker(void **state)
{
    static const double wants[4][4] = {{1, 1, 5, 2}, {1, 1, 1, 9}, {1, 1, 8, 1}, {1, 1, 2, 4}};
    (void)state;
    for (int order = 0; order < 2; order++) {
        world *w = world_open(&fy_scheduler_multilist, 4, "");
        thing *things[4];
        for (int i = 0; i < 4; i++)
            occupy(w, i, 1);
        for (int i = 0; i < 4; i++)
            things[i] = world_add_choosy(w, i / 2, wants[i]);
        world_deliver_all(w);
        int since = w->sent;
        run_last(w, order == 0 ? 2 : 3);
        run_last(w, order == 0 ? 3 : 2);
        world_deliver_all(w);
        assert_int_equal(world_words(w, since, HEAD_ASK, 2, 1), 1);
        assert_int_equal(world_words(w, since, HEAD_ASK, 3, 0), 1);
        assert_true(things[0]->rank == 0 && things[1]->rank == 3);
        assert_true(things[2]->rank == 2 && things[3]->rank == 1);
        /* What is best for each now stands elsewhere than before. */
        for (int i = 2; i < 4; i++) {
            assert_non_null(world_run(w, i));
            run_last(w, i);
        }
        world_deliver_all(w);
        assert_true(things[0]->rank == 2 && things[3]->rank == 3);
        world_close(w);
    }
}

/* Goal: who asks for what is gone gets another, if there is one, else NONE, and asks the next; a
 * rank that has no more says so. Method: requests cross what would have kept them back. */
static void test_multilist_gives_what_there_is(void **state)
{
    static const double wants[2][4] = {{1, 1, 9, 1}, {1, 1, 2, 1}};
    (void)state;
    world *w = world_open(&fy_scheduler_multilist, 4, "");
    for (int i = 0; i < 4; i++)
        occupy(w, i, 1);
    thing *first = world_add_choosy(w, 0, wants[0]), *second = world_add_choosy(w, 0, wants[1]);
    world_deliver_all(w);
    run_last(w, 2); /* asks for the first, */
    world_end(w, 0);
    assert_ptr_equal(world_run(w, 0), &first->item); /* which runs */
    run_last(w, 3);
    int since = w->sent;
    world_deliver_all(w);
    assert_int_equal(second->rank, 2);
    assert_int_equal(world_words(w, since, HEAD_NONE, 0, 3), 1);
    assert_int_equal(world_words(w, since, HEAD_ASK, -1, -1), 0);
    for (int i = 1; i < 4; i++) {
        uint64_t last = UINT64_MAX;
        for (const mail *m = w->mail; m < &w->mail[w->sent]; m++)
            last = m->object == NULL && m->to == i && m->words[0] == HEAD ? m->words[1] : last;
        assert_int_equal(last, 0);
    }
    world_close(w);
}

/* Goal: what waits anywhere goes to the root, unless DISTRIBUTED=1; a worker gets CHUNK of it for
 * each request. Method: rank 2 has objects; then rank 1 asks; then there are none left, and a
 * request waits for more. */
static void test_master_collects_and_hands_out(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_master, 4, "CHUNK=3");
    occupy(w, 0, 1);
    for (int i = 0; i < 5; i++)
        world_add(w, 2, 1);
    assert_int_equal(world_moves(w, 0, 2, 0), 4);
    world_deliver_all(w);
    assert_null(world_run(w, 1));
    assert_int_equal(world_words(w, 0, CHUNK_ASK, 1, 0), 1);
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 0, 1), 3);
    assert_null(world_run(w, 3));
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 0, 3), 1);
    assert_non_null(world_run(w, 3));
    run_last(w, 3);
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 0, 3), 1);
    world_add(w, 0, 1);
    assert_int_equal(world_moves(w, 0, 0, 3), 2);
    world_close(w);

    w = world_open(&fy_scheduler_master, 4, "DISTRIBUTED=1");
    for (int i = 0; i < 5; i++)
        world_add(w, 2, 1);
    assert_int_equal(w->sent, 0);
    world_close(w);
}

/* Goal: with FACTORING chunks are a share of half of what is left, so they shrink, down to CHUNK.
 * Method: 4 ranks, 64 objects at the root, which runs another. */
static void test_master_factors(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_master, 4, "FACTORING=1 CHUNK=2");
    occupy(w, 0, 65);
    int chunk = 0, left = 64;
    for (int turn = 0; left > 0; turn++) {
        int worker = 1 + turn % 3, since = w->sent;
        while (world_run(w, worker) != NULL)
            world_end(w, worker);
        world_deliver_all(w);
        int got = world_moves(w, since, 0, worker), share = left / 8 > 2 ? left / 8 : 2;
        assert_int_equal(got, share < left ? share : left);
        assert_true(turn == 0 || got <= chunk);
        chunk = got;
        left -= got;
    }
    world_close(w);
}

/* Goal: with GROUP a worker asks the master of its group, which asks its own, up to the root, and
 * each gets work. Method: 8 ranks in groups of 2; only the root has any. */
static void test_master_has_masters(void **state)
{
    static const int parents[8] = {-1, 0, 0, 2, 0, 4, 4, 6};
    (void)state;
    world *w = world_open(&fy_scheduler_master, 8, "GROUP=2");
    occupy(w, 0, 30);
    for (int i = 7; i > 0; i--)
        assert_null(world_run(w, i));
    world_deliver_all(w);
    for (int i = 1; i < 8; i++) {
        assert_true(world_words(w, 0, CHUNK_ASK, i, parents[i]) > 0);
        assert_int_equal(world_words(w, 0, CHUNK_ASK, i, -1),
                         world_words(w, 0, CHUNK_ASK, i, parents[i]));
        assert_non_null(world_run(w, i));
    }
    world_close(w);
}

/* Lets `rank` run a task for so long. */
static void run_for(world *w, int rank, uint64_t ns)
{
    assert_non_null(world_run(w, rank));
    w->now_ns += ns;
    world_end(w, rank);
}

/* Goal: who wishes for work gets the heaviest object of who has some: one of long tasks, of short
 * ones as many as take SLICE_US, up to half. Method: a rank with 21 objects has run one for a time.
 */
static void test_ferry_gives_as_much_as_is_worth_it(void **state)
{
    static const struct {
        uint64_t task_us;
        int objects;
    } cases[] = {{10000, 1}, {150, 4}, {120, 5}, {10, 10}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world *w = world_open(&fy_scheduler_ferry, 40, "GRACE_US=0 SLICE_US=500 SHORT_US=200");
        for (int k = 0; k < 22; k++)
            world_add(w, 37, k == 5 ? 100 : k == 6 ? 70 : 2);
        run_for(w, 37, cases[i].task_us * 1000);
        assert_non_null(world_run(w, 37));
        world_deliver_all(w);
        assert_null(world_run(w, 2));
        world_deliver_all(w);
        assert_int_equal(world_moves(w, 0, -1, -1), cases[i].objects);
        assert_int_equal(world_moves(w, 0, 37, 2), cases[i].objects);
        world_close(w);
    }
}

/* Goal: a rank that had nothing and gets work gives none for GRACE_US, then to who waits; a wish
 * that is lost is repeated after TIMEOUT_US. */
static void test_ferry_gives_nothing_at_first(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_ferry, 4, "GRACE_US=2000 TIMEOUT_US=9000");
    assert_null(world_run(w, 3));
    assert_int_equal(w->sent, 1); /* a wish */
    w->delivered = w->sent;       /* which is lost */
    uint64_t start_ns = w->now_ns;
    occupy(w, 1, 4);
    world_deliver_all(w);
    world_wake(w, 3);
    assert_true(w->now_ns == start_ns + 9000000);
    w->now_ns = start_ns;
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, -1, -1), 0);
    world_wake(w, 1);
    assert_true(w->now_ns == start_ns + 2000000);
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 1, 3), 1);
    assert_true(world_run(w, 3)->load == 3); /* 4 runs */
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_diffusion_takes_from_the_most_loaded),
        cmocka_unit_test(test_diffusion_starts_at_its_threshold),
        cmocka_unit_test(test_diffusion_replaces_neighbours),
        cmocka_unit_test(test_sender_gives_its_heaviest_to_the_least_loaded),
        cmocka_unit_test(test_sender_commits_first_and_pings),
        cmocka_unit_test(test_stealing_asks_one_after_the_other),
        cmocka_unit_test(test_gradient_spreads_proximity),
        cmocka_unit_test(test_gradient_is_low_at_its_mark),
        cmocka_unit_test(test_gradient_commits_before_it_sends),
        cmocka_unit_test(test_multilist_goes_by_the_priority_for_the_asker),
        cmocka_unit_test(test_multilist_gives_what_there_is),
        cmocka_unit_test(test_master_collects_and_hands_out),
        cmocka_unit_test(test_master_factors),
        cmocka_unit_test(test_master_has_masters),
        cmocka_unit_test(test_ferry_gives_as_much_as_is_worth_it),
        cmocka_unit_test(test_ferry_gives_nothing_at_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
