/* Goal: requests that are broadcast, sent synchronously or cancelled do what core.h says. Method:
 * ranks driven by one thread where the order matters, ranks as threads where they must wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/kinds.h"
#include "core/membership.h"
#include "core/outgoing.h"
#include "port/port.h"
#include "ranks.h"

enum { DATA_BYTES = 20000, LOG_MAX = 256 };

typedef struct seen {
    ferry_handler note, pass;
    int count, completed, failed, error;
    int source[LOG_MAX];
    uint64_t word[LOG_MAX];
    size_t size_bytes;
    unsigned char data[DATA_BYTES];
} seen;

static void on_note(ferry *f, int source, const ferry_message *message)
{
    seen *s = ferry_user_data(f);
    s->source[s->count % LOG_MAX] = source;
    s->word[s->count++ % LOG_MAX] = message->words[0] + message->words[3];
    s->size_bytes = message->size_bytes;
    CHECK((uintptr_t)message->data % 8 == 0);
    if (message->size_bytes > 0)
        memcpy(s->data, message->data, message->size_bytes);
}

/* A handler that broadcasts. */
static void on_pass(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    const seen *s = ferry_user_data(f);
    const ferry_message m = {.handler = s->note, .word_count = 1, .words = {message->words[0]}};
    CHECK(ferry_request_broadcast(f, &m, NULL) == 0);
    CHECK(ferry_request_sync(f, source, &m) == FERRY_ESTATE);
}

static void on_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    CHECK(receipt->error == 0);
    ((seen *)arg)->completed++;
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
                         .completed = on_completed,
                         .completed_arg = s,
                         .failed = on_failed,
                         .failed_arg = s,
                         .op = op};
}

static test_job job;
static seen seen_by[16];

static void register_all(ferry *f, seen *s)
{
    ferry_user_data_set(f, s);
    CHECK(ferry_handler_register(f, "note", on_note, &s->note) == 0);
    CHECK(ferry_handler_register(f, "pass", on_pass, &s->pass) == 0);
}

static void open_all(int ranks)
{
    memset(seen_by, 0, sizeof(seen_by));
    job_open(&job, ranks, 8, 1024);
    for (int i = 0; i < ranks; i++)
        register_all(job.f[i], &seen_by[i]);
}

/* Polls all but `but` until nothing happens. */
static void settle_without(int but)
{
    for (int round = 1; round != 0;) {
        round = 0;
        for (int i = 0; i < job.ranks; i++)
            round += i == but ? 0 : fy_progress(job.f[i], true);
    }
}

/* Goal: every rank but the caller runs it once, from any root, with all of the message. Method:
 * all ranks as root, for many numbers of ranks, with and without data. */
static void test_request_broadcast_reaches_all_but_the_root(void **state)
{
    (void)state;
    static unsigned char data[DATA_BYTES];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(i * 11);
    for (int ranks = 1; ranks <= 13; ranks++) {
        open_all(ranks);
        for (int root = 0; root < ranks; root++) {
            for (size_t size = 0; size <= DATA_BYTES; size += DATA_BYTES / 2) {
                const ferry_message m = {.handler = seen_by[0].note,
                                         .word_count = 4,
                                         .words = {40, 0, 0, 2},
                                         .data = data,
                                         .size_bytes = size};
                for (int i = 0; i < ranks; i++)
                    seen_by[i].count = 0;
                assert_int_equal(ferry_request_broadcast(job.f[root], &m, NULL), 0);
                job_settle(&job);
                for (int i = 0; i < ranks; i++) {
                    assert_int_equal(seen_by[i].count, i != root);
                    if (i == root)
                        continue;
                    assert_int_equal(seen_by[i].source[0], root);
                    assert_int_equal(seen_by[i].word[0], 42);
                    assert_int_equal(seen_by[i].size_bytes, size);
                    assert_memory_equal(seen_by[i].data, data, size);
                }
            }
        }
        uint64_t created = 0, finished = 0;
        for (int i = 0; i < ranks; i++) {
            created += job.f[i]->head.work_created;
            finished += job.f[i]->head.work_finished;
        }
        assert_int_equal(created, finished);
        job_close(&job);
    }
}

