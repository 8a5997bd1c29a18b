/* Goal: requests and their tracking, seen from both ends step by step. Method: the ranks of a job
 * are driven by one thread, so that each test says exactly who polls when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/handler.h"
#include "core/kinds.h"
#include "core/op.h"
#include "core/outgoing.h"
#include "memory/state.h"
#include "ranks.h"

enum { LOG_MAX = 4096 };

/* The handlers and callbacks of a rank count here what they have seen. */
typedef struct seen {
    ferry_handler note, echo, burst;
    int count;
    int source[LOG_MAX];
    ferry_message message[LOG_MAX];
    unsigned char data[64 * 1024];
    int submitted, completed, failed, error;
    bool answered_in_handler;
} seen;

static void note(ferry *f, int source, const ferry_message *message)
{
    seen *s = ferry_user_data(f);
    s->source[s->count] = source;
    s->message[s->count++] = *message;
    if (message->size_bytes > 0)
        memcpy(s->data, message->data, message->size_bytes);
    /* No call that waits is allowed here. */
    CHECK(ferry_poll(f) == FERRY_ESTATE && ferry_wait(f, 0) == FERRY_ESTATE &&
          ferry_poll_tag(f, 1) == FERRY_ESTATE && ferry_barrier(f) == FERRY_ESTATE &&
          ferry_quiesce(f) == FERRY_ESTATE && ferry_close(f) == FERRY_ESTATE);
}

/* Sends the message back as a note. */
static void echo(ferry *f, int source, const ferry_message *message)
{
    const seen *s = ferry_user_data(f);
    ferry_message answer = *message;
    answer.handler = s->note;
    CHECK(ferry_request_send(f, source, &answer, NULL) == 0);
}

/* Sends words[0] numbered notes back, more than any ring takes. */
static void burst(ferry *f, int source, const ferry_message *message)
{
    const seen *s = ferry_user_data(f);
    for (uint64_t i = 0; i < message->words[0]; i++) {
        const ferry_message answer = {.handler = s->note, .word_count = 1, .words = {i}};
        CHECK(ferry_request_send(f, source, &answer, NULL) == 0);
    }
}

typedef struct fixture {
    test_job job;
    seen seen[4];
} fixture;

static void open_fixture(fixture *x, int ranks, uint32_t slots)
{
    memset(x, 0, sizeof(*x));
    job_open(&x->job, ranks, slots, 0);
    for (int i = 0; i < ranks; i++) {
        ferry *f = x->job.f[i];
        ferry_user_data_set(f, &x->seen[i]);
        assert_int_equal(ferry_handler_register(f, "note", note, &x->seen[i].note), 0);
        assert_int_equal(ferry_handler_register(f, "echo", echo, &x->seen[i].echo), 0);
        assert_int_equal(ferry_handler_register(f, "burst", burst, &x->seen[i].burst), 0);
    }
}

static fixture x;

/* Goal: all of a message arrives. Method: all word counts and some sizes, to another rank and to
 * the sender itself. */
static void test_request_carries_words_tag_and_data(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 7, 8, 31, 32, 33, 100, 1000, 5000, 65536};
    static unsigned char data[65536];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(i * 7);
    open_fixture(&x, 2, 0);
    for (int target = 0; target < 2; target++) {
        seen *s = &x.seen[target];
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            uint8_t words = (uint8_t)(i % 5);
            const ferry_message m = {.handler = s->note,
                                     .word_count = words,
                                     .tag = -(int32_t)i,
                                     .words = {1, 2, UINT64_MAX, 4},
                                     .data = data,
                                     .size_bytes = sizes[i]};
            s->count = 0;
            assert_int_equal(ferry_request_send(x.job.f[0], target, &m, NULL), 0);
            assert_int_equal(s->count, 0); /* never from inside the call */
            assert_true(job_settle(&x.job) > 0);
            assert_int_equal(s->count, 1);
            assert_int_equal(s->source[0], 0);
            assert_int_equal(s->message[0].tag, m.tag);
            assert_int_equal(s->message[0].word_count, words);
            assert_int_equal(s->message[0].size_bytes, sizes[i]);
            assert_memory_equal(s->message[0].words, m.words, words * sizeof(uint64_t));
            assert_memory_equal(s->data, data, sizes[i]);
        }
    }
    job_close(&x.job);
}

