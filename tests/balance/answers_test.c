/* The decisions of schedulers when answers are lost or late, and when the scheduler waits for the
 * end of a task, since nothing preempts it. policies_test.c and coordinators_test.c test those
 * where all ranks answer immediately. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "balance/schedulers/bundle/bundle.h"
#include "balance/schedulers/schedulers.h"
#include "world.h"

static world *open_patient(const ferry_scheduler *policy, int ranks, const char *parameters)
{
    world *w = world_open(policy, ranks, parameters);
    w->preempts = false;
    return w;
}

static void lose_all(world *w)
{
    w->delivered = w->sent;
}

static void hear(world *w, int rank, int source, uint64_t what, uint64_t a, uint64_t b)
{
    const uint64_t words[FERRY_SCHEDULER_WORDS] = {what, a, b};
    w->policy->message(&w->of[rank], w->of[rank].state, source, words);
}

/* How long `rank` rests from now on. */
static uint64_t pause_of(const world *w, int rank)
{
    assert_true(w->of[rank].wake_ns > w->now_ns);
    return w->of[rank].wake_ns - w->now_ns;
}

/* Goal: a rank that nothing has, asked again and again, asks after pauses that double up to their
 * bound. Method: nobody else has anything. */
static void test_pauses_grow_to_their_bound(void **state)
{
    static const ferry_scheduler *const policies[] = {&fy_scheduler_diffusion,
                                                      &fy_scheduler_stealing};
    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        world *w = world_open(policies[i], 3, "BACKOFF_US=500");
        assert_null(world_run(w, 0));
        world_deliver_all(w);
        for (uint64_t us = 100; us <= 800; us *= 2) {
            assert_int_equal(pause_of(w, 0), 1000 * (us < 500 ? us : 500));
            world_wake(w, 0);
            world_deliver_all(w);
        }
        world_close(w);
    }
    world *w = world_open(&fy_scheduler_gradient, 3, "EXPIRE_US=100");
    assert_null(world_run(w, 0));
    for (uint64_t us = 100; us <= 800; us *= 2) {
        assert_int_equal(pause_of(w, 0), 1000 * us);
        world_wake(w, 0);
    }
    world_close(w);
}

/* Goal: a rank that does not answer within TIMEOUT_US counts as having nothing. Answers to an
 * earlier query are not taken for answers to a later one. Method: rank 2 of 3 answers, rank 1
 * never. */
static void test_diffusion_goes_on_without_answers(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_diffusion, 3, "TIMEOUT_US=700");
    assert_null(world_run(w, 0));
    uint64_t round = world_said(w, QUERY, 0, 1)[1];
    lose_all(w);
    hear(w, 0, 2, LOAD, round, UINT64_C(0x4010000000000000)); /* 4.0 */
    assert_int_equal(world_words(w, 0, ASK, 0, -1), 0);
    assert_int_equal(pause_of(w, 0), 700000);
    world_wake(w, 0);
    assert_int_equal(world_words(w, 0, ASK, 0, 2), 1);
    lose_all(w);
    hear(w, 0, 2, REFUSE, round - 1, 0); /* an old one */
    assert_int_equal(world_words(w, 0, QUERY, 0, -1), 2);
    world_wake(w, 0); /* what was asked for is not coming: all have been asked */
    world_wake(w, 0); /* a pause */
    assert_int_equal(world_words(w, 0, QUERY, 0, -1), 4);
    for (int i = 1; i < 3; i++)
        hear(w, 0, i, LOAD, round, UINT64_C(0x4010000000000000));
    assert_int_equal(world_words(w, 0, ASK, 0, -1), 1);
    for (int i = 1; i < 3; i++)
        hear(w, 0, i, LOAD, round + 1, UINT64_C(0x4010000000000000));
    assert_int_equal(world_words(w, 0, ASK, 0, -1), 2);
    hear(w, 0, 2, REFUSE, round, 0); /* of what it was asked first: the other may still give */
    assert_int_equal(world_words(w, 0, ASK, 0, -1), 2);
    int asked = world_words(w, 0, ASK, 0, 1) != 0 ? 1 : 2;
    hear(w, 0, asked, REFUSE, round + 1, 0);
    assert_int_equal(world_words(w, 0, ASK, 0, -1), 3);
    world_close(w);
}