/* Goal: a tracked one completes when every handler has returned, not before. Method: 7 ranks, one
 * of which does not poll for a while; alone it completes too. */
static void test_request_broadcast_completes_after_the_last_handler(void **state)
{
    (void)state;
    for (int late = 1; late < 7; late++) {
        open_all(7);
        ferry_op op;
        const ferry_track track = track_of(&seen_by[0], &op);
        const ferry_message m = {.handler = seen_by[0].note};
        assert_int_equal(ferry_request_broadcast(job.f[0], &m, &track), 0);
        settle_without(late);
        assert_int_equal(seen_by[0].completed, 0);
        job_settle(&job);
        assert_int_equal(seen_by[0].completed, 1);
        assert_int_equal(ferry_op_test(job.f[0], &op), 0);
        for (int i = 0; i < 7; i++) {
            assert_int_equal(job.f[i]->ops_table.pending, 0);
            assert_int_equal(seen_by[i].count, i != 0);
        }
        job_close(&job);
    }
    open_all(1);
    const ferry_track track = track_of(&seen_by[0], NULL);
    const ferry_message m = {.handler = seen_by[0].note};
    assert_int_equal(ferry_request_broadcast(job.f[0], &m, &track), 0);
    job_settle(&job);
    assert_int_equal(seen_by[0].completed, 1);
    job_close(&job);
}

/* Goal: a rank that polls for another tag passes on but does not handle; order per root holds.
 * Method: of 8 ranks, the one with three ranks below it polls for a tag of its own. */
static void test_request_broadcast_passes_on_under_a_tag_poll(void **state)
{
    (void)state;
    open_all(8);
    ferry_op op;
    const ferry_track track = track_of(&seen_by[0], &op);
    for (uint64_t i = 0; i < 6; i++) {
        const ferry_message m = {
            .handler = seen_by[0].note, .tag = 5, .word_count = 1, .words = {i}};
        assert_int_equal(ferry_request_broadcast(job.f[0], &m, i == 5 ? &track : NULL), 0);
    }
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < 8; i++)
            if (i == 4)
                assert_true(ferry_poll_tag(job.f[i], 9) >= 0);
            else
                ferry_poll(job.f[i]);
    for (int i = 1; i < 8; i++)
        assert_int_equal(seen_by[i].count, i == 4 ? 0 : 6);
    assert_int_equal(seen_by[0].completed, 0);
    assert_true(ferry_poll_tag(job.f[4], 5) >= 6);
    assert_int_equal(seen_by[4].count, 6);
    for (uint64_t i = 0; i < 6; i++)
        assert_int_equal(seen_by[4].word[i], i);
    job_settle(&job);
    assert_int_equal(seen_by[0].completed, 1);
    job_close(&job);
}

/* Goal: a handler may broadcast; more than the rings take arrives, in order. */
static void test_request_broadcast_from_handlers(void **state)
{
    (void)state;
    open_all(5);
    for (uint64_t i = 0; i < 100; i++) {
        const ferry_message m = {.handler = seen_by[0].pass, .word_count = 1, .words = {i}};
        assert_int_equal(ferry_request_send(job.f[3], 3, &m, NULL), 0);
    }
    job_settle(&job);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(seen_by[i].count, i == 3 ? 0 : 100);
        for (int j = 0; j < seen_by[i].count; j++)
            assert_int_equal(seen_by[i].word[j], j);
    }
    job_close(&job);
}

/* Goal: frames that are no part of a broadcast are dropped; an unknown handler fails the broadcast
 * at its root. Method: frames made by hand; a rank that has registered more. */
