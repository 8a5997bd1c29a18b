/* Goal: without memory a call fails cleanly or waits, and nothing is lost, twice or leaked. Method:
 * a session of two ranks, driven by one thread, is repeated with the first, second, ... allocation
 * failing once, until a session needs fewer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "failing.h"
#include "ranks.h"
#include "starved.h"

typedef struct counts {
    ferry_handler note, burst;
    int notes, sent_by_burst, submitted, ended;
} counts;

static void on_note(ferry *f, int source, const ferry_message *message)
{
    (void)source, (void)message;
    ((counts *)ferry_user_data(f))->notes++;
}

/* Sends back more than the ring takes; counts what was accepted. */
static void on_burst(ferry *f, int source, const ferry_message *message)
{
    (void)message;
    counts *c = ferry_user_data(f);
    for (int i = 0; i < 300; i++) {
        const ferry_message m = {.handler = c->note, .data = &i, .size_bytes = sizeof(i)};
        int error = ferry_request_send(f, source, &m, NULL);
        CHECK(error == 0 || error == FERRY_ENOMEM);
        c->sent_by_burst += error == 0;
    }
}

static void on_submitted(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f, (void)receipt;
    ((counts *)arg)->submitted++;
}

static void on_ended(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    CHECK(receipt->error == 0);
    ((counts *)arg)->ended++;
}

static bool register_all(ferry *f, counts *c)
{
    ferry_user_data_set(f, c);
    return ferry_handler_register(f, "note", on_note, &c->note) == 0 &&
           ferry_handler_register(f, "burst", on_burst, &c->burst) == 0;
}

/* Calls of all sorts; what was accepted must be carried out once, what was refused never. */
static void exchange(ferry *f[2], counts c[2])
{
    static unsigned char data[3000], target[3000];
    const ferry_track track = {.size = sizeof(track),
                               .submitted = on_submitted,
                               .submitted_arg = &c[0],
                               .completed = on_ended,
                               .completed_arg = &c[0],
                               .failed = on_ended,
                               .failed_arg = &c[0]};
    int accepted = 0, notes = 0, gets = 0;
    for (int rank = 0; rank < 2; rank++) {
        const ferry_message m = {.handler = c[0].note, .data = data, .size_bytes = sizeof(data)};
        int error = ferry_request_send(f[0], rank, &m, &track);
        CHECK(error == 0 || error == FERRY_ENOMEM);
        accepted += error == 0;
        notes += error == 0;
    }
    const ferry_message burst = {.handler = c[0].burst};
    int burst_error = ferry_request_send(f[0], 1, &burst, NULL);
    CHECK(burst_error == 0 || burst_error == FERRY_ENOMEM);
    bool registered = ferry_memory_register(f[1], target, sizeof(target)) == 0;
    if (registered) {
        accepted += ferry_put(f[0], 1, target, data, sizeof(data), &track) == 0;
        gets = ferry_get(f[0], 1, data, target, sizeof(data), &track) == 0;
    }
    settle_both(f);
    CHECK(c[0].notes + c[1].notes == notes + c[1].sent_by_burst);
    CHECK(c[0].submitted == accepted && c[0].ended == accepted + gets);
    CHECK(f[0]->head.work_created + f[1]->head.work_created ==
          f[0]->head.work_finished + f[1]->head.work_finished);
    CHECK(f[0]->ops_table.pending == 0);
}

static void session(ferry *f[2])
{
    static counts c[2];
    memset(c, 0, sizeof c);
    if (register_all(f[0], &c[0]) && register_all(f[1], &c[1]))
        exchange(f, c);
}

static void test_each_allocation_may_fail(void **state)
{
    (void)state;
    starve("stealing", session, 20);
}

/* Goal: while held requests cannot be handled, newer ones of their source are not either. Method:
 * a tracked request that a tag-selective poll held finds no memory for its end; polls that cannot
 * allocate leave it and what came later, and the next ones take them in order. */