/* Goal: what a handler sends without room arrives later, in order. Method: rings of 8 slots. */
static void test_request_backlog_keeps_order(void **state)
{
    (void)state;
    open_fixture(&x, 2, 8);
    const ferry_message m = {.handler = x.seen[0].burst, .word_count = 1, .words = {1000}};
    assert_int_equal(ferry_request_send(x.job.f[0], 1, &m, NULL), 0);
    assert_int_equal(ferry_request_send(x.job.f[0], 0, &m, NULL), 0);
    job_settle(&x.job);
    assert_int_equal(x.seen[0].count, 2000);
    uint64_t next[2] = {0, 0};
    for (int i = 0; i < 2000; i++)
        assert_int_equal(x.seen[0].message[i].words[0], next[x.seen[0].source[i]]++);
    assert_int_equal(x.job.f[1]->head.slow_lanes, 0);
    job_close(&x.job);
}

/* Goal: a tag-selective poll runs its tag alone; the rest stays in order and comes before newer
 * requests. Method: tags 1 and 2 mixed, polled by tag, then newer ones, then polled. */
static void test_request_tag_poll_holds_others_in_order(void **state)
{
    (void)state;
    open_fixture(&x, 2, 0);
    ferry *f = x.job.f[0];
    for (int target = 0; target < 2; target++) {
        seen *s = &x.seen[target];
        s->count = 0;
        for (uint64_t i = 0; i < 10; i++) {
            const ferry_message m = {
                .handler = s->note, .tag = 1 + (int)(i % 2), .word_count = 1, .words = {i}};
            assert_int_equal(ferry_request_send(f, target, &m, NULL), 0);
        }
        assert_int_equal(ferry_poll_tag(x.job.f[target], 2), 5);
        assert_int_equal(ferry_poll_tag(x.job.f[target], 3), 0);
        for (int i = 0; i < 5; i++)
            assert_int_equal(s->message[i].words[0], 2 * i + 1);
        const ferry_message newer = {.handler = s->note, .tag = 1, .word_count = 1, .words = {10}};
        assert_int_equal(ferry_request_send(f, target, &newer, NULL), 0);
        while (s->count < 11)
            ferry_poll(x.job.f[target]);
        for (int i = 0; i < 5; i++)
            assert_int_equal(s->message[5 + i].words[0], 2 * i);
        assert_int_equal(s->message[10].words[0], 10);
    }
    job_close(&x.job);
}

static void on_submitted(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    seen *s = arg;
    CHECK(receipt->error == 0 && s->submitted >= s->completed + s->failed);
    s->submitted++;
}

static void on_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    seen *s = arg;
    CHECK(receipt->error == 0 && receipt->rank >= 0);
    s->completed++;
}

static void on_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    seen *s = arg;
    s->failed++;
    s->error = receipt->error;
}

static ferry_track track_of(seen *s, ferry_op *op)
{
    return (ferry_track){.size = sizeof(ferry_track),
                         .submitted = on_submitted,
                         .submitted_arg = s,
                         .completed = on_completed,
                         .completed_arg = s,
                         .failed = on_failed,
                         .failed_arg = s,
                         .op = op};
}

/* Goal: each operation ends once, in a poll, completed only after the handler has returned. Method:
 * to another rank and to the sender itself, with callbacks and handle. */
