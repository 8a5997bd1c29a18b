/* Goal: a trace covers its run within its room, and accounts add up. Method: stretches made by
 * hand, then a rank that works, runs handlers and sleeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ranks.h"

/* Tasks are those of handler 3, and have the processor for half of the time. */
static void add(fy_trace *trace, uint64_t start_ns, uint64_t end_ns, ferry_activity activity)
{
    bool task = activity == FERRY_TASK;
    const ferry_interval stretch = {.start_ns = start_ns,
                                    .activity = activity,
                                    .handler = task ? 3 : 0,
                                    .cpu_ns = task ? (end_ns - start_ns) / 2 : 0};
    fy_trace_add(trace, &stretch, end_ns);
}

/* Goal: intervals are in order, differ from their neighbours, and start where the run started.
 * Method: random stretches, far more than there is room for. */
static void test_trace_fits_its_room(void **state)
{
    (void)state;
    ferry_interval room[32];
    fy_trace trace = {.intervals = room, .capacity = 31, .on = true, .bucket_start_ns = 1000};
    uint64_t random = 5, now = 1000;
    for (int i = 0; i < 5000; i++) {
        uint64_t passed = 1 + next_random(&random) % 3000;
        add(&trace, now, now + passed, (ferry_activity)(next_random(&random) % 4));
        now += passed;
        assert_true(trace.count <= 31);
    }
    assert_true(trace.count > 1);
    assert_int_equal(room[0].start_ns, 1000);
    for (size_t i = 1; i < trace.count; i++) {
        assert_true(room[i].start_ns > room[i - 1].start_ns);
        assert_int_not_equal(room[i].activity, room[i - 1].activity);
    }
    assert_true(room[trace.count - 1].start_ns <= now);
}

/* Goal: stretches shorter than the resolution go to the longer. */
static void test_trace_merges_short_stretches(void **state)
{
    (void)state;
    ferry_interval room[32];
    fy_trace trace = {.intervals = room, .capacity = 31, .resolution_ns = 100, .on = true};
    add(&trace, 0, 1000, FERRY_TASK);
    add(&trace, 1000, 1010, FERRY_RUNTIME);
    add(&trace, 1010, 2000, FERRY_TASK);
    for (uint64_t i = 0; i < 10; i++)
        add(&trace, 2000 + i * 20, 2020 + i * 20, i % 3 == 0 ? FERRY_TASK : FERRY_IDLE);
    add(&trace, 2200, 3000, FERRY_MAIN);
    for (uint64_t i = 0; i < 10; i++)
        add(&trace, 3000 + i * 20, 3020 + i * 20, i % 3 == 0 ? FERRY_IDLE : FERRY_TASK);
    add(&trace, 3200, 4000, FERRY_MAIN);
    assert_int_equal(trace.count, 5);
    assert_int_equal(room[0].activity, FERRY_TASK);
    assert_int_equal(room[0].handler, 3);
    assert_int_equal(room[0].cpu_ns, 995); /* half of each stretch of a task */
    assert_int_equal(room[1].activity, FERRY_IDLE);
    assert_int_equal(room[1].start_ns, 2000);
    assert_int_equal(room[2].activity, FERRY_MAIN);
    assert_int_equal(room[3].activity, FERRY_TASK);
    assert_int_equal(room[3].cpu_ns, 60); /* half of 6 stretches */
    assert_int_equal(room[4].activity, FERRY_MAIN);
}

static void spin(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    uint64_t end = ferry_now(f) + message->words[0];
    while (ferry_now(f) < end)
        continue;
}

