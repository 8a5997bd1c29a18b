/* The decisions of each scheduler (prema.txt 5.4.2; docs/balancing.md), one rule at a time.
 * conform.c shows that nothing is lost under any of them; this test shows that each does what its
 * description says. Those in which some ranks know of all others are in coordinators_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "balance/schedulers/bundle/bundle.h"
#include "balance/schedulers/schedulers.h"
#include "world.h"

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

/* Goal: an idle rank asks as many as NEIGHBOURS says and gets the heaviest object of the most
 * loaded of them. Method: rank 0 of 9, the others with 1 to 8 objects behind the one that runs. */
static void test_diffusion_takes_from_the_most_loaded(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_diffusion, 9, "NEIGHBOURS=3");
    int most = 0;
    for (int i = 1; i < 9; i++)
        world_occupy(w, i, 1 + i);
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

/* Goal: a rank tells the load of all that waits, and gives the heaviest of all. Method: rank 1 has
 * a heavy object and then 200 light ones. */
static void test_diffusion_looks_at_all(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_diffusion, 2, "");
    world_occupy(w, 1, 1);
    thing *heavy = world_add(w, 1, 1000);
    for (int i = 0; i < 200; i++)
        world_add(w, 1, 1);
    assert_null(world_run(w, 0));
    world_deliver_all(w);
    const uint64_t *said = world_said(w, LOAD, 1, 0);
    double load = 0;
    assert_non_null(said);
    memcpy(&load, &said[2], sizeof load);
    assert_true(load == 1200);
    assert_int_equal(heavy->rank, 0);
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
            world_occupy(w, rich, 3);
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

/* Goal: who was refused asks the next loaded of its neighbourhood; a rank that is about to run its
 * only object keeps it. Method: the most loaded has run out of objects when it is asked. */
static void test_diffusion_asks_the_next_loaded(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_diffusion, 4, "");
    world_occupy(w, 1, 2);
    thing *second = world_add(w, 2, 1);
    world_add(w, 2, 1);
    assert_ptr_equal(world_run(w, 2), &second->item);
    world_add(w, 3, 50); /* it is about to run that */
    assert_null(world_run(w, 0));
    while (world_words(w, 0, ASK, 0, 1) == 0)
        world_deliver(w);
    world_end(w, 1);
    assert_non_null(world_run(w, 1));
    world_deliver_all(w);
    assert_int_equal(world_words(w, 0, REFUSE, 1, 0), 1);
    assert_int_equal(world_moves(w, 0, -1, -1), 1);
    assert_int_equal(world_moves(w, 0, 2, 0), 1);
    world_close(w);
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

/* Goal: of the heaviest objects that which came last is offered, with its load, and goes; that
 * which came first runs next. Method: two of 10 and 11, which are on one bucket, behind what runs.
 */
static void test_sender_gives_what_came_last(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_diffusion_sender, 2, "HIGH=15 PING_US=0");
    world_occupy(w, 0, 1);
    thing *first = world_add(w, 0, 10), *last = world_add(w, 0, 11);
    world_deliver_all(w);
    assert_int_equal(world_words(w, 0, OFFER, 0, 1), 1);
    assert_true(world_said(w, OFFER, 0, 1)[2] == UINT64_C(0x4026000000000000)); /* 11.0 */
    assert_int_equal(last->rank, 1);
    world_end(w, 0);
    assert_ptr_equal(world_run(w, 0), &first->item);
    world_close(w);
}

/* Goal: heavy objects run first; neighbours that have no room are replaced, and get nothing; what a
 * rank has sent one object of it goes on to send. Method: 7 ranks, 2 neighbours at a time; all but
 * one have as much to do as rank 0. */
static void test_sender_finds_who_has_room(void **state)
{
    (void)state;
    for (int idle = 1; idle < 7; idle++) {
        world *w = world_open(&fy_scheduler_diffusion_sender, 7, "NEIGHBOURS=2 PING_US=500");
        for (int i = 1; i < 7; i++) {
            world_add(w, i, i == idle ? 1 : 90);
            world_run(w, i);
        }
        world_add(w, 0, 1);
        world_run(w, 0);
        world_add(w, 0, 20);
        world_add(w, 0, 40);
        world_add(w, 0, 10);
        world_deliver_all(w);
        for (int round = 0; round < 3; round++) {
            world_wake(w, 0);
            world_deliver_all(w);
        }
        assert_int_equal(world_moves(w, 0, 0, -1), 1);
        assert_int_equal(world_moves(w, 0, 0, idle), 1);
        world_end(w, 0);
        assert_true(world_run(w, 0)->load == 20); /* 40 has left */
        world_end(w, 0);
        assert_true(world_run(w, 0)->load == 10);
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
    world_occupy(w, 5, 4);
    assert_in_range(world_words(w, 0, STEAL_HINT, 5, 0), 1, 3);
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 5, 0), 1);
    assert_true(world_run(w, 0)->load == 4);
    world_close(w);
}

