/* The decisions of the default scheduler, whose coordinators know of all others
 * (docs/balancing.md), one rule at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "balance/schedulers/schedulers.h"
#include "world.h"

/* Goal: who asks for work gets the heaviest object of who has some: one of long tasks, of short
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
        world_run_for(w, 37, cases[i].task_us * 1000);
        assert_non_null(world_run(w, 37));
        world_deliver_all(w);
        assert_null(world_run(w, 2));
        world_deliver_all(w);
        assert_int_equal(world_moves(w, 0, -1, -1), cases[i].objects);
        assert_int_equal(world_moves(w, 0, 37, 2), cases[i].objects);
        world_close(w);
    }
}

/* Goal: a rank that had nothing and gets work gives none for GRACE_US, then to who waits; a work
 * request that is lost is repeated after TIMEOUT_US. */
static void test_ferry_gives_nothing_at_first(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_ferry, 4, "GRACE_US=2000 TIMEOUT_US=9000");
    assert_null(world_run(w, 3));
    assert_int_equal(w->sent, 1); /* a work request */
    w->delivered = w->sent;       /* which is lost */
    uint64_t start_ns = w->now_ns;
    world_occupy(w, 1, 4);
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

/* Goal: a rank with lighter work than another, and less of it, gets one of the other's heavy
 * objects before it runs out, and another when it has begun that one. It gets none while a third
 * rank has nothing to do, and not the last. Nobody is asked in vain. Method: two ranks, of which
 * one has heavy objects; a third is idle, or not there; the coordinator is on either. */
static void test_ferry_trades_heavy_for_light(void **state)
{
    static const struct {
        int ranks, heavy_rank, heavies;
        double light;
        int moves, words;
    } cases[] = {{2, 0, 5, 1, 1, 0},
                 {2, 1, 5, 1, 1, 1},
                 {2, 1, 4, 70, 0, 0},
                 {3, 1, 5, 1, 0, 0},
                 {2, 1, 2, 1, 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int heavy_rank = cases[i].heavy_rank, moves = cases[i].moves, words = 0;
        world *w = world_open(&fy_scheduler_ferry, cases[i].ranks, "GRACE_US=0");
        world_begin_with(w, !heavy_rank, 6, cases[i].light);
        world_begin_with(w, heavy_rank, cases[i].heavies, 100);
        world_deliver_all(w);
        assert_int_equal(world_moves(w, 0, heavy_rank, !heavy_rank), moves);
        assert_int_equal(world_moves(w, 0, -1, -1), moves);
        for (const mail *m = w->mail; m < &w->mail[w->sent]; m++)
            words += m->object == NULL && m->from == 0;
        assert_int_equal(words, cases[i].words);
        w->now_ns += 1000000;
        world_end(w, !heavy_rank);
        assert_true(world_run(w, !heavy_rank)->load == (moves == 1 ? 100 : cases[i].light));
        world_deliver_all(w);
        assert_int_equal(world_moves(w, 0, heavy_rank, !heavy_rank), 2 * moves);
        world_close(w);
    }
}

/* Goal: the rank asked for a trade looks again: it gives only if it has more to do than the other
 * even then. It does not give its last heavy object, which it is about to begin. Method: it begins
 * some while the note is in flight, or all. */
static void test_ferry_trades_only_what_is_fair(void **state)
{
    (void)state;
    for (int left = 0; left < 8; left++) {
        int loads = left / 4;
        world *w = world_open(&fy_scheduler_ferry, 2, "GRACE_US=0");
        world_begin_with(w, 0, 6, loads == 0 ? 1 : 30);
        world_begin_with(w, 1, 5, 100);
        while (w->delivered < w->sent && w->mail[w->delivered].to == 0)
            world_deliver(w);
        for (int i = 0; i < 4 - left % 4; i++) {
            w->now_ns += 1000000;
            world_end(w, 1);
            assert_non_null(world_run(w, 1));
        }
        world_deliver_all(w);
        assert_int_equal(world_moves(w, 0, -1, -1), left % 4 >= 2 + loads);
        world_close(w);
    }
}

/* Goal: a trade that is refused leaves nothing behind: the taker, busy with its last task, is not
 * taken for one that work requests, and when it has wished itself it may trade again. Method: the
 * heavy objects are gone when the note comes; more come later, twice. */
static void test_ferry_trades_again_after_a_refusal(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_ferry, 2, "GRACE_US=0");
    world_begin_with(w, 0, 2, 1);
    world_begin_with(w, 1, 5, 100);
    while (w->delivered < w->sent && w->mail[w->delivered].to == 0)
        world_deliver(w);
    assert_true(w->delivered < w->sent); /* the note */
    for (int i = 0; i < 4; i++) {
        w->now_ns += 1000000;
        world_end(w, 1);
        assert_non_null(world_run(w, 1));
    }
    world_end(w, 0);
    assert_non_null(world_run(w, 0));
    world_deliver_all(w);
    for (int i = 0; i < 5; i++)
        world_add(w, 1, 100);
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, -1, -1), 0);
    for (int i = 0; i < 5; i++) {
        w->now_ns += 1000000;
        world_end(w, 1);
        assert_non_null(world_run(w, 1));
    }
    world_deliver_all(w);
    world_run_last(w, 0);
    world_begin_with(w, 0, 6, 1);
    for (int i = 0; i < 5; i++)
        world_add(w, 1, 100);
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 1, 0), 1);
    world_close(w);
}

