/* Goal: each tracked operation has exactly one end: completed, timed out or failed, with a receipt
 * that says what happened; two-sided messages meet by source and tag. Method: ranks of one process
 * that the test drives step by step; a peer's death is marked in the segment as the launcher does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/op.h"
#include "core/wheel.h"
#include "port/shm/layout.h"
#include "ranks.h"

/* The callbacks count here what they were told. */
typedef struct witness {
    int counts[4];
    ferry_receipt last;
    char reason[200];
} witness;

static void see(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    witness *w = arg;
    w->counts[receipt->event]++;
    w->last = *receipt;
    snprintf(w->reason, sizeof(w->reason), "%s", receipt->reason);
}

static ferry_track track_to(witness *w)
{
    return (ferry_track){.size = sizeof(ferry_track),
                         .submitted = see,
                         .submitted_arg = w,
                         .completed = see,
                         .completed_arg = w,
                         .failed = see,
                         .failed_arg = w};
}

static int ends(const witness *w)
{
    return w->counts[FERRY_COMPLETED] + w->counts[FERRY_TIMED_OUT] + w->counts[FERRY_FAILED];
}

static void count(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    (void)message;
    ++*(int *)ferry_user_data(f);
}

typedef struct scene {
    test_job job;
    ferry_handler handler;
    int handled[3];
} scene;

static void scene_open(scene *s)
{
    memset(s, 0, sizeof(*s));
    job_open(&s->job, 3, 0, 0);
    for (int i = 0; i < 3; i++) {
        ferry_user_data_set(s->job.f[i], &s->handled[i]);
        assert_int_equal(ferry_handler_register(s->job.f[i], "count", count, &s->handler), 0);
    }
    job_settle(&s->job);
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Marks a rank dead, and lets the others see it. */
static void kill_rank(scene *s, uint32_t rank)
{
    fy_controls_mark(s->job.segment->base, 3, rank, SHM_DEAD);
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < 3; i++)
            if (i != (int)rank)
                more |= fy_progress(s->job.f[i], true) > 0 ||
                        !ferry_peer_is_gone(s->job.f[i], (int)rank);
    }
}

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

static void test_event_messages_meet_by_source_and_tag(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    ferry *a = s.job.f[0], *b = s.job.f[1], *c = s.job.f[2];
    witness w[4] = {0};
    ferry_track in[4];
    int got[4] = {0}, one = 1, two = 2, three = 3;
    for (int i = 0; i < 4; i++)
        in[i] = track_to(&w[i]);
    /* Posted before: the oldest that fits wins, wildcard or not. */
    assert_int_equal(ferry_receive(c, FERRY_ANY_RANK, 9, &got[0], 4, &in[0]), 0);
    assert_int_equal(ferry_receive(c, 0, 9, &got[1], 4, &in[1]), 0);
    /* No data are that long, and a copy of them would have no size. */
    assert_int_equal(ferry_send(a, 2, 9, &one, SIZE_MAX, NULL), FERRY_EINVAL);
    assert_int_equal(ferry_send(a, 2, 9, &one, (size_t)PTRDIFF_MAX + 1, NULL), FERRY_EINVAL);
    assert_int_equal(ferry_send(a, 2, 9, &one, 4, NULL), 0);
    assert_int_equal(ferry_send(a, 2, 9, &two, 4, NULL), 0);
    job_settle(&s.job);
    assert_int_equal(got[0], 1);
    assert_int_equal(got[1], 2);
    assert_int_equal(w[0].last.rank, 0);
    /* Posted after: the oldest message wins. */
    assert_int_equal(ferry_send(b, 2, 5, &three, 4, NULL), 0);
    assert_int_equal(ferry_send(b, 2, 6, &one, 0, NULL), 0);
    job_settle(&s.job);
    assert_int_equal(ferry_receive(c, 1, FERRY_ANY_TAG, &got[2], 4, &in[2]), 0);
    assert_int_equal(ferry_receive(c, FERRY_ANY_RANK, FERRY_ANY_TAG, NULL, 0, &in[3]), 0);
    assert_int_equal(ends(&w[2]), 0);
    job_settle(&s.job);
    assert_int_equal(got[2], 3);
    assert_int_equal(w[2].last.tag, 5);
    assert_int_equal(w[3].last.tag, 6);
    assert_int_equal(w[3].last.size_bytes, 0);
    job_close(&s.job);
}

/* Goal: a receive from any rank that met nothing names no rank. Method: it times out, is cancelled
 * and is waited for; then one that met a message names its source. */