/* Goal: of short tasks a thief gets half of what waits, and asks when its last begins; who is about
 * to run its only object keeps it. Method: tasks of 10 us; AHEAD_US is 200, or 0. */
static void test_stealing_takes_several_short_ones(void **state)
{
    (void)state;
    for (int ahead = 0; ahead < 2; ahead++) {
        world *w = world_open(&fy_scheduler_stealing, 2, ahead ? "" : "AHEAD_US=0");
        for (int i = 0; i < 2; i++) {
            world_add(w, i, 1);
            world_run(w, i);
            w->now_ns += 10000;
            world_end(w, i);
        }
        world_occupy(w, 1, 8);
        world_add(w, 0, 1);
        assert_non_null(world_run(w, 0));
        assert_int_equal(world_words(w, 0, STEAL, 0, 1), ahead);
        world_end(w, 0);
        if (!ahead)
            assert_null(world_run(w, 0));
        world_deliver_all(w);
        assert_int_equal(world_moves(w, 0, 1, 0), ahead ? 4 : 1);
        world_close(w);
    }
    world *w = world_open(&fy_scheduler_stealing, 2, "");
    world_add(w, 1, 1);
    assert_null(world_run(w, 0));
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 1, 0), 0);
    world_close(w);
}

/* Goal: of those it refused a victim tells the first that it has work again; when that has work of
 * its own, the next. Method: ranks 1 and 2 are refused by 0, then 1 gets work, then 0. */
static void test_stealing_names_a_victim_to_the_next_asker(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_stealing, 3, "");
    world_add(w, 0, 1);
    world_run(w, 0);
    for (int i = 1; i < 3; i++) {
        assert_null(world_run(w, i));
        world_deliver_all(w);
    }
    world_occupy(w, 1, 1);
    world_deliver_all(w);
    int since = w->sent;
    world_add(w, 0, 5);
    assert_int_equal(world_words(w, since, STEAL_HINT, 0, -1), 1);
    assert_int_equal(world_words(w, since, STEAL_HINT, 0, 1), 1);
    world_deliver_all(w);
    assert_int_equal(world_words(w, since, STEAL_HINT, 0, 2), 1);
    assert_int_equal(world_moves(w, since, 0, 2), 1);
    world_close(w);
}

/* Goal: word of an idle rank spreads with its distance, from neighbour to neighbour, and is not
 * passed on by who knows a nearer one. Method: a ring of 12 without far links, all busy, where
 * first rank 0 and then rank 4 becomes idle. */
static void test_gradient_spreads_distance(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_gradient, 12, "NEIGHBOURS=2 FAR=0");
    for (int i = 0; i < 12; i++)
        if (i != 0 && i != 4)
            world_occupy(w, i, 1);
    assert_null(world_run(w, 0));
    world_deliver_all(w);
    uint64_t nearest[12];
    for (int i = 0; i < 12; i++)
        nearest[i] = UINT64_MAX;
    for (int i = 0; i < w->sent; i++)
        if (w->mail[i].words[1] == 0 && (uint32_t)w->mail[i].words[2] < nearest[w->mail[i].to])
            nearest[w->mail[i].to] = (uint32_t)w->mail[i].words[2];
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
        world_occupy(w, 0, 4);
        for (int waiting = 3; waiting > 0; waiting--) {
            bool says = low > 0 && waiting <= low;
            assert_int_equal(world_words(w, 0, STATUS, 0, -1), says ? 2 : 0);
            world_end(w, 0);
            assert_non_null(world_run(w, 0));
        }
        assert_int_equal(world_words(w, 0, STATUS, 0, -1), low > 0 ? 2 : 0);
        world_run_last(w, 0);
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
    world_occupy(w, 1, 5); /* one runs, four wait */
    world_occupy(w, 2, 5);
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

/* Goal: with FAR=1 there are neighbours at powers of two; what is known of an idle rank gives way
 * to any other after EXPIRE_US, and before that to a nearer one. Method: what rank 8 of 16 passes
 * on.
 */
static void test_gradient_reaches_far_and_forgets(void **state)
{
    (void)state;
    for (int far = 0; far < 2; far++) {
        world *w =
            world_open(&fy_scheduler_gradient, 16, far ? "NEIGHBOURS=2" : "NEIGHBOURS=2 FAR=0");
        for (int i = 1; i < 16; i++)
            world_occupy(w, i, 1);
        assert_null(world_run(w, 0));
        assert_int_equal(world_words(w, 0, STATUS, 0, -1), far ? 4 : 2);
        assert_int_equal(world_words(w, 0, STATUS, 0, 8), far);
        world_close(w);
    }
    world *w = world_open(&fy_scheduler_gradient, 16, "NEIGHBOURS=2 FAR=0 EXPIRE_US=100");
    world_occupy(w, 8, 1);
    for (uint64_t late = 0; late < 2; late++) {
        const uint64_t count = (late + 1) << 32;
        const uint64_t near[] = {STATUS, 5, count | 1}, distant[] = {STATUS, 3, count | 4};
        int since = w->sent;
        w->policy->message(&w->of[8], w->of[8].state, 7, near);
        w->now_ns += late ? 100001 : 100000;
        w->policy->message(&w->of[8], w->of[8].state, 9, distant);
        assert_int_equal(world_words(w, since, STATUS, 8, 7), late);
        w->now_ns += 100001;
    }
    world_close(w);
}

