/* Goal: each tracked operation has exactly one end: completed, timed out or failed, with a receipt
 * that says what happened. Method: scene.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "core/op.h"
#include "core/wheel.h"
#include "scene.h"

static void test_event_completion_has_a_full_receipt(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    witness w = {0};
    ferry_track track = track_to(&w);
    char data[100] = "x";
    const ferry_message m = {
        .handler = s.handler, .tag = 7, .data = data, .size_bytes = sizeof(data)};
    assert_int_equal(ferry_request_send(s.job.f[0], 1, &m, &track), 0);
    assert_int_equal(ferry_request_send(s.job.f[0], 2, &m, &track), 0);
    assert_int_equal(ends(&w), 0);
    job_settle(&s.job);
    assert_int_equal(w.counts[FERRY_SUBMITTED], 2);
    assert_int_equal(w.counts[FERRY_COMPLETED], 2);
    assert_int_equal(ends(&w), 2);
    assert_int_equal(w.last.tag, 7);
    assert_int_equal(w.last.size_bytes, 100);
    assert_int_equal(w.last.local_rank, 0);
    assert_ptr_equal(w.last.local_address, data);
    assert_int_equal(w.last.handler.index, s.handler.index);
    job_close(&s.job);
}

static void test_event_arrival_completes_before_the_handler(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    witness w = {0};
    ferry_track track = track_to(&w);
    track.arrival = true;
    const ferry_message m = {.handler = s.handler};
    assert_int_equal(ferry_request_send(s.job.f[0], 1, &m, &track), 0);
    job_settle(&s.job);
    assert_int_equal(w.counts[FERRY_COMPLETED], 1);
    assert_int_equal(s.handled[1], 1);
    job_close(&s.job);
}

static void test_event_timeout_silences_a_late_end(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    witness w = {0};
    ferry_track track = track_to(&w);
    track.timed_out = see;
    track.timed_out_arg = &w;
    track.timeout_ns = 1000 * 1000;
    const ferry_message m = {.handler = s.handler};
    assert_int_equal(ferry_request_send(s.job.f[0], 1, &m, &track), 0);
    while (ends(&w) == 0)
        fy_progress(s.job.f[0], true);
    assert_int_equal(w.counts[FERRY_TIMED_OUT], 1);
    assert_int_equal(w.last.error, FERRY_ETIMEDOUT);
    assert_non_null(strstr(w.reason, "1.000 ms"));
    job_settle(&s.job);
    assert_int_equal(s.handled[1], 1); /* it took effect all the same */
    assert_int_equal(ends(&w), 1);
    job_close(&s.job);
}

/* Goal: each call that takes an operation names itself when there is none. */
static void test_event_calls_name_themselves(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    ferry *f = s.job.f[0];
    ferry_op op = {.word = 77};
    assert_int_equal(ferry_op_wait(f, &op), FERRY_EINVAL);
    assert_string_equal(ferry_error_message(f),
                        "op_wait: 0x4d names no operation that is still open");
    assert_int_equal(ferry_op_test(f, &op), FERRY_EINVAL);
    assert_string_equal(ferry_error_message(f),
                        "op_test: 0x4d names no operation that is still open");
    assert_int_equal(ferry_op_wait(f, NULL), FERRY_EINVAL);
    assert_string_equal(ferry_error_message(f), "op_wait: no operation given");
    assert_int_equal(ferry_op_cancel(f, NULL), FERRY_EINVAL);
    assert_string_equal(ferry_error_message(f), "op_cancel: no operation given");
    job_settle(&s.job);
    job_close(&s.job);
}

