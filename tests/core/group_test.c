/* Goal: groups are what group.h says, and what goes wrong with them is named. Method: ranks are
 * threads; values against plain loops are the part of tests/programs/groups.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ranks.h"

static int sum_over(ferry *f, ferry_group *group, int64_t *sum)
{
    int64_t one = 1;
    ferry_collective c = FERRY_COLLECTIVE_DEFAULTS;
    c.kind = FERRY_ALLREDUCE;
    c.group = group;
    c.in = &one;
    c.out = sum;
    c.count = 1;
    c.type = FERRY_INT64;
    return ferry_collective_run(f, &c);
}

static int meet(ferry *f, ferry_group *group)
{
    ferry_collective c = FERRY_COLLECTIVE_DEFAULTS;
    c.group = group;
    return ferry_collective_run(f, &c);
}

static void expect(ferry *f, int error, int expected, const char *text)
{
    CHECK(error == expected);
    if (strstr(ferry_error_message(f), text) == NULL)
        fprintf(stderr, "\"%s\" does not say: %s\n", ferry_error_message(f), text);
    CHECK(strstr(ferry_error_message(f), text) != NULL);
}

static void run_split(ferry *f, void *arg)
{
    (void)arg;
    int rank = ferry_rank(f), ranks = ferry_ranks(f);
    ferry_group *half, *none, *turned, *single;
    CHECK(ferry_group_split(f, NULL, rank % 2, 0, &half) == 0);
    CHECK(ferry_group_count(f, half) == (ranks + 1 - rank % 2) / 2);
    CHECK(ferry_group_place(f, half, rank) == rank / 2);
    CHECK(ferry_group_rank(f, half, rank / 2) == rank && ferry_group_rank(f, half, -1) == -1);
    CHECK(ferry_group_place(f, half, rank ^ 1) == -1 && ferry_group_place(f, half, ranks) == -1);
    int64_t sum = 0;
    CHECK(sum_over(f, half, &sum) == 0 && sum == ferry_group_count(f, half));
    CHECK(ferry_group_split(f, NULL, rank == 0 ? 7 : FERRY_NO_COLOUR, 0, &none) == 0);
    CHECK((none != NULL) == (rank == 0));
    CHECK(ferry_group_split(f, half, 0, -rank, &turned) == 0);
    CHECK(ferry_group_place(f, turned, rank) == ferry_group_count(f, half) - 1 - rank / 2);
    CHECK(ferry_group_create(f, NULL, &(int){ranks - 1}, 1, &single) == 0);
    CHECK((single != NULL) == (rank == ranks - 1));
    CHECK(single == NULL || meet(f, single) == 0);
    CHECK(ferry_group_count(f, NULL) == ranks && ferry_group_place(f, NULL, rank) == rank);
    ferry_group_free(f, half);
    ferry_group_free(f, none);
    ferry_group_free(f, NULL);
    CHECK(sum_over(f, turned, &sum) == 0); /* and is left to ferry_close */
}

static void test_group_splits_by_colour_and_key(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 9; ranks++)
        run_ranks(ranks, 0, 0, run_split, NULL);
}

