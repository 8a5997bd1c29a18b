/* The decisions of the default scheduler in steps (docs/balancing.md), one rule at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "balance/schedulers/schedulers.h"
#include "world.h"

/* The first `count` objects of the world run on `rank` in each of three steps. Returns the number
 * of mails before the last step. */
static int run_steps(world *w, int rank, int count, uint64_t task_ns)
{
    int since = 0;
    for (int step = 0; step < 3; step++) {
        since = w->sent;
        for (int i = 0; i < count; i++)
            if (step == 0)
                (void)world_add(w, rank, 1);
            else
                world_again(w, &w->things[i]);
        w->now_ns += task_ns; /* the rank has settled */
        for (int i = 0; i < count; i++)
            world_run_for(w, rank, task_ns);
    }
    return since;
}

/* Goal: a rank that has just got work gives it before GRACE_US have passed if another rank asks in
 * steps, though it does not know yet how long tasks take. Method: rank 2 runs steps and then has
 * nothing; rank 37, of another coordinator, has begun its first task. */
static void test_ferry_gives_early_in_steps(void **state)
{
    enum { OBJECTS = 8, TASK_NS = 50000 };
    (void)state;
    world *w = world_open(&fy_scheduler_ferry, 40, "GRACE_US=2000");
    (void)run_steps(w, 2, OBJECTS, TASK_NS);
    world_begin_with(w, 37, 4, 1);
    const uint64_t start_ns = w->now_ns;
    assert_null(world_run(w, 2));
    world_wake(w, 2); /* asks, and all ranks learn that there are steps */
    world_deliver_all(w);
    world_wake(w, 2); /* asks again */
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 37, 2), 1);
    assert_int_equal(world_moves(w, 0, -1, -1), 1);
    assert_true(w->now_ns < start_ns + 2000000);
    world_run_for(w, 2, TASK_NS);
    assert_null(world_run(w, 2));
    const int since = w->sent;
    world_wake(w, 2);
    world_deliver(w);
    assert_true(w->sent < since + 4); /* ranks are told once */
    world_close(w);
}

/* Whether all words since mail number `since` are quiet, or none is. */
static bool are_quiet(const world *w, int since, bool quiet)
{
    for (const mail *m = &w->mail[since]; m < &w->mail[w->sent]; m++)
        if (m->quiet != quiet)
            return false;
    return true;
}

/* Goal: in steps of tiny tasks a rank tells only of loads that differ by a factor of 2, and wakes
 * no helper for it. It asks when it has been idle for 10 us in all, and that wakes one. With tasks
 * of 50 us it tells of changes by a quarter, wakes a helper, and asks after 4 us. Method: a rank
 * with 16 objects runs all of them in each of some steps, and is then idle twice. */
static void test_ferry_is_patient_with_tiny_tasks(void **state)
{
    static const struct {
        uint64_t task_ns, patience_ns;
        int reports;
    } cases[] = {{2000, 10000, 7}, {50000, 4000, 16}};
    enum { OBJECTS = 16, GAP_NS = 3000 };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world *w = world_open(&fy_scheduler_ferry, 2, "GRACE_US=0");
        bool tiny = i == 0;
        int since = run_steps(w, 1, OBJECTS, cases[i].task_ns);
        assert_int_equal(w->sent - since, cases[i].reports);
        assert_true(are_quiet(w, since, tiny));
        since = w->sent;
        const uint64_t idle_ns = w->now_ns;
        assert_null(world_run(w, 1));
        assert_int_equal(w->of[1].wake_ns, idle_ns + cases[i].patience_ns);
        w->now_ns += GAP_NS;
        world_again(w, &w->things[0]);
        world_run_for(w, 1, cases[i].task_ns);
        assert_null(world_run(w, 1));
        assert_int_equal(w->of[1].wake_ns, w->now_ns + cases[i].patience_ns - (tiny ? GAP_NS : 0));
        assert_true(are_quiet(w, since, tiny)); /* reports */
        since = w->sent;
        world_wake(w, 1);
        assert_int_equal(w->sent, since + 1);
        assert_true(are_quiet(w, since, false));
        world_close(w);
    }
}

/* Goal: in steps a rank tells its coordinator no more than the network bears, but always how the
 * load changed last. It also asks no sooner. Method: words take 50 us to send. A rank with 16
 * objects runs all of them in each of some steps, and is then idle. */