/* Names are used again thousands of times while one late end is on its way. */
static void test_event_late_end_meets_no_later_operation(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    witness late = {0}, w = {0};
    ferry_op op;
    ferry_track track = track_to(&late);
    track.op = &op;
    const ferry_message m = {.handler = s.handler};
    assert_int_equal(ferry_request_send(s.job.f[0], 1, &m, &track), 0);
    assert_int_equal(ferry_op_cancel(s.job.f[0], &op), 0);
    ferry_track other = track_to(&w);
    for (int i = 0; i < 5000; i++) {
        assert_int_equal(ferry_request_send(s.job.f[0], 2, &m, &other), 0);
        for (int j = 0; j < 3; j++) {
            fy_progress(s.job.f[0], true);
            fy_progress(s.job.f[2], true);
        }
    }
    assert_int_equal(w.counts[FERRY_COMPLETED], 5000);
    assert_int_equal(ferry_request_send(s.job.f[0], 2, &m, &other), 0);
    for (int i = 0; i < 3; i++) {
        fy_progress(s.job.f[1], true);
        fy_progress(s.job.f[0], true);
    }
    assert_int_equal(w.counts[FERRY_COMPLETED], 5000);
    assert_int_equal(late.counts[FERRY_FAILED], 1);
    assert_int_equal(ends(&late), 1);
    job_settle(&s.job);
    job_close(&s.job);
}

/* Goal: a timeout without `timed_out` is told by `failed` or by the handle. */
static void test_event_timeout_needs_no_handler_of_its_own(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    witness w = {0};
    ferry_track track = track_to(&w);
    track.timed_out = NULL;
    track.timeout_ns = 1000;
    const ferry_message m = {.handler = s.handler};
    assert_int_equal(ferry_request_send(s.job.f[0], 1, &m, &track), 0);
    while (ends(&w) == 0)
        fy_progress(s.job.f[0], true);
    job_settle(&s.job);
    assert_int_equal(ends(&w), 1);
    assert_int_equal(w.counts[FERRY_FAILED], 1);
    track.timeout_ns = 0; /* none */
    assert_int_equal(ferry_request_send(s.job.f[0], 1, &m, &track), 0);
    job_settle(&s.job);
    assert_int_equal(w.counts[FERRY_COMPLETED], 1);
    ferry_op op;
    const ferry_track waited = {.size = sizeof(waited), .op = &op, .timeout_ns = 1000};
    assert_int_equal(ferry_request_send(s.job.f[0], 1, &m, &waited), 0);
    assert_int_equal(ferry_op_wait(s.job.f[0], &op), FERRY_ETIMEDOUT);
    job_settle(&s.job);
    job_close(&s.job);
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f;
    int *seen = arg;
    *seen = *seen * 10 + event->rank + (event->died ? 1 : 5);
}

static void test_event_death_fails_what_names_the_dead(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    witness dead = {0}, alive = {0}, receive = {0};
    int seen = 0;
    ferry_track to_dead = track_to(&dead), to_alive = track_to(&alive), in = track_to(&receive);
    const ferry_message m = {.handler = s.handler};
    assert_int_equal(ferry_peer_watch(s.job.f[0], on_peer, &seen), 0);
    assert_int_equal(ferry_request_send(s.job.f[0], 1, &m, &to_dead), 0);
    assert_int_equal(ferry_request_send(s.job.f[0], 2, &m, &to_alive), 0);
    char buffer[8];
    assert_int_equal(ferry_receive(s.job.f[0], 1, 3, buffer, 8, &in), 0);
    kill_rank(&s, 1);
    assert_int_equal(seen, 2);
    assert_true(ferry_peer_is_gone(s.job.f[0], 1));
    assert_int_equal(dead.counts[FERRY_FAILED], 1);
    assert_int_equal(dead.last.error, FERRY_EPEER);
    assert_non_null(strstr(dead.reason, "rank 1"));
    assert_int_equal(receive.last.error, FERRY_EPEER);
    assert_int_equal(ends(&dead) + ends(&receive), 2);
    assert_int_equal(alive.counts[FERRY_COMPLETED], 1);
    assert_int_equal(ferry_request_send(s.job.f[0], 1, &m, NULL), FERRY_EPEER);
    job_close(&s.job);
}