/* Goal: a rank had nothing and gets a task from elsewhere. It waits for more for a thousandth of a
 * task, up to 100 us, and then begins with the heaviest. It begins immediately with what it has
 * asked for, and when it does not know yet how long tasks take. Method: tasks of 50 ms and of 1 s.
 */
static void test_ferry_lets_tasks_settle(void **state)
{
    static const struct {
        uint64_t task_ns, wait_ns;
    } cases[] = {{50000000, 50000}, {1000000000, 100000}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world *w = world_open(&fy_scheduler_ferry, 2, "");
        world_add(w, 1, 1);
        world_run_for(w, 1, cases[i].task_ns);
        assert_null(world_run(w, 1)); /* asks for more */
        world_add(w, 1, 2);
        assert_null(world_run(w, 1));
        world_add(w, 1, 9);
        w->now_ns += cases[i].wait_ns - 1;
        assert_null(world_run(w, 1));
        w->now_ns += 1;
        assert_true(world_run(w, 1)->load == 9);
        world_end(w, 1);
        assert_true(world_run(w, 1)->load == 2);
        world_run_last(w, 1);
        world_deliver_all(w);
        world_begin_with(w, 0, 4, 1); /* what tasks take, rank 0 does not know */
        world_wake(w, 0);
        world_deliver_all(w);
        assert_int_equal(world_moves(w, 0, 0, 1), 1);
        assert_non_null(world_run(w, 1));
        world_close(w);
    }
}

/* Goal: while a move takes longer than a task, an idle rank asks when it has been idle for as long
 * as a move takes, in all. The longer that is, the fewer objects go at once. Method: rank 1 runs a
 * task, and gets another before it may ask. Moves cost nothing, less than a task, and more. */
static void test_ferry_counts_what_a_move_costs(void **state)
{
    static const struct {
        uint64_t move_ns;
        int given;
        bool patient;
    } cases[] = {{0, 5, false}, {45000, 3, false}, {60000, 3, true}, {5000000, 1, true}};
    enum { TASK_NS = 100000, GAP_NS = 50000 };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world *w = world_open(&fy_scheduler_ferry, 2, "GRACE_US=0");
        w->move_ns = cases[i].move_ns;
        world_begin_with(w, 0, 24, 1);
        world_add(w, 1, 1);
        world_run_for(w, 1, TASK_NS);
        world_end(w, 0);
        assert_non_null(world_run(w, 0));
        world_deliver_all(w);
        assert_null(world_run(w, 1));
        if (cases[i].patient) {
            const uint64_t since_ns = w->now_ns, move_ns = 2 * cases[i].move_ns;
            assert_int_equal(w->of[1].wake_ns, since_ns + move_ns);
            w->now_ns += GAP_NS;
            world_add(w, 1, 1);
            world_run_for(w, 1, TASK_NS);
            assert_null(world_run(w, 1));
            assert_int_equal(w->of[1].wake_ns, since_ns + TASK_NS + move_ns);
            world_deliver_all(w);
            assert_int_equal(world_moves(w, 0, -1, -1), 0);
            world_wake(w, 1);
        }
        world_deliver_all(w);
        assert_int_equal(world_moves(w, 0, 0, 1), cases[i].given);
        world_close(w);
    }
}

/* Goal: a rank gives one object alone while it does not know how long objects travel, and then
 * those that will arrive before it has begun the others. Requests that come meanwhile wait. Method:
 * a rank has 15 objects of 1 ms, and 5 ranks ask for work. */