static void test_op_ends_once_in_a_poll(void **state)
{
    (void)state;
    open_fixture(&x, 2, 0);
    seen *s = &x.seen[0];
    for (int target = 1; target >= 0; target--) {
        ferry_op op = {0};
        const ferry_track track = track_of(s, &op);
        const ferry_message m = {.handler = s->note, .tag = 9};
        s->submitted = s->completed = 0;
        x.seen[target].count = 0;
        assert_int_equal(ferry_request_send(x.job.f[0], target, &m, &track), 0);
        assert_true(op.word != 0);
        assert_int_equal(ferry_op_state(x.job.f[0], op), FERRY_OP_PENDING);
        assert_int_equal(s->submitted + s->completed, 0);
        assert_int_equal(ferry_op_test(x.job.f[0], &op), FERRY_EAGAIN);
        ferry_poll(x.job.f[0]);
        assert_int_equal(s->submitted, 1);
        if (target == 1)
            assert_int_equal(s->completed, 0);
        job_settle(&x.job);
        assert_int_equal(x.seen[target].count, 1);
        assert_int_equal(s->submitted, 1);
        assert_int_equal(s->completed, 1);
        assert_int_equal(s->failed, 0);
        ferry_op copy = op;
        for (int i = 0; i < 2; i++)
            assert_int_equal(ferry_op_state(x.job.f[0], op), FERRY_OP_ENDED);
        assert_int_equal(ferry_op_test(x.job.f[0], &op), 0);
        assert_int_equal(op.word, 0);
        assert_int_equal(ferry_op_state(x.job.f[0], op), FERRY_OP_NONE);
        assert_int_equal(ferry_op_state(x.job.f[0], copy), FERRY_EINVAL);
        assert_int_equal(ferry_op_test(x.job.f[0], &op), 0);
        assert_int_equal(ferry_op_test(x.job.f[0], &copy), FERRY_EINVAL); /* stale */
    }
    assert_int_equal(x.job.f[0]->ops_table.pending, 0);
    job_close(&x.job);
}

/* Goal: ends that come twice, late or from nowhere do nothing. Method: frames made by hand. */
static void test_op_ignores_ends_that_do_not_fit(void **state)
{
    (void)state;
    open_fixture(&x, 2, 0);
    seen *s = &x.seen[0];
    const ferry_track track = track_of(s, NULL);
    const ferry_message m = {.handler = s->note};
    uint32_t names[3] = {0, 1, UINT32_MAX};
    for (int i = 0; i < 3; i++)
        fy_op_end_remote(x.job.f[1], 0, names[i], 0);
    assert_int_equal(ferry_request_send(x.job.f[0], 1, &m, &track), 0);
    uint32_t op = 1u << FY_OP_INDEX_BITS; /* the first record, first use */
    for (int i = 0; i < 3; i++)
        fy_op_end_remote(x.job.f[1], 0, op, i == 0 ? 0 : FERRY_EPEER);
    job_settle(&x.job);
    assert_int_equal(s->completed, 1);
    assert_int_equal(s->failed, 0);
    const fy_frame malformed = {.kind = FY_KIND_END, .word_count = 1};
    assert_int_equal(fy_send(x.job.f[1], FY_DATA, 0, &malformed), 0);
    job_settle(&x.job);
    job_close(&x.job);
}

/* Goal: a million-fold use of few records stays distinct. Method: more operations than a wire
 * name's generations, each tested. */
static void test_op_records_are_used_again(void **state)
{
    (void)state;
    open_fixture(&x, 1, 0);
    const ferry_message m = {.handler = x.seen[0].note};
    for (int i = 0; i < 10000; i++) {
        ferry_op op;
        const ferry_track track = {.size = sizeof(track), .op = &op};
        assert_int_equal(ferry_request_send(x.job.f[0], 0, &m, &track), 0);
        x.seen[0].count = 0;
        assert_int_equal(ferry_op_wait(x.job.f[0], &op), 0);
        assert_int_equal(x.seen[0].count, 1);
    }
    assert_int_equal(x.job.f[0]->ops_table.chunk_count, 1);
    job_close(&x.job);
}