/* Goal: words end if each of them takes longer than EXPIRE_US. Method: rank 0 of 7 is idle, and
 * says so once. Words were passed on without end: each made two to four more. */
static void test_gradient_ends_on_slow_networks(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_gradient, 7, "EXPIRE_US=100");
    for (int i = 1; i < 7; i++)
        world_occupy(w, i, 1);
    assert_null(world_run(w, 0));
    while (w->delivered < w->sent) {
        w->now_ns += 100001;
        world_deliver(w);
        assert_in_range(w->sent, 0, 7 * 6);
    }
    assert_int_equal(world_words(w, 0, STATUS, 0, -1), 5);
    world_close(w);
}

/* Goal: a rank asks for no more than it was offered; a promise that cannot be kept is withdrawn,
 * and then it asks again; HIGH is at least LOW. Method: what was offered runs meanwhile. */
static void test_gradient_withdraws_its_promise(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_gradient, 2, "BATCH=3");
    world_occupy(w, 1, 2);
    assert_null(world_run(w, 0));
    while (world_words(w, 0, GRADIENT_TAKE, 0, 1) == 0)
        world_deliver(w);
    assert_int_equal(world_said(w, GRADIENT_OFFER, 1, 0)[1], 1);
    assert_int_equal(world_said(w, GRADIENT_TAKE, 0, 1)[1], 1);
    world_end(w, 1);
    assert_non_null(world_run(w, 1));
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, -1, -1), 0);
    int since = w->sent;
    world_wake(w, 0);
    assert_int_equal(world_words(w, since, STATUS, 0, 1), 1);
    world_close(w);

    w = world_open(&fy_scheduler_gradient, 2, "LOW=2 HIGH=0 BATCH=9");
    world_occupy(w, 1, 4); /* one runs; of three it keeps two */
    assert_null(world_run(w, 0));
    world_deliver_all(w);
    assert_int_equal(world_said(w, GRADIENT_OFFER, 1, 0)[1], 1);
    world_close(w);
}

/* Goal: beyond HIGH a rank that runs nothing keeps the one object that it is about to run, and no
 * more. Method: rank 1 gets two, one after the other, when it knows that rank 0 has none. */
static void test_gradient_keeps_what_it_is_to_run(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_gradient, 2, "");
    assert_null(world_run(w, 0));
    world_deliver_all(w);
    world_add(w, 1, 1);
    assert_int_equal(world_words(w, 0, GRADIENT_OFFER, 1, 0), 0);
    world_add(w, 1, 1);
    assert_int_equal(world_words(w, 0, GRADIENT_OFFER, 1, 0), 1);
    assert_int_equal(world_said(w, GRADIENT_OFFER, 1, 0)[1], 1);
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 1, 0), 1);
    assert_non_null(world_run(w, 1));
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_diffusion_takes_from_the_most_loaded),
        cmocka_unit_test(test_diffusion_looks_at_all),
        cmocka_unit_test(test_diffusion_starts_at_its_threshold),
        cmocka_unit_test(test_diffusion_replaces_neighbours),
        cmocka_unit_test(test_diffusion_asks_the_next_loaded),
        cmocka_unit_test(test_sender_gives_its_heaviest_to_the_least_loaded),
        cmocka_unit_test(test_sender_gives_what_came_last),
        cmocka_unit_test(test_sender_finds_who_has_room),
        cmocka_unit_test(test_sender_commits_first_and_pings),
        cmocka_unit_test(test_stealing_asks_one_after_the_other),
        cmocka_unit_test(test_stealing_takes_several_short_ones),
        cmocka_unit_test(test_stealing_names_a_victim_to_the_next_asker),
        cmocka_unit_test(test_gradient_spreads_distance),
        cmocka_unit_test(test_gradient_is_low_at_its_mark),
        cmocka_unit_test(test_gradient_reaches_far_and_forgets),
        cmocka_unit_test(test_gradient_ends_on_slow_networks),
        cmocka_unit_test(test_gradient_commits_before_it_sends),
        cmocka_unit_test(test_gradient_withdraws_its_promise),
        cmocka_unit_test(test_gradient_keeps_what_it_is_to_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