/* Goal: a rank that has got work itself while it asked takes none from others. */
static void test_diffusion_takes_nothing_that_it_does_not_need(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_diffusion, 2, "");
    world_occupy(w, 1, 3);
    assert_null(world_run(w, 0));
    world_add(w, 0, 1);
    world_add(w, 0, 1);
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, -1, -1), 0);
    world_close(w);
}

/* Goal: without preemption a rank asks when its last task begins, is patient, and takes the first
 * that has anything: the others answer when their tasks have ended. */
static void test_diffusion_does_not_wait_for_tasks(void **state)
{
    (void)state;
    world *w = open_patient(&fy_scheduler_diffusion, 4, "TIMEOUT_US=700");
    world_occupy(w, 1, 3);
    world_occupy(w, 2, 9);
    world_add(w, 0, 1);
    assert_non_null(world_run(w, 0));
    assert_int_equal(world_words(w, 0, QUERY, 0, -1), 3);
    assert_true(pause_of(w, 0) >= UINT64_C(10000000000));
    hear(w, 0, 1, LOAD, world_said(w, QUERY, 0, 1)[1], UINT64_C(0x4010000000000000));
    assert_int_equal(world_words(w, 0, ASK, 0, 1), 1);
    world_close(w);
}

/* Goal: a work request that is not answered within TIMEOUT_US counts as refused. A refusal that
 * comes later does not count as one of a later request. Method: rank 0 of 3 asks both. */
static void test_stealing_goes_on_without_answers(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_stealing, 3, "TIMEOUT_US=700");
    assert_null(world_run(w, 0));
    int first = world_words(w, 0, STEAL, 0, 1) != 0 ? 1 : 2;
    uint64_t request = world_said(w, STEAL, 0, first)[1];
    lose_all(w);
    assert_int_equal(pause_of(w, 0), 700000);
    world_wake(w, 0);
    assert_int_equal(world_words(w, 0, STEAL, 0, 3 - first), 1);
    hear(w, 0, first, STEAL_REFUSE, request, 0);
    assert_int_equal(pause_of(w, 0), 700000); /* it waits for the other still */
    world_close(w);
}

/* Goal: a rank counts what it has promised to take as its own. It goes on to offer what is left. In
 * a long task it asks less and less often. A promise that is not kept is forgotten in time, or when
 * its task has ended. Otherwise other ranks believed that an idle rank has work. */
static void test_sender_keeps_and_forgets_promises(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_diffusion_sender, 2, "TIMEOUT_US=700 PING_US=500");
    assert_null(world_run(w, 1));
    world_add(w, 0, 1);
    world_run(w, 0);
    for (int i = 0; i < 6; i++)
        world_add(w, 0, 4);
    while (world_words(w, 0, TAKE, 1, 0) == 0)
        world_deliver(w);
    lose_all(w); /* with that: nothing comes */
    hear(w, 1, 0, QUERY, 9, 0);
    assert_int_equal(world_said(w, LOAD, 1, 0)[2], UINT64_C(0x4010000000000000));
    w->now_ns += 700001;
    hear(w, 1, 0, QUERY, 10, 0);
    assert_int_equal(world_said(w, LOAD, 1, 0)[2], 0);
    world_close(w);

    w = world_open(&fy_scheduler_diffusion_sender, 2, "TIMEOUT_US=700 PING_US=500");
    hear(w, 1, 0, OFFER, UINT64_C(0x4024000000000000), UINT64_C(0x4010000000000000));
    assert_int_equal(world_said(w, TAKE, 1, 0)[1], 1); /* of 10.0 and 4.0 */
    lose_all(w);
    world_add(w, 1, 1);
    world_run(w, 1);
    w->now_ns += 700001;
    world_end(w, 1);
    hear(w, 1, 0, OFFER, UINT64_C(0x4024000000000000), UINT64_C(0x4010000000000000));
    assert_int_equal(world_said(w, TAKE, 1, 0)[1], 1); /* of 10.0 and 4.0: 8.0 would do too */
    world_close(w);

    w = world_open(&fy_scheduler_diffusion_sender, 2, "PING_US=500");
    world_add(w, 0, 1);
    world_run(w, 0);
    for (int i = 0; i < 6; i++)
        world_add(w, 0, 4);
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 0, 1), 3); /* until it has as much as is left */
    assert_int_equal(pause_of(w, 0), 500000);
    w->now_ns += 160000000;
    world_wake(w, 0);
    world_deliver_all(w);
    assert_int_equal(pause_of(w, 0), 10000000); /* a sixteenth */
    world_close(w);
}