static void test_request_broadcast_rejects_what_does_not_fit(void **state)
{
    (void)state;
    open_all(4);
    static const int32_t heads[][2] = {{-1, 0}, {4, 0}, {1, 0}, {2, 0}, {3, 0}};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        const fy_frame frame = {
            .kind = FY_KIND_REQUEST_BROADCAST, .data = heads[i], .size_bytes = sizeof(heads[i])};
        assert_int_equal(fy_send(job.f[0], FY_DATA, 1, &frame), 0);
    }
    const fy_frame shorter = {.kind = FY_KIND_REQUEST_BROADCAST, .data = heads, .size_bytes = 4};
    assert_int_equal(fy_send(job.f[0], FY_DATA, 1, &shorter), 0);
    job_settle(&job);
    ferry_handler extra;
    assert_int_equal(ferry_handler_register(job.f[0], "extra", on_note, &extra), 0);
    const ferry_track track = track_of(&seen_by[0], NULL);
    const ferry_message m = {.handler = extra};
    assert_int_equal(ferry_request_broadcast(job.f[0], &m, &track), 0);
    const ferry_message wrong = {.handler = {77}};
    assert_int_equal(ferry_request_broadcast(job.f[0], &wrong, &track), FERRY_EINVAL);
    job_settle(&job);
    assert_int_equal(seen_by[0].failed, 1);
    assert_int_equal(seen_by[0].error, FERRY_ENOENT);
    for (int i = 0; i < 4; i++)
        assert_int_equal(seen_by[i].count, 0);
    job_close(&job);
}

/* Goal: a cancelled operation fails once, here, and its late end changes nothing. */
static void test_op_cancel_ends_it_here(void **state)
{
    (void)state;
    open_all(2);
    seen *s = &seen_by[0];
    ferry_op op;
    const ferry_track track = track_of(s, &op);
    const ferry_message m = {.handler = s->note};
    assert_int_equal(ferry_request_send(job.f[0], 1, &m, &track), 0);
    ferry_op copy = op;
    assert_int_equal(ferry_op_cancel(job.f[0], &op), 0);
    assert_int_equal(op.word, 0);
    assert_int_equal(ferry_op_cancel(job.f[0], &op), 0);
    assert_int_equal(ferry_op_cancel(job.f[0], &copy), FERRY_EINVAL);
    job_settle(&job);
    assert_int_equal(s->failed, 1);
    assert_int_equal(s->error, FERRY_ECANCELED);
    assert_int_equal(s->completed, 0);
    assert_int_equal(seen_by[1].count, 1);
    /* One that has ended already: completed, and nothing more. */
    assert_int_equal(ferry_request_send(job.f[0], 1, &m, &track), 0);
    job_settle(&job);
    assert_int_equal(ferry_op_cancel(job.f[0], &op), 0);
    job_settle(&job);
    assert_int_equal(s->completed, 1);
    assert_int_equal(s->failed, 1);
    assert_int_equal(job.f[0]->ops_table.pending, 0);
    job_close(&job);
}

/* Polls those of the ranks in `set` that are there until nothing happens and they know that `gone`
 * is not. */
static void settle_among(unsigned set, int gone)
{
    bool more = true;
    while (more) {
        more = false;
        for (int i = 0; i < job.ranks; i++) {
            if (job.f[i] == NULL || !(set >> i & 1))
                continue;
            more = fy_progress(job.f[i], true) > 0 || !fy_peer_is_gone(job.f[i], gone) || more;
        }
    }
}

/* A tracked broadcast from each rank that is there reaches each other one once. */
static void broadcast_from_all(int gone)
{
    for (int root = 0; root < job.ranks; root++) {
        if (job.f[root] == NULL)
            continue;
        for (int i = 0; i < job.ranks; i++)
            seen_by[i].count = seen_by[i].completed = seen_by[i].failed = 0;
        const ferry_track track = track_of(&seen_by[root], NULL);
        const ferry_message m = {.handler = seen_by[root].note, .word_count = 1, .words = {1}};
        assert_int_equal(ferry_request_broadcast(job.f[root], &m, &track), 0);
        settle_among(~0u, gone);
        assert_int_equal(seen_by[root].completed, 1);
        assert_int_equal(seen_by[root].failed, 0);
        for (int i = 0; i < job.ranks; i++)
            assert_int_equal(seen_by[i].count, i != root && job.f[i] != NULL);
    }
}