static void test_ferry_gives_what_arrives_in_time(void **state)
{
    static const struct {
        uint64_t travel_ns;
        int given, given_later;
    } cases[] = {{0, 4, 0}, {2000000, 4, 0}, {10000000, 1, 1}, {20000000, 0, 0}};
    enum { OBJECTS = 17, TASK_NS = 1000000, ASKERS = 5 };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world *w = world_open(&fy_scheduler_ferry, 1 + ASKERS, "GRACE_US=0");
        w->travel_ns = UINT64_MAX;
        for (int k = 0; k < OBJECTS; k++)
            world_add(w, 0, 1);
        world_run_for(w, 0, TASK_NS);
        assert_non_null(world_run(w, 0));
        for (int rank = 1; rank <= ASKERS; rank++)
            assert_null(world_run(w, rank));
        for (int k = 0; k < ASKERS; k++)
            world_deliver(w);
        assert_int_equal(world_moves(w, 0, 0, 1), 1);
        assert_int_equal(w->sent, ASKERS + 1);
        world_deliver(w);
        const int since = w->sent;
        w->travel_ns = cases[i].travel_ns;
        w->of[0].wake_ns = w->now_ns;
        world_wake(w, 0);
        assert_int_equal(world_moves(w, since, 0, -1), cases[i].given);
        assert_int_equal(w->sent, since + cases[i].given);
        world_deliver_all(w);
        w->of[0].wake_ns = w->now_ns;
        world_wake(w, 0);
        assert_int_equal(world_moves(w, since, 0, -1), cases[i].given + cases[i].given_later);
        world_close(w);
    }
}

/* Goal: a rank whose last task was much shorter than the travel of an object gives one away when
 * the running task has proved longer. Method: an empty task, then one that does not end. */
static void test_ferry_looks_again_at_a_long_task(void **state)
{
    enum { OBJECTS = 9, TRAVEL_NS = 500000, LOOK_NS = 1000000 };
    (void)state;
    world *w = world_open(&fy_scheduler_ferry, 2, "GRACE_US=0");
    w->travel_ns = TRAVEL_NS;
    for (int k = 0; k < OBJECTS; k++)
        world_add(w, 0, 1);
    world_run_for(w, 0, 0);
    const uint64_t since_ns = w->now_ns;
    assert_non_null(world_run(w, 0));
    assert_null(world_run(w, 1));
    world_wake(w, 1); /* a move takes longer than the task did */
    w->now_ns = since_ns;
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, -1, -1), 0);
    assert_int_equal(w->of[0].wake_ns, since_ns + TRAVEL_NS + LOOK_NS);
    world_wake(w, 0);
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 0, 1), 3); /* up to half of those in time */
    world_close(w);
}

/* Goal: the time that a task's processor was taken for other ranks does not count as the task's: a
 * rank with short tasks gives nothing that travels for longer than all of them take. Method: a task
 * of 100 us, of which the helper took nothing or most. */
static void test_ferry_measures_tasks_alone(void **state)
{
    enum { OBJECTS = 9, TRAVEL_NS = 500000, TASK_NS = 100000 };
    (void)state;
    for (int busy = 0; busy < 2; busy++) {
        world *w = world_open(&fy_scheduler_ferry, 2, "GRACE_US=0");
        w->travel_ns = TRAVEL_NS;
        for (int k = 0; k < OBJECTS; k++)
            world_add(w, 0, 1);
        assert_non_null(world_run(w, 0));
        w->now_ns += TASK_NS;
        w->taken_ns += busy ? TASK_NS - 1000 : 0;
        world_end(w, 0);
        assert_non_null(world_run(w, 0));
        assert_null(world_run(w, 1));
        world_deliver_all(w);
        assert_int_equal(world_moves(w, 0, 0, 1), !busy);
        world_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ferry_gives_as_much_as_is_worth_it),
        cmocka_unit_test(test_ferry_gives_nothing_at_first),
        cmocka_unit_test(test_ferry_trades_heavy_for_light),
        cmocka_unit_test(test_ferry_trades_only_what_is_fair),
        cmocka_unit_test(test_ferry_trades_again_after_a_refusal),
        cmocka_unit_test(test_ferry_lets_tasks_settle),
        cmocka_unit_test(test_ferry_counts_what_a_move_costs),
        cmocka_unit_test(test_ferry_gives_what_arrives_in_time),
        cmocka_unit_test(test_ferry_looks_again_at_a_long_task),
        cmocka_unit_test(test_ferry_measures_tasks_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
