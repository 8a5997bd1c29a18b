/* Goal: large data of tracked requests and messages that are in the shared heap are read where they
 * are, and submitted says when nobody reads them any more. Method: ranks driven by one thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ferry/memory.h>
#include <ferry/object.h>

#include "core/kinds.h"
#include "core/op.h"
#include "core/outgoing.h"
#include "port/port.h"
#include "ranks.h"

enum { BYTES = 100000, EVENTS_MAX = 64 };

static test_job job;
static ferry_handler on_request_handler, on_message_handler;
static ferry_object object;
static unsigned char *block; /* of rank 0 */
static const void *seen_at;
static char events[EVENTS_MAX];
static int event_count;

static void add(char what)
{
    CHECK(event_count < EVENTS_MAX - 1);
    events[event_count++] = what;
    events[event_count] = '\0';
}

static void look(const ferry_message *message)
{
    const unsigned char *data = message->data;
    seen_at = data;
    CHECK(message->size_bytes == BYTES && data[0] == 7 && data[BYTES - 1] == 7);
    add('r');
}

static void on_request(ferry *f, int source, const ferry_message *message)
{
    (void)f, (void)source;
    look(message);
}

static void on_message(ferry *f, ferry_object name, void *data, int source,
                       const ferry_message *message)
{
    (void)f, (void)name, (void)data, (void)source;
    look(message);
}

/* A buffer that is free may be written immediately. */
static void on_event(ferry *f, void *arg, const ferry_receipt *receipt)
{
    static const char names[] = "sctf";
    (void)f, (void)arg;
    add(names[receipt->event]);
    if (receipt->event == FERRY_SUBMITTED)
        memset(block, 0, BYTES);
}

static const ferry_track watched = {
    .size = sizeof(watched), .submitted = on_event, .completed = on_event, .failed = on_event};

static int open_two(void **state)
{
    static const ferry_object_ops ops = {.size = sizeof(ops), .flat_bytes = 8};
    (void)state;
    job_open(&job, 2, 0, 0);
    for (int i = 0; i < 2; i++) {
        ferry_object_type type;
        CHECK(ferry_handler_register(job.f[i], "request", on_request, &on_request_handler) == 0);
        CHECK(ferry_object_handler_register(job.f[i], "message", on_message, &on_message_handler) ==
              0);
        CHECK(ferry_object_type_register(job.f[i], &ops, &type) == 0);
        void *data = calloc(1, 8);
        CHECK(data != NULL);
        CHECK(ferry_object_create(job.f[i], type, data, &object) == 0); /* rank 1's remains */
    }
    void *memory;
    CHECK(ferry_alloc(job.f[0], BYTES, &memory) == 0);
    block = memory;
    memset(block, 7, BYTES);
    job_settle(&job);
    event_count = 0;
    events[0] = 0;
    events[0] = '\0';
    return 0;
}

static int close_two(void **state)
{
    (void)state;
    job_settle(&job);
    assert_int_equal(job.f[0]->ops_table.pending, 0);
    assert_int_equal(job.f[0]->head.work_created + job.f[1]->head.work_created,
                     job.f[0]->head.work_finished + job.f[1]->head.work_finished);
    job_close(&job);
    return 0;
}

static void send_one(bool to_object, const ferry_track *track)
{
    const ferry_message m = {.handler = to_object ? on_message_handler : on_request_handler,
                             .tag = 1,
                             .data = block,
                             .size_bytes = BYTES};
    CHECK((to_object ? ferry_object_send(job.f[0], object, &m, track)
                     : ferry_request_send(job.f[0], 1, &m, track)) == 0);
}

static void poll_both(int32_t tag)
{
    for (int i = 0; i < 20; i++) {
        CHECK(ferry_poll_tag(job.f[1], tag) >= 0);
        fy_progress(job.f[0], true);
    }
}

/* Goal: the handler reads the sender's memory; submitted comes after it, completed after that. */
static void test_lend_reads_in_place(void **state)
{
    (void)state;
    for (int to_object = 0; to_object < 2; to_object++) {
        event_count = 0;
        events[0] = 0;
        memset(block, 7, BYTES);
        send_one(to_object, &watched);
        for (int i = 0; i < 10; i++)
            fy_progress(job.f[0], true);
        assert_int_equal(event_count, 0); /* not reusable yet */
        job_settle(&job);
        assert_string_equal(events, "rsc");
        assert_ptr_equal(seen_at, block);
    }
}