/* Goal: the account names handlers and sleep. Method: 5 ms each, measured from outside. */
static void test_account_adds_up(void **state)
{
    (void)state;
    test_job job;
    job_open(&job, 1, 0, 0);
    ferry *f = job.f[0];
    ferry_handler handler;
    const ferry_interval *intervals;
    size_t count;
    assert_int_equal(ferry_trace_stop(f, &intervals, &count), FERRY_ESTATE);
    assert_int_equal(ferry_trace_start(f, 1, 0), FERRY_EINVAL);
    assert_int_equal(ferry_trace_start(f, 1000, 1000), 0);
    uint64_t start = ferry_now(f);
    assert_int_equal(ferry_handler_register(f, "spin", spin, &handler), 0);
    const ferry_message m = {.handler = handler, .word_count = 1, .words = {5000000}};
    assert_int_equal(ferry_request_send(f, 0, &m, NULL), 0);
    assert_int_equal(ferry_poll(f), 1);
    ferry_stats stats = FERRY_STATS_DEFAULTS;
    do { /* who is kept from the processor until a wait is over has not slept in it */
        assert_int_equal(ferry_wait(f, 5000000), 0);
        ferry_stats_get(f, &stats);
    } while (stats.idle_ns < 4000000);
    uint64_t passed = ferry_now(f) - start;
    assert_int_equal(ferry_trace_stop(f, &intervals, &count), 0);
    ferry_stats_get(f, &stats);
    assert_true(stats.task_ns >= 5000000);
    assert_true(stats.task_ns + stats.idle_ns + stats.runtime_ns <= passed);
    assert_int_equal(stats.requests_sent, 1);
    assert_int_equal(stats.requests_handled, 1);
    bool task = false;
    for (size_t i = 0; i + 1 < count; i++)
        task = task || (intervals[i].activity == FERRY_TASK &&
                        intervals[i + 1].start_ns - intervals[i].start_ns >= 5000000);
    assert_true(task);
    assert_int_equal(intervals[count - 1].activity, FERRY_MAIN);
    job_close(&job);
}

static void last(ferry *f, ferry_object object, void *data, int source,
                 const ferry_message *message)
{
    (void)data;
    spin(f, source, message);
    assert_int_equal(ferry_object_destroy(f, object), 0);
}

static void linger(ferry *f, void *data)
{
    const ferry_message m = {.words = {2000000}};
    (void)data;
    spin(f, 0, &m);
}

/* Goal: what the runtime does between tasks is counted from the first of them on, also in the call
 * that began untimed. Method: objects whose destruction takes 2 ms, after their only task. */
static void test_account_begins_with_the_first_task(void **state)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "slow", .flat_bytes = 1, .destroy = linger};
    (void)state;
    test_job job;
    job_open(&job, 1, 0, 0);
    ferry *f = job.f[0];
    ferry_object_type type;
    ferry_handler handler;
    ferry_object object;
    char data[2];
    assert_int_equal(ferry_object_type_register(f, &ops, &type), 0);
    assert_int_equal(ferry_object_handler_register(f, "last", last, &handler), 0);
    const ferry_message m = {.handler = handler, .word_count = 1, .words = {1000000}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ferry_object_create(f, type, &data[i], &object), 0);
        assert_int_equal(ferry_balance_add(f, object, NULL), 0);
        assert_int_equal(ferry_object_send(f, object, &m, NULL), 0);
    }
    assert_int_equal(ferry_quiesce(f), 0);
    ferry_stats stats = FERRY_STATS_DEFAULTS;
    ferry_stats_get(f, &stats);
    assert_int_equal(stats.tasks, 2);
    assert_true(stats.runtime_ns >= 4000000);
    job_close(&job);
}

/* Goal: the report says what it counts, and nothing is counted unasked. */
static void test_profile_is_written_on_demand(void **state)
{
    (void)state;
    test_job job;
    job_open(&job, 1, 0, 0);
    assert_int_equal(ferry_profile_write(job.f[0], NULL), FERRY_ESTATE);
    job_close(&job);
    setenv("FERRY_PROFILE", "1", 1);
    job_open(&job, 1, 0, 0);
    unsetenv("FERRY_PROFILE");
    assert_int_equal(ferry_profile_write(job.f[0], "/dev/null"), 0);
    assert_int_equal(ferry_profile_write(job.f[0], "/none/report"), FERRY_ESYSTEM);
    job_close(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_fits_its_room),
        cmocka_unit_test(test_trace_merges_short_stretches),
        cmocka_unit_test(test_account_adds_up),
        cmocka_unit_test(test_account_begins_with_the_first_task),
        cmocka_unit_test(test_profile_is_written_on_demand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