/* Goal: what is still pending at close fails, once. Method: a rank freed before its peer polls. */
static void test_op_pending_at_close_is_cancelled(void **state)
{
    (void)state;
    open_fixture(&x, 2, 0);
    const ferry_track track = track_of(&x.seen[0], NULL);
    const ferry_message m = {.handler = x.seen[0].note};
    for (int i = 0; i < 5; i++)
        assert_int_equal(ferry_request_send(x.job.f[0], 1, &m, &track), 0);
    fy_ops_cancel(x.job.f[0]);
    assert_int_equal(x.seen[0].submitted, 5);
    assert_int_equal(x.seen[0].failed, 5);
    assert_int_equal(x.seen[0].error, FERRY_ECANCELED);
    job_settle(&x.job);
    assert_int_equal(x.seen[0].completed, 0);
    job_close(&x.job);
}

/* Goal: a handler unknown or different at the target is an error there and at the sender. Method: a
 * rank that registers one more, and one that registers another. */
static void test_request_handlers_must_agree(void **state)
{
    (void)state;
    open_fixture(&x, 2, 0);
    seen *s = &x.seen[0];
    ferry_handler extra, other;
    assert_int_equal(ferry_handler_register(x.job.f[0], "extra", note, &extra), 0);
    for (int i = 0; i < 2; i++) {
        const ferry_track track = track_of(s, NULL);
        const ferry_message m = {.handler = extra};
        s->failed = 0;
        assert_int_equal(ferry_request_send(x.job.f[0], 1, &m, &track), 0);
        assert_int_equal(ferry_request_send(x.job.f[0], 1, &m, NULL), 0);
        job_settle(&x.job);
        assert_int_equal(s->failed, 1);
        assert_int_equal(s->error, FERRY_ENOENT);
        assert_int_equal(x.seen[1].count, 0);
        assert_int_equal(x.job.f[0]->head.work_created + x.job.f[1]->head.work_created,
                         x.job.f[0]->head.work_finished + x.job.f[1]->head.work_finished);
        if (i == 0)
            assert_int_equal(ferry_handler_register(x.job.f[1], "other", note, &other), 0);
    }
    job_close(&x.job);
}

/* Goal: every documented misuse is refused with the values in the message. Method: one by one. */
static void test_request_refuses_bad_arguments(void **state)
{
    (void)state;
    open_fixture(&x, 2, 0);
    ferry *f = x.job.f[0];
    ferry_message m = {.handler = x.seen[0].note};
    assert_int_equal(ferry_request_send(f, 2, &m, NULL), FERRY_EINVAL);
    assert_string_equal(ferry_error_message(f), "request: rank 2 is outside 0..1");
    assert_int_equal(ferry_request_send(f, -1, &m, NULL), FERRY_EINVAL);
    assert_int_equal(ferry_request_send(f, 0, NULL, NULL), FERRY_EINVAL);
    m.word_count = 5;
    assert_int_equal(ferry_request_send(f, 0, &m, NULL), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(f), "5 words"));
    m.word_count = 0;
    m.size_bytes = 3;
    assert_int_equal(ferry_request_send(f, 0, &m, NULL), FERRY_EINVAL);
    m.size_bytes = 0;
    m.handler.index = 900;
    assert_int_equal(ferry_request_send(f, 0, &m, NULL), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(f), "900"));
    m.handler = (ferry_handler){0};
    assert_int_equal(ferry_request_send(f, 0, &m, NULL), FERRY_EINVAL);
    assert_int_equal(ferry_request_broadcast(f, &m, NULL), FERRY_EINVAL);
    assert_string_equal(ferry_error_message(f),
                        "request: no handler was given (it is {0}); expected one from "
                        "ferry_handler_register");
    m.handler = x.seen[0].note;
    const ferry_track wrong = {.size = 1};
    assert_int_equal(ferry_request_send(f, 0, &m, &wrong), FERRY_EINVAL);
    ferry_handler h;
    assert_int_equal(ferry_handler_register(f, NULL, note, &h), FERRY_EINVAL);
    assert_int_equal(ferry_handler_register(f, "x", NULL, &h), FERRY_EINVAL);
    assert_int_equal(ferry_handler_register(f, "x", note, NULL), FERRY_EINVAL);
    ferry_op stale = {.word = 12345};
    assert_int_equal(ferry_op_test(f, &stale), FERRY_EINVAL);
    assert_int_equal(ferry_op_wait(f, &stale), FERRY_EINVAL);
    assert_int_equal(job_settle(&x.job), 0);
    job_close(&x.job);
}

