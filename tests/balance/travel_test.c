/* A rank learns how long objects travel, from answers that come when the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <ferry/ferry.h>

#include "balance/balance.h"
#include "balance/schedulers/schedulers.h"

enum { TASK_NS = 1000 * 1000, SLACK_NS = 100 * 1000 * 1000 };

/* The only rank of a job, as if it had a helper and no other rank shared its memory. */
static ferry_scheduling *begin(ferry **f)
{
    const ferry_options options = {.size = sizeof options, .heap_bytes = 8 << 20};
    assert_int_equal(ferry_open(&options, f), 0);
    ferry_scheduling *s = fy_scheduling_of(*f);
    s->started = true;
    s->objects->info.shares_memory = false;
    s->travel.known = false;
    return s;
}

static void end(ferry *f)
{
    fy_scheduling_of(f)->started = false;
    assert_int_equal(ferry_close(f), 0);
}

/* An answer comes: `count` objects have arrived, `passed_ns` after the last answer. */
static void answer(ferry_scheduling *s, uint64_t count, uint64_t passed_ns)
{
    const fy_frame frame = {.word_count = FY_FRAME_WORDS, .words = {count}};
    s->travel.since_ns = ferry_scheduling_now(s) - passed_ns;
    assert_int_equal(fy_travel_frame(s->f, 0, &frame), FY_TAKEN);
}

/* An object that is too large to travel as fast as words. */
static fy_type type = {.ops = {.flat_bytes = 1 << 20}};
static const fy_record object = {.type = &type};

/* Gives away `count` objects, of which a scheduler with tasks of `task_ns` wants to know. Returns
 * how many are away then. */
static uint32_t give(ferry_scheduling *s, int count, uint64_t task_ns)
{
    uint32_t away;
    for (int i = 0; i < count; i++) {
        (void)fy_scheduling_travel_ns(s, task_ns, &away);
        (void)fy_travel_begin(s, &object);
    }
    return s->travel.away;
}

/* Goal: the time between two arrivals is known after the first answer. It falls fast and rises
 * slowly, since most late answers have waited. The scheduler is called then. */
static void test_answers_tell_the_time(void **state)
{
    enum { FIRST_NS = 800 * 1000 * 1000 };
    (void)state;
    ferry *f;
    uint32_t away;
    ferry_scheduling *s = begin(&f);
    assert_true(fy_scheduling_travel_ns(s, TASK_NS, &away) == UINT64_MAX);
    assert_int_equal(give(s, 5, TASK_NS), 5);
    assert_true(fy_scheduling_travel_ns(s, TASK_NS, &away) == UINT64_MAX);
    assert_int_equal(away, 5);
    s->wake_ns = 0;
    answer(s, 2, FIRST_NS);
    uint64_t each_ns = fy_scheduling_travel_ns(s, TASK_NS, &away);
    assert_int_equal(away, 3);
    assert_in_range(each_ns, FIRST_NS / 2, FIRST_NS / 2 + SLACK_NS);
    assert_int_equal(s->wake_ns, 1);
    answer(s, 1, 0);
    assert_in_range(fy_scheduling_travel_ns(s, TASK_NS, &away), each_ns / 2,
                    each_ns / 2 + SLACK_NS);
    each_ns = s->travel.each_ns;
    answer(s, 1, each_ns + 8 * SLACK_NS);
    assert_in_range(fy_scheduling_travel_ns(s, TASK_NS, &away), each_ns + SLACK_NS,
                    each_ns + 2 * SLACK_NS);
    assert_int_equal(away, 1);
    end(f);
}

/* Goal: answers of no object, or of more than are away, change nothing. An object that was
 * handed over takes no time, and one of which no answer came for a second is away no longer.
 * Without a helper, objects take no time. */
static void test_answers_may_be_wrong_or_lost(void **state)
{
    (void)state;
    ferry *f;
    uint32_t away;
    ferry_scheduling *s = begin(&f);
    s->wake_ns = TASK_NS;
    assert_false(fy_travel_begin(s, &object)); /* the scheduler does not want to know */
    fy_travel_end(s, 1);
    assert_int_equal(s->wake_ns, TASK_NS);
    give(s, 3, TASK_NS);
    answer(s, 0, TASK_NS);
    answer(s, 4, TASK_NS);
    answer(s, UINT64_MAX, TASK_NS);
    assert_true(fy_scheduling_travel_ns(s, TASK_NS, &away) == UINT64_MAX);
    assert_int_equal(away, 3);
    s->wake_ns = 0;
    fy_travel_end(s, 0);
    assert_int_equal(s->wake_ns, 0);
    fy_travel_end(s, 1); /* it was handed over */
    assert_int_equal(s->wake_ns, 1);
    assert_true(fy_scheduling_travel_ns(s, TASK_NS, &away) == 0);
    assert_int_equal(away, 2);
    s->travel.since_ns = 0;
    (void)fy_scheduling_travel_ns(s, TASK_NS, &away);
    assert_int_equal(away, 0);
    fy_travel_end(s, 2);
    assert_int_equal(s->travel.away, 0);
    s->started = false;
    assert_true(fy_scheduling_travel_ns(s, TASK_NS, &away) == 0);
    end(f);
}

/* Goal: small objects are not awaited, and take no time. Objects of other types are awaited. */
static void test_small_objects_are_not_awaited(void **state)
{
    static fy_type types[] = {{.ops = {.flat_bytes = 1024}}, {.ops = {.flat_bytes = 1025}}};
    (void)state;
    for (int large = 0; large < 2; large++) {
        ferry *f;
        uint32_t away;
        ferry_scheduling *s = begin(&f);
        const fy_record record = {.type = &types[large]};
        (void)fy_scheduling_travel_ns(s, TASK_NS, &away);
        assert_int_equal(fy_travel_begin(s, &record), large);
        assert_true(fy_scheduling_travel_ns(s, TASK_NS, &away) == (large ? UINT64_MAX : 0));
        assert_int_equal(away, large);
        end(f);
    }
}

/* Goal: while objects arrive in a small part of a task, few are answered. */
static void test_answers_are_few_for_long_tasks(void **state)
{
    enum { GIVEN = 90, LONG = 100 };
    (void)state;
    ferry *f;
    ferry_scheduling *s = begin(&f);
    give(s, 1, TASK_NS);
    answer(s, 1, TASK_NS / 2);
    int answered = 0;
    for (int i = 0; i < GIVEN; i++) {
        s->travel.asked = false; /* all have been sent */
        uint32_t before = s->travel.away;
        answered += give(s, 1, LONG * s->travel.each_ns) != before;
    }
    assert_in_range(answered, GIVEN / 10, GIVEN / 8);
    s->travel.asked = false;
    uint32_t before = s->travel.away;
    assert_int_equal(give(s, 1, s->travel.each_ns), before + 1);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_tell_the_time),
        cmocka_unit_test(test_answers_may_be_wrong_or_lost),
        cmocka_unit_test(test_small_objects_are_not_awaited),
        cmocka_unit_test(test_answers_are_few_for_long_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