/* Goal: without preemption, where an answer takes a task, the least loaded gets an object without
 * an offer. */
static void test_sender_does_not_wait_for_tasks(void **state)
{
    (void)state;
    world *w = open_patient(&fy_scheduler_diffusion_sender, 3, "NEIGHBOURS=2");
    world_occupy(w, 1, 1);
    world_add(w, 0, 1);
    world_run(w, 0);
    world_add(w, 0, 8);
    world_deliver_all(w);
    assert_int_equal(world_words(w, 0, OFFER, 0, -1), 0);
    assert_int_equal(world_moves(w, 0, 0, 2), 1);
    world_close(w);
}

/* Goal: a promise that was not kept for a long time is forgotten: then the rank asks again. */
static void test_gradient_forgets_promises(void **state)
{
    (void)state;
    world *w = world_open(&fy_scheduler_gradient, 2, "EXPIRE_US=100");
    world_occupy(w, 1, 3);
    assert_null(world_run(w, 0));
    while (world_words(w, 0, GRADIENT_TAKE, 0, 1) == 0)
        world_deliver(w);
    lose_all(w);
    int since = w->sent;
    world_wake(w, 0);
    assert_int_equal(world_words(w, since, STATUS, 0, 1), 0);
    w->now_ns += 50 * 100 * 1000 + 1;
    world_wake(w, 0);
    assert_int_equal(world_words(w, since, STATUS, 0, 1), 1);
    world_close(w);
}

/* Goal: without preemption a rank asks for what is best while its last task runs. */
static void test_multilist_asks_ahead(void **state)
{
    (void)state;
    for (int patient = 0; patient < 2; patient++) {
        world *w = world_open(&fy_scheduler_multilist, 2, "");
        w->preempts = !patient;
        world_occupy(w, 0, 1);
        world_occupy(w, 1, 3);
        world_deliver_all(w);
        assert_int_equal(world_words(w, 0, HEAD_ASK, 0, 1), patient);
        world_close(w);
    }
}

/* Goal: without preemption a master with CROWD workers runs nothing while they ask, and a task when
 * none has asked for IDLE_US; one with fewer runs its own. */
static void test_master_leaves_tasks_to_its_workers(void **state)
{
    (void)state;
    world *w = open_patient(&fy_scheduler_master, 4, "");
    world_add(w, 0, 1);
    assert_non_null(world_run(w, 0));
    world_close(w);

    w = open_patient(&fy_scheduler_master, 5, "IDLE_US=3000");
    for (int i = 0; i < 3; i++)
        world_add(w, 0, 1);
    assert_null(world_run(w, 0));
    assert_int_equal(pause_of(w, 0), 3000000);
    w->now_ns += 1000000;
    assert_null(world_run(w, 1));
    world_deliver_all(w);
    assert_int_equal(world_moves(w, 0, 0, 1), 1);
    assert_null(world_run(w, 0));
    assert_int_equal(pause_of(w, 0), 3000000);
    w->now_ns += 3000000;
    assert_non_null(world_run(w, 0));
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pauses_grow_to_their_bound),
        cmocka_unit_test(test_diffusion_goes_on_without_answers),
        cmocka_unit_test(test_diffusion_takes_nothing_that_it_does_not_need),
        cmocka_unit_test(test_diffusion_does_not_wait_for_tasks),
        cmocka_unit_test(test_stealing_goes_on_without_answers),
        cmocka_unit_test(test_sender_keeps_and_forgets_promises),
        cmocka_unit_test(test_sender_does_not_wait_for_tasks),
        cmocka_unit_test(test_gradient_forgets_promises),
        cmocka_unit_test(test_multilist_asks_ahead),
        cmocka_unit_test(test_master_leaves_tasks_to_its_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