/* The short forms, over all members: pieces of place + 1 bytes. */
static void run_short_forms(ferry *f, void *arg)
{
    (void)arg;
    int rank = ferry_rank(f), ranks = ferry_ranks(f), last = ranks - 1;
    size_t own = (size_t)rank + 1, sizes[TEST_RANKS_MAX], at = 0;
    unsigned char mine[TEST_RANKS_MAX], all[TEST_RANKS_MAX * TEST_RANKS_MAX], piece[TEST_RANKS_MAX];
    for (int i = 0; i < ranks; i++)
        sizes[i] = (size_t)i + 1;
    memset(mine, rank, sizeof(mine));
    for (int i = 0; i < ranks; at += sizes[i++])
        memset(all + at, i, sizes[i]);
    memset(piece, 99, sizeof(piece));
    CHECK(ferry_scatterv(f, last, rank == last ? all : NULL, sizes, piece, own) == 0);
    CHECK(memcmp(piece, mine, own) == 0 && piece[own] == 99);
    memset(all, 99, at);
    CHECK(ferry_allgatherv(f, mine, own, all, sizes) == 0);
    CHECK(all[0] == 0 && all[at - 1] == last && (ranks < 2 || (all[1] == 1 && all[2] == 1)));
    memset(all, 99, at);
    CHECK(ferry_gatherv(f, 0, mine, own, rank == 0 ? all : NULL, sizes) == 0);
    CHECK(rank != 0 || all[at - 1] == last);
    for (int i = 0; i < ranks; i++)
        mine[i] = (unsigned char)(rank * 16 + i);
    CHECK(ferry_alltoall(f, mine, 1, piece) == 0);
    for (int i = 0; i < ranks; i++)
        CHECK(piece[i] == i * 16 + rank);
    memset(sizes, 0, sizeof(sizes));
    sizes[0] = 1;
    CHECK(ferry_alltoallv(f, mine, sizes, piece,
                          rank == 0 ? (size_t[16]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
                                    : sizes + 1) == 0);
    CHECK(rank != 0 || piece[last] == last * 16);
    for (int i = 0; i < ranks; i++)
        mine[i] = (unsigned char)i;
    CHECK(ferry_scatter(f, 0, mine, 1, piece) == 0 && piece[0] == rank);
    int32_t values[TEST_RANKS_MAX], sum = -1;
    for (int i = 0; i < ranks; i++)
        values[i] = i * 100 + rank;
    CHECK(ferry_reduce_scatter(f, FERRY_INT32, FERRY_SUM, values, &sum, 1) == 0);
    CHECK(sum == ranks * rank * 100 + ranks * last / 2);
    CHECK(ferry_scan_inclusive(f, FERRY_INT32, FERRY_MAX, &rank, &sum, 1) == 0 && sum == rank);
}

static void test_group_short_forms(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 12; ranks++)
        run_ranks(ranks, 0, 0, run_short_forms, NULL);
}

/* If one rank alone makes a mistake, the call refuses it before it sends anything. */
static void run_misuse(ferry *f, void *arg)
{
    (void)arg;
    ferry_group *group = NULL;
    const int outside[] = {0, 5}, twice[] = {0, 1, 0};
    expect(f, ferry_group_split(f, NULL, -2, 0, &group), FERRY_EINVAL, "colour -2");
    expect(f, ferry_group_split(f, NULL, 0, 0, NULL), FERRY_EINVAL, "result is missing");
    expect(f, ferry_group_create(f, NULL, outside, 2, &group), FERRY_EINVAL, "rank 5 is not in");
    expect(f, ferry_group_create(f, NULL, twice, 3, &group), FERRY_EINVAL, "rank 0 is listed");
    expect(f, ferry_group_create(f, NULL, NULL, 3, &group), FERRY_EINVAL, "3 ranks at");
    CHECK(group == NULL);
    size_t sizes[3] = {1, 2, 3};
    char data[16] = {0}, out[16];
    size_t own = sizes[ferry_rank(f)];
    expect(f, ferry_allgatherv(f, data, own + 1, out, sizes), FERRY_EINVAL, "has");
    expect(f, ferry_allgatherv(f, data, own, out, NULL), FERRY_EINVAL, "out_counts are missing");
    expect(f, ferry_alltoallv(f, data, NULL, out, sizes), FERRY_EINVAL, "in_counts are missing");
    expect(f, ferry_alltoall(f, NULL, 8, out), FERRY_EINVAL, "8 values at NULL");
    expect(f, ferry_alltoall(f, data, SIZE_MAX / 2, out), FERRY_EINVAL, "too many");
    ferry_collective c = FERRY_COLLECTIVE_DEFAULTS;
    c.kind = FERRY_ALLREDUCE;
    c.in = data;
    c.out = out;
    c.count = 1;
    c.value_bytes = 12;
    expect(f, ferry_collective_run(f, &c), FERRY_EINVAL, "value_bytes is 12, and combine is NULL");
    c = (ferry_collective)FERRY_COLLECTIVE_DEFAULTS;
    CHECK(ferry_group_split(f, NULL, ferry_rank(f) == 0, 0, &group) == 0);
    c.kind = FERRY_SCATTER;
    c.group = group;
    c.root = ferry_rank(f) == 0 ? 1 : 0;
    expect(f, ferry_collective_run(f, &c), FERRY_EPEER, "is no member of the group");
}

static void test_group_misuse_is_told(void **state)
{
    (void)state;
    run_ranks(3, 0, 0, run_misuse, NULL);
}