static void test_event_close_ends_what_is_left(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    witness w = {0};
    ferry_track track = track_to(&w);
    const ferry_message m = {.handler = s.handler};
    assert_int_equal(ferry_request_send(s.job.f[0], 1, &m, &track), 0);
    fy_ops_cancel(s.job.f[0]);
    assert_int_equal(w.last.error, FERRY_ECANCELED);
    assert_int_equal(ends(&w), 1);
    job_close(&s.job);
}

static void test_event_wheel_is_never_early_and_in_order(void **state)
{
    (void)state;
    enum { TIMERS = 20000 };
    fy_timer *timers = calloc(TIMERS, sizeof(*timers));
    uint64_t *due = calloc(TIMERS, sizeof(*due));
    uint64_t random = 5, now = UINT64_C(123456789012345), last = 0;
    fy_wheel *wheel = fy_wheel_create(now);
    int left = TIMERS;
    for (int i = 0; i < TIMERS; i++) {
        due[i] = now + next_random(&random) % (UINT64_C(1) << (i % 44 + 1));
        fy_wheel_add(wheel, &timers[i], due[i]);
    }
    for (int i = 0; i < TIMERS; i += 3, left--)
        fy_wheel_remove(wheel, &timers[i]);
    while (left > 0) {
        uint64_t next = fy_wheel_next_ns(wheel);
        assert_true(next != UINT64_MAX);
        now = next > now ? next : now;
        for (fy_timer *timer; (timer = fy_wheel_take(wheel, now)) != NULL; left--) {
            uint64_t at = due[timer - timers];
            assert_true(at <= now && at + 100000 > last);
            last = at > last ? at : last;
        }
    }
    assert_true(fy_wheel_next_ns(wheel) == UINT64_MAX);
    free(wheel);
    free(timers);
    free(due);
}

/* Runs on the background thread. */
static void tick(ferry *f, int source, const ferry_message *message)
{
    (void)source, (void)message;
    atomic_fetch_add((_Atomic int *)ferry_user_data(f), 1);
}

/* A rank computes without polling; its background thread answers. */
static void compute_or_ask(ferry *f, void *arg)
{
    (void)arg;
    _Atomic int handled = 0; /* seq_cst throughout */
    ferry_handler handler;
    ferry_user_data_set(f, &handled);
    CHECK(ferry_handler_register(f, "tick", tick, &handler) == 0);
    CHECK(ferry_barrier(f) == 0);
    if (ferry_rank(f) == 1) {
        CHECK(ferry_background_begin(f) == 0);
        while (atomic_load(&handled) < 10)
            sleep_ms(1);
        CHECK(ferry_background_end(f) == 0);
        CHECK(ferry_background_end(f) == FERRY_ESTATE);
        CHECK(handled == 10);
    } else {
        const ferry_message m = {.handler = handler};
        for (int i = 0; i < 10; i++)
            CHECK(ferry_request_sync(f, 1, &m) == 0);
    }
    CHECK(ferry_barrier(f) == 0);
}

static void test_event_background_answers_while_the_program_computes(void **state)
{
    (void)state;
    run_ranks(2, 0, 0, compute_or_ask, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event_calls_name_themselves),
        cmocka_unit_test(test_event_completion_has_a_full_receipt),
        cmocka_unit_test(test_event_arrival_completes_before_the_handler),
        cmocka_unit_test(test_event_timeout_silences_a_late_end),
        cmocka_unit_test(test_event_late_end_meets_no_later_operation),
        cmocka_unit_test(test_event_timeout_needs_no_handler_of_its_own),
        cmocka_unit_test(test_event_death_fails_what_names_the_dead),
        cmocka_unit_test(test_event_close_ends_what_is_left),
        cmocka_unit_test(test_event_wheel_is_never_early_and_in_order),
        cmocka_unit_test(test_event_background_answers_while_the_program_computes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
