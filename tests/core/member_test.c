/* Goal: when ranks have gone, those that are left agree upon the members at the next ferry_quiesce,
 * and all collectives work among them. Method: some ranks, one thread each, leave without a word;
 * the others check every kind of call, at the board and by frames, against what they can compute.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/kinds.h"
#include "core/outgoing.h"
#include "port/port.h"
#include "ranks.h"

typedef struct run {
    int ranks;
    uint64_t leave[4];   /* sets of ranks that go before each round */
    _Atomic int told[4]; /* how often those that stay were told, by round */
} run;

typedef struct member {
    const run *run;
    int gone;
} member;

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    member *m = arg;
    CHECK(event->rank != ferry_rank(f) && !event->died);
    m->gone++;
}

/* Whether `rank` is there after `round`. */
static bool stays(const run *r, int rank, int round)
{
    for (int i = 0; i <= round; i++)
        if (r->leave[i] >> rank & 1)
            return false;
    return true;
}

static void check_members(ferry *f, const run *r, int round)
{
    int place = 0;
    for (int rank = 0; rank < r->ranks; rank++) {
        bool in = stays(r, rank, round);
        CHECK(ferry_member_place(f, rank) == (in ? place : -1));
        if (in)
            CHECK(ferry_member_rank(f, place++) == rank);
    }
    CHECK(ferry_member_count(f) == place && ferry_member_rank(f, place) == -1);
    CHECK(ferry_member_place(f, r->ranks) == -1 && ferry_member_rank(f, -1) == -1);
}

/* `count` values of each member; what they must come to is computed from the list of members. */
static void check_calls(ferry *f, size_t count)
{
    int size = ferry_member_count(f), self = ferry_member_place(f, ferry_rank(f));
    int root = ferry_member_rank(f, size - 1);
    int64_t *in = calloc(count, sizeof(*in)), *out = calloc(count * (size_t)size, sizeof(*out));
    int64_t sum = 0, below = 0;
    CHECK(in != NULL && out != NULL);
    for (int i = 0; i < size; i++) {
        sum += ferry_member_rank(f, i) + 1;
        below += i < self ? ferry_member_rank(f, i) + 1 : 0;
    }
    for (size_t i = 0; i < count; i++)
        in[i] = ferry_rank(f) + 1;
    CHECK(ferry_barrier(f) == 0);
    CHECK(ferry_allreduce(f, FERRY_INT64, FERRY_SUM, in, out, count) == 0);
    CHECK(out[0] == sum && out[count - 1] == sum);
    CHECK(ferry_reduce(f, root, FERRY_INT64, FERRY_SUM, in, out, count) == 0);
    CHECK(out[count - 1] == sum);
    out[0] = 0;
    CHECK(ferry_scan(f, FERRY_INT64, FERRY_SUM, in, out, count) == 0);
    CHECK(out[0] == below);
    CHECK(ferry_allgather(f, in, count * sizeof(*in), out) == 0);
    for (int i = 0; i < size; i++)
        CHECK(out[((size_t)i + 1) * count - 1] == ferry_member_rank(f, i) + 1);
    memset(out, 0, count * (size_t)size * sizeof(*out));
    CHECK(ferry_gather(f, root, in, count * sizeof(*in), out) == 0);
    for (int i = 0; i < size && ferry_rank(f) == root; i++)
        CHECK(out[(size_t)i * count] == ferry_member_rank(f, i) + 1);
    CHECK(ferry_broadcast(f, root, in, count * sizeof(*in)) == 0);
    CHECK(in[0] == root + 1 && in[count - 1] == root + 1);
    free(in);
    free(out);
}

/* A call that is started, and ends in later polls. */
static void check_started(ferry *f)
{
    int64_t in = ferry_rank(f) + 1, out = 0, sum = 0;
    for (int i = 0; i < ferry_member_count(f); i++)
        sum += ferry_member_rank(f, i) + 1;
    ferry_op op = {0};
    const ferry_track track = {.size = sizeof(track), .op = &op};
    const ferry_collective what = {.size = sizeof(what),
                                   .kind = FERRY_ALLREDUCE,
                                   .in = &in,
                                   .out = &out,
                                   .count = 1,
                                   .type = FERRY_INT64,
                                   .reduction = FERRY_SUM};
    CHECK(ferry_collective_start(f, &what, &track) == 0);
    CHECK(ferry_op_wait(f, &op) == 0);
    CHECK(out == sum);
}