static void test_event_receive_from_any_rank_names_no_rank(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    ferry *f = s.job.f[0];
    witness w[2] = {0};
    int got = 0, sent = 7;
    ferry_track track = track_to(&w[0]);
    track.timed_out = see;
    track.timed_out_arg = &w[0];
    track.timeout_ns = 1000 * 1000;
    assert_int_equal(ferry_receive(f, FERRY_ANY_RANK, 1, &got, 4, &track), 0);
    while (ends(&w[0]) == 0)
        fy_progress(f, true);
    assert_int_equal(w[0].last.rank, FERRY_ANY_RANK);
    assert_string_equal(w[0].reason, "no end from any rank within 1.000 ms");
    ferry_op op;
    const ferry_track waited = {.size = sizeof(waited), .op = &op, .timeout_ns = 1000};
    assert_int_equal(ferry_receive(f, FERRY_ANY_RANK, 1, &got, 4, &waited), 0);
    assert_int_equal(ferry_op_wait(f, &op), FERRY_ETIMEDOUT);
    assert_non_null(strstr(ferry_error_message(f), "operation with any rank, 0 bytes, tag 1"));
    ferry_track kept = track_to(&w[1]);
    assert_int_equal(ferry_receive(f, FERRY_ANY_RANK, 1, &got, 4, &kept), 0);
    assert_int_equal(ferry_send(s.job.f[2], 0, 1, &sent, 4, NULL), 0);
    job_settle(&s.job);
    assert_int_equal(w[1].last.rank, 2);
    assert_int_equal(got, sent);
    job_close(&s.job);
}

static void test_event_too_long_a_message_fails_on_both_sides(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    static char data[100000], buffer[100000];
    for (size_t size = 10; size <= sizeof(data); size *= 10000) {
        witness in = {0}, out = {0};
        ferry_track receive = track_to(&in), send = track_to(&out);
        assert_int_equal(ferry_send(s.job.f[0], 1, 1, data, size, &send), 0);
        assert_int_equal(ferry_receive(s.job.f[1], 0, 1, buffer, size - 1, &receive), 0);
        job_settle(&s.job);
        assert_int_equal(in.last.error, FERRY_ETOOLONG);
        assert_int_equal(out.last.error, FERRY_ETOOLONG);
        assert_int_equal(in.last.size_bytes, size);
        assert_int_equal(out.last.size_bytes, size);
        assert_int_equal(in.last.size_max, size - 1);
        assert_int_equal(out.last.size_max, size - 1);
        assert_int_equal(ends(&in) + ends(&out), 2);
    }
    job_close(&s.job);
}

/* Long messages, and short ones without credit, stay at their source until they are wanted. */
static void test_event_long_messages_are_pulled(void **state)
{
    (void)state;
    enum { SIZE = 3000001, MANY = 3000 };
    scene s;
    scene_open(&s);
    unsigned char *data = malloc(SIZE), *buffer = calloc(1, SIZE);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (unsigned char)(i * 7 + i / 251);
    witness in = {0}, out = {0};
    ferry_track receive = track_to(&in), send = track_to(&out);
    assert_int_equal(ferry_send(s.job.f[0], 1, 1, data, SIZE, &send), 0);
    job_settle(&s.job);
    assert_int_equal(out.counts[FERRY_SUBMITTED], 0);
    assert_int_equal(ferry_receive(s.job.f[1], 0, 1, buffer, SIZE, &receive), 0);
    job_settle(&s.job);
    assert_int_equal(in.counts[FERRY_COMPLETED], 1);
    assert_int_equal(out.counts[FERRY_COMPLETED], 1);
    assert_int_equal(out.counts[FERRY_SUBMITTED], 1);
    assert_memory_equal(data, buffer, SIZE);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(ferry_send(s.job.f[0], 1, i, data + i, 200, &send), 0);
        if (i % 64 == 0)
            job_settle(&s.job); /* one thread cannot wait for its own room */
    }
    job_settle(&s.job);
    for (int i = MANY; i-- > 0;) {
        assert_int_equal(ferry_receive(s.job.f[1], 0, i, buffer, 200, &receive), 0);
        job_settle(&s.job);
        assert_memory_equal(data + i, buffer, 200);
    }
    assert_int_equal(in.counts[FERRY_COMPLETED], MANY + 1);
    assert_int_equal(out.counts[FERRY_COMPLETED], MANY + 1);
    free(data);
    free(buffer);
    job_close(&s.job);
}