/* Ranks disagree about a call over a group; all of it learn how, and its next call works. */
static void run_disagreement(ferry *f, void *arg)
{
    int how = *(const int *)arg, rank = ferry_rank(f);
    ferry_group *group;
    size_t sizes[4] = {8, 8, 8, 8}, wrong[4] = {8, 8, 24, 8};
    static const char zeros[64];
    char out[64];
    int error;
    if (how == 0) {
        const int list[] = {0, 1, rank == 1 ? 2 : 3};
        expect(f, ferry_group_create(f, NULL, list, 3, &group), FERRY_EINVAL, "another list");
        return;
    }
    CHECK(ferry_group_split(f, NULL, rank == 3, rank, &group) == 0);
    if (rank == 3)
        return;
    ferry_collective c = FERRY_COLLECTIVE_DEFAULTS;
    c.group = group;
    c.type = FERRY_BYTE;
    c.in = zeros;
    c.out = out;
    c.count = 8;
    c.kind = how == 1 && rank == 1 ? FERRY_ALLGATHER
             : how == 1            ? FERRY_ALLTOALL
             : how == 2            ? FERRY_ALLTOALLV
                                   : FERRY_ALLGATHERV;
    c.in_counts = sizes;
    c.out_counts = how == 2 && rank == 1 ? wrong : sizes;
    if (how == 3 && rank == 1)
        c.out_counts = wrong;
    error = ferry_collective_run(f, &c);
    if (how == 1)
        expect(f, error, FERRY_EINVAL, "called ferry_allgather of 8 bytes");
    if (how == 2 && rank == 1)
        expect(f, error, FERRY_EINVAL, "rank 2 sends 8 bytes to rank 1, which expects 24");
    if (how == 3)
        expect(f, error, FERRY_EINVAL, "called ferry_allgatherv of 40 bytes");
    if (how != 2)
        CHECK(strstr(ferry_error_message(f), "of a group of 3 ranks, first 0") != NULL);
    /* The others may have all their pieces by then. */
    CHECK(how != 2 || error == FERRY_EINVAL || (rank != 1 && error == 0));
    CHECK(meet(f, group) == 0);
}

static void test_group_disagreements_are_named(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++)
        run_ranks(4, 0, 0, run_disagreement, &how);
}

/* Goal: calls of many overlapping groups that are started together end each in its own group. */
static void run_many(ferry *f, void *arg)
{
    enum { MANY = 20 };
    (void)arg;
    ferry_group *groups[MANY];
    int64_t in[MANY], out[MANY];
    ferry_op ops[MANY] = {{0}};
    for (int i = 0; i < MANY; i++) {
        CHECK(ferry_group_split(f, NULL, ferry_rank(f) >> i % 3 & 1, 0, &groups[i]) == 0);
        in[i] = i;
        out[i] = -1;
        ferry_collective c = FERRY_COLLECTIVE_DEFAULTS;
        c.kind = FERRY_ALLREDUCE;
        c.group = groups[i];
        c.in = &in[i];
        c.out = &out[i];
        c.count = 1;
        c.type = FERRY_INT64;
        ferry_track track = FERRY_TRACK_DEFAULTS;
        track.op = &ops[i];
        CHECK(ferry_collective_start(f, &c, &track) == 0);
        if (i % 2 == 0) { /* the call goes on */
            CHECK(ferry_group_count(f, groups[i]) >= 1);
            in[i] = i;
        }
    }
    for (int i = MANY; i-- > 0;) {
        int count = ferry_group_count(f, groups[i]);
        if (i % 3 == 0)
            ferry_group_free(f, groups[i]);
        CHECK(ferry_op_wait(f, &ops[i]) == 0 && out[i] == (int64_t)i * count);
    }
}

static void test_group_calls_run_together(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks += 7)
        run_ranks(ranks, 8, 1024, run_many, NULL);
}

/* Goal: no group is made with a rank that has left, and the message says so. */
static void test_group_with_a_rank_that_is_gone_fails(void **state)
{
    (void)state;
    test_job job;
    job_open(&job, 2, 0, 0);
    fy_rank_destroy(job.f[1]);
    ferry_group *group;
    assert_int_equal(ferry_group_split(job.f[0], NULL, 0, 0, &group), FERRY_EPEER);
    assert_non_null(strstr(ferry_error_message(job.f[0]), "rank 1 "));
    fy_rank_destroy(job.f[0]);
    fy_segment_unmap(job.segment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_splits_by_colour_and_key),
        cmocka_unit_test(test_group_short_forms),
        cmocka_unit_test(test_group_misuse_is_told),
        cmocka_unit_test(test_group_disagreements_are_named),
        cmocka_unit_test(test_group_calls_run_together),
        cmocka_unit_test(test_group_with_a_rank_that_is_gone_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