/* Goal: what asks for submitted alone, or waits with an `op`, is served alike. */
static void test_lend_whatever_is_asked(void **state)
{
    (void)state;
    const ferry_track alone = {.size = sizeof(alone), .submitted = on_event};
    send_one(false, &alone);
    fy_progress(job.f[0], true);
    assert_int_equal(event_count, 0);
    job_settle(&job);
    assert_string_equal(events, "rs");
    event_count = 0;
    events[0] = 0;
    memset(block, 7, BYTES);
    ferry_op op;
    const ferry_track with_op = {.size = sizeof(with_op), .op = &op};
    send_one(false, &with_op);
    assert_int_equal(ferry_op_test(job.f[0], &op), FERRY_EAGAIN);
    job_settle(&job);
    assert_int_equal(ferry_op_test(job.f[0], &op), 0);
    assert_ptr_equal(seen_at, block);
}

/* Goal: with `arrival`, and without `track`, data are copied: they are free before the handler. */
static void test_lend_copies_with_arrival(void **state)
{
    (void)state;
    ferry_track track = watched;
    track.arrival = true;
    send_one(false, &track);
    fy_progress(job.f[0], true);
    assert_string_equal(events, "s");
    job_settle(&job);
    assert_string_equal(events, "src");
    assert_ptr_not_equal(seen_at, block);
}

/* Goal: what a poll for another tag keeps is copied, and right later. */
static void test_lend_kept_by_a_poll(void **state)
{
    (void)state;
    send_one(false, &watched);
    poll_both(2);
    assert_int_equal(event_count, 0);
    poll_both(1);
    assert_string_equal(events, "rsc");
    assert_ptr_not_equal(seen_at, block);
}

/* Goal: an operation that is cancelled still lends its data until the target has read them. */
static void test_lend_outlives_a_cancel(void **state)
{
    (void)state;
    for (int with_handle = 0; with_handle < 2; with_handle++) {
        ferry_op op;
        ferry_track track = watched;
        track.op = &op;
        track.timeout_ns = with_handle ? 1 : 0;
        event_count = 0;
        events[0] = 0;
        memset(block, 7, BYTES);
        send_one(false, &track);
        if (with_handle)
            while (ferry_op_state(job.f[0], op) == FERRY_OP_PENDING)
                fy_progress(job.f[0], true);
        else
            CHECK(ferry_op_cancel(job.f[0], &op) == 0);
        for (int i = 0; i < 10; i++)
            fy_progress(job.f[0], true);
        assert_string_equal(events, "f");
        job_settle(&job);
        assert_string_equal(events, "frs");
        if (with_handle)
            assert_int_equal(ferry_op_test(job.f[0], &op), FERRY_ETIMEDOUT);
    }
    fy_op_record *free_record = job.f[0]->ops_table.free_records;
    assert_non_null(free_record);
    assert_int_equal(free_record->state, FY_OP_FREE);
}

/* Goal: who is closed, or has lost the target, gets the data back. */
static void test_lend_ends_with_the_rank(void **state)
{
    (void)state;
    send_one(false, &watched);
    fy_ops_cancel(job.f[0]);
    assert_string_equal(events, "sf");
    memset(block, 7, BYTES);
}

/* Goal: loans that name no memory of the heap, or frames that none may be, are dropped. */
static void test_lend_refuses_wrong_loans(void **state)
{
    (void)state;
    static char own[BYTES];
    const fy_loan loans[] = {{(uintptr_t)own, BYTES, FY_KIND_REQUEST},
                             {(uintptr_t)block, (uint64_t)1 << 40, FY_KIND_REQUEST},
                             {(uintptr_t)block, BYTES, FY_KIND_LENT},
                             {(uintptr_t)block, BYTES, FY_KIND_END},
                             {0, 0, 1000}};
    for (size_t i = 0; i < sizeof(loans) / sizeof(loans[0]); i++)
        for (size_t size_bytes = 0; size_bytes <= sizeof(fy_loan); size_bytes += sizeof(fy_loan)) {
            const fy_frame frame = {.kind = FY_KIND_LENT,
                                    .handler = on_request_handler.index,
                                    .data = &loans[i],
                                    .size_bytes = size_bytes};
            CHECK(fy_send(job.f[0], FY_DATA, 1, &frame) == 0);
        }
    job_settle(&job);
    assert_int_equal(event_count, 0);
}

#define WITH_TWO(test) cmocka_unit_test_setup_teardown(test, open_two, close_two)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TWO(test_lend_reads_in_place),      WITH_TWO(test_lend_whatever_is_asked),
        WITH_TWO(test_lend_copies_with_arrival), WITH_TWO(test_lend_kept_by_a_poll),
        WITH_TWO(test_lend_outlives_a_cancel),   WITH_TWO(test_lend_ends_with_the_rank),
        WITH_TWO(test_lend_refuses_wrong_loans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
