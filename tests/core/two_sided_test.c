/* Goal: two-sided messages meet by source and tag, each operation has exactly one end, and long
 * messages are pulled. Method: scene.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "core/op.h"
#include "scene.h"

static void test_two_sided_messages_meet_by_source_and_tag(void **state)
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
static void test_two_sided_receive_from_any_rank_names_no_rank(void **state)
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

static void test_two_sided_too_long_a_message_fails_on_both_sides(void **state)
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
static void test_two_sided_long_messages_are_pulled(void **state)
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

static void test_two_sided_withdrawn_message_leaves_its_receive(void **state)
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

static void test_two_sided_withdrawn_offer_spares_the_next(void **state)
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
static void test_two_sided_shared_messages_are_copied_by_the_target(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_sided_messages_meet_by_source_and_tag),
        cmocka_unit_test(test_two_sided_receive_from_any_rank_names_no_rank),
        cmocka_unit_test(test_two_sided_too_long_a_message_fails_on_both_sides),
        cmocka_unit_test(test_two_sided_long_messages_are_pulled),
        cmocka_unit_test(test_two_sided_withdrawn_message_leaves_its_receive),
        cmocka_unit_test(test_two_sided_withdrawn_offer_spares_the_next),
        cmocka_unit_test(test_two_sided_shared_messages_are_copied_by_the_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