static void check_root_gone(ferry *f, const run *r, int round)
{
    for (int rank = 0; rank < r->ranks; rank++)
        if (!stays(r, rank, round)) {
            char byte = 0;
            CHECK(ferry_broadcast(f, rank, &byte, 1) == FERRY_EPEER);
        }
}

typedef struct rank_thread {
    fy_segment *segment;
    run *run;
    int rank;
    pthread_t thread;
} rank_thread;

static void *run_rank(void *arg)
{
    rank_thread *t = arg;
    run *r = t->run;
    member m = {.run = r};
    ferry *f = open_rank(t->segment, t->rank, "stealing");
    CHECK(ferry_peer_watch(f, on_peer, &m) == 0);
    CHECK(ferry_quiesce(f) == 0);
    for (int round = 0; round < 4; round++) {
        if (r->leave[round] >> t->rank & 1) {
            fy_rank_destroy(f);
            return NULL;
        }
        CHECK(ferry_quiesce(f) == 0);
        int expected = 0;
        for (int rank = 0; rank < r->ranks; rank++)
            expected += !stays(r, rank, round);
        /* A rank that goes late may be known to be gone only at the next one. */
        while (m.gone < expected)
            (void)ferry_wait(f, 1000000);
        CHECK(ferry_quiesce(f) == 0);
        check_members(f, r, round);
        check_calls(f, 1);
        check_calls(f, 3);
        check_calls(f, 40000);
        check_started(f);
        check_root_gone(f, r, round);
    }
    CHECK(ferry_close(f) == 0);
    return NULL;
}

/* Without ferry_peer_watch. Some leave while the others are closing already. */
static void *leave_or_close(void *arg)
{
    rank_thread *t = arg;
    ferry *f = open_rank(t->segment, t->rank, NULL);
    if (t->run->leave[0] >> t->rank & 1)
        CHECK(ferry_leave(f) == 0);
    else
        CHECK(ferry_close(f) == 0);
    return NULL;
}

static void check_run(run *r, void *(*body)(void *))
{
    rank_thread threads[TEST_RANKS_MAX];
    fy_segment *segment = make_segment(r->ranks, 0, 0);
    for (int i = 0; i < r->ranks; i++) {
        threads[i] = (rank_thread){.segment = segment, .run = r, .rank = i};
        CHECK(pthread_create(&threads[i].thread, NULL, body, &threads[i]) == 0);
    }
    for (int i = 0; i < r->ranks; i++)
        CHECK(pthread_join(threads[i].thread, NULL) == 0);
    fy_segment_unmap(segment);
}

static void test_member_collectives_among_those_left(void **state)
{
    (void)state;
    check_run(&(run){.ranks = 2, .leave = {1}}, run_rank);
    check_run(&(run){.ranks = 4, .leave = {0, 4, 1, 0}}, run_rank);
    check_run(&(run){.ranks = 9, .leave = {1, 0x12, 0x100, 0x40}}, run_rank);
    check_run(&(run){.ranks = 7, .leave = {0, 0x7e}}, run_rank);
}

static void test_member_closes_beside_one_that_leaves(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        check_run(&(run){.ranks = 2, .leave = {1}}, leave_or_close);
        check_run(&(run){.ranks = 3, .leave = {4}}, leave_or_close);
        check_run(&(run){.ranks = 6, .leave = {0x15}}, leave_or_close);
    }
}

/* Frames that the library sends by itself find that their target has gone. */
static void test_member_that_left_spoils_no_message(void **state)
{
    const fy_frame frames[] = {{.kind = FY_KIND_REFUSAL}, {.kind = FY_KIND_COLLECTIVE}};
    char message[FY_ERROR_BYTES];
    test_job job;
    (void)state;
    job_open(&job, 2, 0, 0);
    fy_rank_destroy(job.f[1]);
    job.ranks = 1;
    assert_int_equal(ferry_broadcast(job.f[0], 7, message, 1), FERRY_EINVAL);
    strcpy(message, ferry_error_message(job.f[0]));
    assert_int_equal(fy_send(job.f[0], FY_CONTROL, 1, &frames[0]), FERRY_EPEER);
    assert_int_equal(fy_send(job.f[0], FY_DATA, 1, &frames[1]), FERRY_EPEER);
    assert_string_equal(ferry_error_message(job.f[0]), message);
    job_close(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_member_collectives_among_those_left),
        cmocka_unit_test(test_member_closes_beside_one_that_leaves),
        cmocka_unit_test(test_member_that_left_spoils_no_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