static void test_held_requests_keep_their_place_without_memory(void **state)
{
    (void)state;
    test_job job;
    counts c[2] = {{.notes = 0}};
    job_open(&job, 2, 8, 1024);
    for (int rank = 0; rank < 2; rank++)
        CHECK(register_all(job.f[rank], &c[rank]));
    ferry_op op;
    const ferry_track track = {.size = sizeof(track), .op = &op};
    const ferry_message m = {.handler = c[0].note};
    CHECK(ferry_request_send(job.f[0], 1, &m, &track) == 0);
    CHECK(ferry_poll_tag(job.f[1], 1) == 0);
    CHECK(ferry_request_send(job.f[0], 1, &m, NULL) == 0);
    void *free_packets = job.f[1]->packets.free_items;
    job.f[1]->packets.free_items = NULL;
    failing_all(true);
    CHECK(ferry_poll(job.f[1]) == 0 && ferry_poll(job.f[1]) == 0);
    failing_all(false);
    job.f[1]->packets.free_items = free_packets;
    CHECK(c[1].notes == 0);
    job_settle(&job);
    CHECK(c[1].notes == 2);
    CHECK(ferry_op_test(job.f[0], &op) == 0);
    job_close(&job);
}

/* A copy that a rank keeps, for itself or to pass on, comes from a pool up to this size. */
enum { KEPT_MAX_BYTES = 100 };

/* One of each: a request of words, of data short and long, tracked; short ones to oneself and to
 * all others; a put and a get by copy and by frames; a collective. */
static void send_each(ferry *f, const counts *c, unsigned char *shared, unsigned char *registered)
{
    static unsigned char data[100000];
    static uint64_t ones[2], sums[2];
    static const size_t sizes[] = {0, 8, 100, 3000, sizeof(data)};
    int rank = ferry_rank(f);
    ferry_op ops[4];
    ferry_track track = {.size = sizeof(track)};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const ferry_message m = {
            .handler = c->note, .word_count = 1, .data = data, .size_bytes = sizes[i]};
        CHECK(ferry_request_send(f, 1 - rank, &m, NULL) == 0);
        if (sizes[i] > KEPT_MAX_BYTES)
            continue;
        CHECK(ferry_request_send(f, rank, &m, NULL) == 0);
        CHECK(ferry_request_broadcast(f, &m, NULL) == 0);
    }
    const ferry_message tracked = {.handler = c->note, .data = data, .size_bytes = 300};
    track.op = &ops[0];
    CHECK(ferry_request_send(f, 1 - rank, &tracked, &track) == 0);
    CHECK(ferry_put(f, 1 - rank, shared, data, 3000, NULL) == 0);
    CHECK(ferry_get(f, 1 - rank, data, shared, 3000, NULL) == 0);
    track.op = &ops[1];
    CHECK(ferry_put(f, 1 - rank, registered, data, 3000, &track) == 0);
    track.op = &ops[2];
    CHECK(ferry_get(f, 1 - rank, data, registered, 3000, &track) == 0);
    const ferry_collective all = {.size = sizeof(all),
                                  .kind = FERRY_ALLREDUCE,
                                  .reduction = FERRY_SUM,
                                  .in = &ones[rank],
                                  .out = &sums[rank],
                                  .count = 1,
                                  .type = FERRY_UINT64};
    track.op = &ops[3];
    CHECK(ferry_collective_start(f, &all, &track) == 0);
}

/* Goal: traffic of a kind that has been before allocates nothing, on either side. Method: the same
 * is sent again and again while every allocation is refused. */
static void test_traffic_allocates_nothing(void **state)
{
    (void)state;
    enum { ROUNDS = 50, NOTES = 5 + 3 + 3 + 1 };
    static unsigned char registered[2][3000];
    test_job job;
    counts c[2] = {{.notes = 0}};
    void *shared[2];
    job_open(&job, 2, 0, 0);
    for (int rank = 0; rank < 2; rank++) {
        CHECK(register_all(job.f[rank], &c[rank]));
        CHECK(ferry_alloc(job.f[rank], 3000, &shared[rank]) == 0);
        CHECK(ferry_memory_register(job.f[rank], registered[rank], 3000) == 0);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int rank = 0; rank < 2; rank++)
            send_each(job.f[rank], &c[rank], shared[1 - rank], registered[1 - rank]);
        job_settle(&job);
        for (int rank = 0; rank < 2; rank++)
            CHECK(c[rank].notes == (round + 1) * NOTES && job.f[rank]->ops_table.pending == 0);
        failing_all(true);
    }
    failing_all(false);
    job_close(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_allocation_may_fail),
        cmocka_unit_test(test_held_requests_keep_their_place_without_memory),
        cmocka_unit_test(test_traffic_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