static void test_ferry_is_silent_where_words_cost(void **state)
{
    enum { OBJECTS = 16, TASK_NS = 50000, WORD_NS = 50000, SILENCE_NS = 6 * WORD_NS };
    (void)state;
    world *w = world_open(&fy_scheduler_ferry, 2, "GRACE_US=0");
    w->word_ns = WORD_NS;
    int since = run_steps(w, 1, OBJECTS, TASK_NS);
    assert_in_range(w->sent - since, 1, OBJECTS * TASK_NS / SILENCE_NS + 1);
    assert_int_not_equal((uint32_t)w->mail[w->sent - 1].words[1], 0);
    since = w->sent;
    const uint64_t idle_ns = w->now_ns;
    assert_null(world_run(w, 1));
    assert_int_equal(w->sent, since);
    assert_in_range(w->of[1].wake_ns, idle_ns + 1, idle_ns + SILENCE_NS - 1);
    world_wake(w, 1);
    assert_int_equal(w->sent, since + 1);
    assert_int_equal((uint32_t)w->mail[since].words[1], 0);
    assert_int_equal((int32_t)(w->mail[since].words[0] >> 32), -1); /* it asks for nothing */
    assert_int_equal(w->of[1].wake_ns, idle_ns + SILENCE_NS);
    world_wake(w, 1);
    assert_int_equal((int32_t)(w->mail[since + 1].words[0] >> 32), 1);
    world_close(w);
}

/* Goal: when steps have ended, a rank that stays idle is given work as soon as there is some,
 * though its requests were dropped at first. If it gets work of its own, it withdraws the request.
 * Method: steps on rank 1, then nothing for 20 ms, then work on rank 0 or on rank 1. */
static void test_ferry_keeps_requests_after_steps(void **state)
{
    enum { OBJECTS = 16, TASK_NS = 50000, IDLE_NS = 20000000 };
    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        world *w = world_open(&fy_scheduler_ferry, 2, "GRACE_US=0");
        (void)run_steps(w, 1, OBJECTS, TASK_NS);
        const uint64_t idle_ns = w->now_ns;
        assert_null(world_run(w, 1));
        for (int requests = 0; w->now_ns < idle_ns + IDLE_NS; requests++) {
            assert_true(requests < 10);
            world_wake(w, 1);
            world_deliver_all(w);
        }
        const int since = w->sent;
        if (rank == 0)
            world_begin_with(w, 0, 3, 1);
        else
            world_again(w, &w->things[0]);
        world_deliver_all(w);
        assert_int_equal(world_moves(w, since, 0, 1), rank == 0);
        if (rank == 1) {
            world_begin_with(w, 0, 3, 1);
            assert_int_equal(world_moves(w, since, 0, 1), 0);
        }
        world_close(w);
    }
}

/* Goal: steps have ended when a task takes long. Objects that came during it count then, though
 * their loads are small beside that of the task. Method: steps on rank 1, then a heavy task that
 * does not end, and light ones; rank 0 has asked before. */
static void test_ferry_ends_steps_at_a_long_task(void **state)
{
    enum { OBJECTS = 3, TASK_NS = 50000, LONG_NS = 8000000 };
    (void)state;
    world *w = world_open(&fy_scheduler_ferry, 2, "GRACE_US=0");
    (void)run_steps(w, 1, OBJECTS, TASK_NS);
    assert_null(world_run(w, 1));
    assert_null(world_run(w, 0));
    world_deliver_all(w);
    world_add(w, 1, 100);
    const uint64_t since_ns = w->now_ns;
    assert_non_null(world_run(w, 1));
    for (int k = 0; k < OBJECTS; k++)
        world_again(w, &w->things[k]);
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, -1, -1), 0);
    assert_int_equal(w->of[1].wake_ns, since_ns + LONG_NS);
    world_wake(w, 1);
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 1, 0), 1);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ferry_gives_early_in_steps),
        cmocka_unit_test(test_ferry_is_patient_with_tiny_tasks),
        cmocka_unit_test(test_ferry_is_silent_where_words_cost),
        cmocka_unit_test(test_ferry_keeps_requests_after_steps),
        cmocka_unit_test(test_ferry_ends_steps_at_a_long_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