/* Goal: the handler table is bounded and says so. Method: register until it is full. */
static void test_request_handler_table_is_bounded(void **state)
{
    (void)state;
    open_fixture(&x, 1, 0);
    ferry_handler h;
    int error = 0, count = 3;
    while ((error = ferry_handler_register(
                x.job.f[0], "a name longer than thirty-one bytes for sure", note, &h)) == 0)
        count++;
    assert_int_equal(error, FERRY_ENOMEM);
    assert_int_equal(count, FY_HANDLERS_MAX - 1 - FY_HANDLERS_OWN);
    assert_int_equal(strlen(fy_handler_name(x.job.f[0], h.index)), 31);
    job_close(&x.job);
}

/* Goal: frames that no Ferry sends are dropped, not followed. Method: kinds, word counts, handlers
 * and errors at random, to both lanes, then an honest request. */
static void test_request_survives_hostile_frames(void **state)
{
    (void)state;
    open_fixture(&x, 2, 0);
    uint64_t random = 7;
    for (int i = 0; i < 20000; i++) {
        static unsigned char data[64];
        uint64_t r = next_random(&random);
        static const uint8_t kinds[] = {FY_KIND_REQUEST, FY_KIND_END, FY_KIND_PUT, FY_KIND_GET,
                                        FY_KIND_GOT,     FY_KINDS,    255};
        const fy_frame frame = {.kind = kinds[r % 7],
                                .word_count = (uint8_t)(r >> 8 & 3),
                                .handler = (uint16_t)(r >> 16 & 7),
                                .op = (uint32_t)(r >> 20),
                                .aux = (uint32_t)(r >> 40 & 3),
                                .words = {r & 3, r >> 33, r >> 50, next_random(&random)},
                                .data = data,
                                .size_bytes = r >> 58};
        if (x.job.f[1]->head.ops->transport.send(x.job.f[1]->head.port, FY_APP, FY_DATA, 0,
                                                 &frame) != 0)
            job_settle(&x.job);
    }
    job_settle(&x.job);
    const ferry_message m = {.handler = x.seen[0].note, .tag = 77};
    x.seen[0].count = 0;
    assert_int_equal(ferry_request_send(x.job.f[1], 0, &m, NULL), 0);
    job_settle(&x.job);
    assert_int_equal(x.seen[0].message[x.seen[0].count - 1].tag, 77);
    job_close(&x.job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_carries_words_tag_and_data),
        cmocka_unit_test(test_request_backlog_keeps_order),
        cmocka_unit_test(test_request_tag_poll_holds_others_in_order),
        cmocka_unit_test(test_op_ends_once_in_a_poll),
        cmocka_unit_test(test_op_ignores_ends_that_do_not_fit),
        cmocka_unit_test(test_op_records_are_used_again),
        cmocka_unit_test(test_op_pending_at_close_is_cancelled),
        cmocka_unit_test(test_request_handlers_must_agree),
        cmocka_unit_test(test_request_refuses_bad_arguments),
        cmocka_unit_test(test_request_handler_table_is_bounded),
        cmocka_unit_test(test_request_survives_hostile_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