static void test_event_withdrawn_message_leaves_its_receive(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    static char data[50000], buffer[50000];
    witness in = {0}, out = {0}, next = {0};
    ferry_op op;
    ferry_track receive = track_to(&in), send = track_to(&out), second = track_to(&next);
    send.op = &op;
    assert_int_equal(ferry_send(s.job.f[0], 1, 1, data, sizeof(data), &send), 0);
    job_settle(&s.job);
    assert_int_equal(ferry_op_cancel(s.job.f[0], &op), 0);
    assert_int_equal(ferry_receive(s.job.f[1], 0, 1, buffer, sizeof(buffer), &receive), 0);
    job_settle(&s.job);
    assert_int_equal(out.last.error, FERRY_ECANCELED);
    assert_int_equal(ends(&in), 0);
    assert_int_equal(ferry_send(s.job.f[0], 1, 1, data, 5, &second), 0);
    job_settle(&s.job);
    assert_int_equal(in.counts[FERRY_COMPLETED], 1);
    assert_int_equal(in.last.size_bytes, 5);
    assert_int_equal(next.counts[FERRY_COMPLETED], 1);
    job_close(&s.job);
}

static void test_event_withdrawn_offer_spares_the_next(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    static char data[50000], buffer[50000];
    witness in = {0}, out = {0}, next = {0};
    ferry_op op;
    ferry_track receive = track_to(&in), send = track_to(&out), second = track_to(&next);
    send.op = &op;
    assert_int_equal(ferry_send(s.job.f[0], 1, 1, data, sizeof(data), &send), 0);
    assert_int_equal(ferry_send(s.job.f[0], 1, 1, data, sizeof(data), &second), 0);
    job_settle(&s.job);
    assert_int_equal(ferry_op_cancel(s.job.f[0], &op), 0);
    assert_int_equal(ferry_receive(s.job.f[1], 0, 1, buffer, sizeof(buffer), &receive), 0);
    job_settle(&s.job);
    assert_int_equal(in.counts[FERRY_COMPLETED], 1);
    assert_int_equal(next.counts[FERRY_COMPLETED], 1);
    job_close(&s.job);
}

/* The target copies messages that lie in the shared heap from there; their source does nothing. If
 * there are more of them than marks, the rest go without marks. A message that was cancelled is not
 * copied. */
static void test_event_shared_messages_are_copied_by_the_target(void **state)
{
    (void)state;
    enum { SIZE = 100000, MANY = 40, GIVEN_UP = 3 };
    scene s;
    scene_open(&s);
    unsigned char *data[MANY], *buffer = malloc(SIZE);
    ferry_op ops[MANY];
    witness in = {0};
    ferry_track receive = track_to(&in), send = {.size = sizeof(send)};
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(ferry_alloc(s.job.f[0], SIZE, (void **)&data[i]), 0);
        memset(data[i], i, SIZE);
        send.op = &ops[i];
        assert_int_equal(ferry_send(s.job.f[0], 1, 1, data[i], SIZE, &send), 0);
    }
    for (int i = 0; i < GIVEN_UP; i++) {
        assert_int_equal(ferry_op_cancel(s.job.f[0], &ops[i]), 0);
        memset(data[i], 255, SIZE);
    }
    for (int i = GIVEN_UP; i < MANY; i++) {
        assert_int_equal(ferry_receive(s.job.f[1], 0, 1, buffer, SIZE, &receive), 0);
        fy_progress(s.job.f[1], true);
        fy_progress(s.job.f[1], true);
        if (i >= FY_MAIL_MARKS)
            job_settle(&s.job);
        assert_int_equal(in.counts[FERRY_COMPLETED], i - GIVEN_UP + 1);
        assert_memory_equal(buffer, data[i], SIZE);
    }
    job_settle(&s.job);
    for (int i = GIVEN_UP; i < MANY; i++)
        assert_int_equal(ferry_op_test(s.job.f[0], &ops[i]), 0);
    free(buffer);
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
        cmocka_unit_test(test_event_messages_meet_by_source_and_tag),
        cmocka_unit_test(test_event_receive_from_any_rank_names_no_rank),
        cmocka_unit_test(test_event_too_long_a_message_fails_on_both_sides),
        cmocka_unit_test(test_event_long_messages_are_pulled),
        cmocka_unit_test(test_event_withdrawn_message_leaves_its_receive),
        cmocka_unit_test(test_event_withdrawn_offer_spares_the_next),
        cmocka_unit_test(test_event_shared_messages_are_copied_by_the_target),
        cmocka_unit_test(test_event_wheel_is_never_early_and_in_order),
        cmocka_unit_test(test_event_background_answers_while_the_program_computes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