/* Goal: a broadcast reaches all who are there when some have left, whether its root and those that
 * pass it on know of it yet or not. Method: one after the other leaves a job of nine; before the
 * first broadcast nobody, only rank 8, or all but rank 8 are polled until they know. */
static void test_request_broadcast_goes_around_those_that_left(void **state)
{
    (void)state;
    static const unsigned knowing[] = {0, 0x100, 0xff};
    static const int leavers[] = {4, 0, 1, 6};
    for (size_t k = 0; k < sizeof(knowing) / sizeof(knowing[0]); k++) {
        open_all(9);
        for (size_t i = 0; i < sizeof(leavers) / sizeof(leavers[0]); i++) {
            fy_rank_destroy(job.f[leavers[i]]);
            job.f[leavers[i]] = NULL;
            settle_among(knowing[k], leavers[i]);
            broadcast_from_all(leavers[i]);
        }
        for (int i = 0; i < job.ranks; i++)
            if (job.f[i] != NULL)
                fy_rank_destroy(job.f[i]);
        fy_segment_unmap(job.segment);
    }
}

/* Every rank sends synchronously to the next one, around and around. */
static void send_around(ferry *f, void *arg)
{
    (void)arg;
    seen s = {.count = 0};
    register_all(f, &s);
    int next = (ferry_rank(f) + 1) % ferry_ranks(f);
    int before = (ferry_rank(f) + ferry_ranks(f) - 1) % ferry_ranks(f);
    for (uint64_t i = 0; i < 300; i++) {
        const ferry_message m = {.handler = s.note, .word_count = 1, .words = {i}};
        CHECK(ferry_request_sync(f, next, &m) == 0);
    }
    CHECK(ferry_quiesce(f) == 0);
    CHECK(s.count == 300 && s.source[0] == before);
}

/* Goal: ranks that send synchronously to each other, or in a ring, all come back. */
static void test_sync_rings_do_not_deadlock(void **state)
{
    (void)state;
    static const int ranks[] = {1, 2, 3, 8};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++)
        run_ranks(ranks[i], 8, 1024, send_around, NULL);
}

/* All ranks broadcast at once, tracked. */
static void broadcast_at_once(ferry *f, void *arg)
{
    (void)arg;
    seen s = {.count = 0};
    register_all(f, &s);
    unsigned char data[600] = {0};
    const ferry_message m = {.handler = s.note, .data = data, .size_bytes = sizeof(data)};
    for (int i = 0; i < 100; i++) {
        ferry_op op;
        const ferry_track track = track_of(&s, &op);
        CHECK(ferry_request_broadcast(f, &m, &track) == 0);
        if (i % 4 == 0)
            CHECK(ferry_op_wait(f, &op) == 0);
    }
    CHECK(ferry_quiesce(f) == 0);
    while (s.completed < 100)
        CHECK(ferry_wait(f, FERRY_FOREVER) >= 0);
    CHECK(s.count == 100 * (ferry_ranks(f) - 1));
    CHECK(ferry_barrier(f) == 0);
}

static void test_request_broadcast_by_all_at_once(void **state)
{
    (void)state;
    run_ranks(2, 8, 1024, broadcast_at_once, NULL);
    run_ranks(7, 8, 1024, broadcast_at_once, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_broadcast_reaches_all_but_the_root),
        cmocka_unit_test(test_request_broadcast_completes_after_the_last_handler),
        cmocka_unit_test(test_request_broadcast_passes_on_under_a_tag_poll),
        cmocka_unit_test(test_request_broadcast_from_handlers),
        cmocka_unit_test(test_request_broadcast_goes_around_those_that_left),
        cmocka_unit_test(test_request_broadcast_rejects_what_does_not_fit),
        cmocka_unit_test(test_op_cancel_ends_it_here),
        cmocka_unit_test(test_sync_rings_do_not_deadlock),
        cmocka_unit_test(test_request_broadcast_by_all_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
