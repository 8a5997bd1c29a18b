/* Goal: collectives give the right result however ranks are delayed, and say so when ranks
 * disagree. Method: ranks are threads; delays come from seeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "ranks.h"

/* Back to back, with random delays: no two calls mix. The data say which call they belong to. */
static void mix(ferry *f, void *arg)
{
    uint64_t rounds = *(uint64_t *)arg, common = 1, own = 100 + (uint64_t)ferry_rank(f);
    int ranks = ferry_ranks(f);
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t choice = next_random(&common);
        loiter(&own, 100);
        if (choice % 3 == 0) {
            CHECK(ferry_barrier(f) == 0);
        } else if (choice % 3 == 1) {
            int root = (int)(choice / 3 % (uint64_t)ranks);
            uint64_t values[40];
            for (int j = 0; j < 40; j++)
                values[j] = ferry_rank(f) == root ? i * 1000 + (uint64_t)j : 0;
            CHECK(ferry_broadcast(f, root, values, sizeof(values)) == 0);
            for (int j = 0; j < 40; j++)
                CHECK(values[j] == i * 1000 + (uint64_t)j);
        } else {
            int64_t value[2] = {(int64_t)i + ferry_rank(f), -ferry_rank(f)}, sum[2];
            CHECK(ferry_allreduce(f, FERRY_INT64, FERRY_SUM, value, sum, 2) == 0);
            CHECK(sum[0] == ranks * (int64_t)i + ranks * (ranks - 1) / 2);
            CHECK(sum[1] == -ranks * (ranks - 1) / 2);
        }
    }
}

static void test_collective_calls_never_mix(void **state)
{
    (void)state;
    static const int ranks[] = {1, 2, 3, 4, 7, 16};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        uint64_t rounds = ranks[i] > 4 ? 200 : 1000;
        run_ranks(ranks[i], 8, 1024, mix, &rounds);
    }
}

/* Everybody counts itself in before the barrier; nobody leaves before all are in. */
static void meet(ferry *f, void *arg)
{
    _Atomic int *in = arg;
    uint64_t random = (uint64_t)ferry_rank(f);
    for (int round = 1; round <= 200; round++) {
        loiter(&random, 50);
        atomic_fetch_add(in, 1);
        CHECK(ferry_barrier(f) == 0);
        CHECK(atomic_load(in) >= round * ferry_ranks(f));
    }
}

static void test_barrier_lets_nobody_go_early(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 9; ranks += 2) {
        _Atomic int in = 0;
        run_ranks(ranks, 0, 0, meet, &in);
    }
}

static void spread(ferry *f, void *arg)
{
    (void)arg;
    static const size_t sizes[] = {0, 1, 100, 65536, 65537, 200000, 1000003};
    unsigned char *data = malloc(1000003);
    CHECK(data != NULL);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int root = (int)(i % (size_t)ferry_ranks(f));
        for (size_t j = 0; j < sizes[i]; j++)
            data[j] = ferry_rank(f) == root ? (unsigned char)(j * 31 + i) : 0;
        CHECK(ferry_broadcast(f, root, data, sizes[i]) == 0);
        for (size_t j = 0; j < sizes[i]; j++)
            CHECK(data[j] == (unsigned char)(j * 31 + i));
    }
    free(data);
}

static void test_broadcast_of_any_size(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 6; ranks++)
        run_ranks(ranks, 8, 1024, spread, NULL);
}

/* A root far ahead does not fill the memory of a rank that is late. */
static void run_ahead(ferry *f, void *arg)
{
    (void)arg;
    uint64_t value = 0;
    if (ferry_rank(f) == 1)
        for (int i = 0; i < 2000; i++)
            CHECK(ferry_poll(f) >= 0);
    for (uint64_t i = 0; i < 1000; i++) {
        if (ferry_rank(f) == 0)
            value = i;
        CHECK(ferry_broadcast(f, 0, &value, sizeof(value)) == 0 && value == i);
        size_t waiting = f->collectives.early.bytes;
        CHECK(waiting < 64 * 1024);
    }
}

static void test_broadcast_root_cannot_run_away(void **state)
{
    (void)state;
    run_ranks(3, 0, 0, run_ahead, NULL);
}

/* The value of rank `rank` at `index`: magnitudes that make the order of additions visible. */
static double value_of(int rank, size_t index)
{
    static const double scales[] = {1e16, 1.0, -1e16, 3.7, 1e-9};
    return scales[(size_t)rank % 5] * (double)(index % 13 + 1);
}

/* The same expression as allreduce: runs of neighbouring ranks, lower before higher. */
static double expected_sum(int first, int count, int ranks, size_t index)
{
    int power = 1;
    while (power <= ranks / 2)
        power *= 2;
    int rest = ranks - power;
    if (count == 1 && first < rest)
        return value_of(2 * first, index) + value_of(2 * first + 1, index);
    if (count == 1)
        return value_of(first + rest, index);
    return expected_sum(first, count / 2, ranks, index) +
           expected_sum(first + count / 2, count / 2, ranks, index);
}

static void reduce(ferry *f, void *arg)
{
    (void)arg;
    static const size_t counts[] = {0, 1, 32, 33, 5000, 20000};
    int ranks = ferry_ranks(f), power = 1;
    while (power <= ranks / 2)
        power *= 2;
    double *in = malloc(20000 * sizeof(double)), *out = malloc(20000 * sizeof(double));
    double *reduced = malloc(20000 * sizeof(double));
    CHECK(in != NULL && out != NULL && reduced != NULL);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (size_t j = 0; j < counts[i]; j++)
            in[j] = value_of(ferry_rank(f), j);
        CHECK(ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, in, out, counts[i]) == 0);
        for (size_t j = 0; j < counts[i]; j++)
            CHECK(out[j] == expected_sum(0, power, ranks, j));
        int root = (int)i % ranks;
        memset(reduced, 0, 20000 * sizeof(double));
        CHECK(ferry_reduce(f, root, FERRY_DOUBLE, FERRY_SUM, in, reduced, counts[i]) == 0);
        for (size_t j = 0; j < counts[i]; j++)
            CHECK(reduced[j] == (ferry_rank(f) == root ? out[j] : 0));
        CHECK(ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, in, in, counts[i]) == 0);
        CHECK(counts[i] == 0 || memcmp(in, out, counts[i] * sizeof(double)) == 0);
    }
    free(in);
    free(out);
    free(reduced);
}

static void test_allreduce_is_the_same_everywhere(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 9; ranks++)
        run_ranks(ranks, 0, 0, reduce, NULL);
}

static void extremes(ferry *f, void *arg)
{
    (void)arg;
    int ranks = ferry_ranks(f), rank = ferry_rank(f);
    int32_t i32 = rank == 0 ? INT32_MIN : rank;
    uint64_t u64 = rank == 0 ? UINT64_MAX : (uint64_t)rank;
    int64_t i64 = INT64_MAX;
    double d = rank;
    CHECK(ferry_allreduce(f, FERRY_INT32, FERRY_MIN, &i32, &i32, 1) == 0 && i32 == INT32_MIN);
    CHECK(ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, &u64, &u64, 1) == 0 && u64 == UINT64_MAX);
    CHECK(ferry_allreduce(f, FERRY_DOUBLE, FERRY_MAX, &d, &d, 1) == 0 && d == ranks - 1);
    CHECK(ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &i64, &i64, 1) == 0);
    CHECK(i64 == (int64_t)((uint64_t)INT64_MAX * (uint64_t)ranks));
    int32_t least = rank;
    CHECK(ferry_allreduce(f, FERRY_INT32, FERRY_MIN, &least, &least, 1) == 0 && least == 0);
}

static void test_allreduce_types_and_reductions(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++)
        run_ranks(ranks, 0, 0, extremes, NULL);
}

static void ignore(ferry *f, int source, const ferry_message *message)
{
    (void)f, (void)source, (void)message;
}

/* Rank 1 makes another call than the rest; all are told, and the next call works again. */
static void disagree(ferry *f, void *arg)
{
    int how = *(int *)arg, error;
    bool odd = ferry_rank(f) == 1;
    double values[5] = {1, 2, 3, 4, 5}, all[5];
    ferry_handler extra;
    switch (how) {
    case 0:
        error =
            odd ? ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, values, values, 3) : ferry_barrier(f);
        break;
    case 1:
        error = ferry_allreduce(f, odd ? FERRY_UINT64 : FERRY_DOUBLE, FERRY_SUM, values, values, 1);
        break;
    case 2:
        error = ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, values, values, odd ? 2 : 4);
        break;
    case 3: /* on 5 ranks too much for the board */
        error = odd ? ferry_alltoall(f, values, 8, all) : ferry_allgather(f, values, 8, all);
        break;
    default:
        if (odd)
            CHECK(ferry_handler_register(f, "extra", ignore, &extra) == 0);
        error = ferry_barrier(f);
    }
    CHECK(error == FERRY_EINVAL);
    CHECK(strstr(ferry_error_message(f), how == 4 ? "registered different handlers" : "rank 1") !=
          NULL);
    if (how == 4 && !odd)
        CHECK(ferry_handler_register(f, "extra", ignore, &extra) == 0);
    CHECK(ferry_barrier(f) == 0);
}

static void test_collective_disagreement_is_told_to_all(void **state)
{
    (void)state;
    for (int how = 0; how < 5; how++)
        for (int ranks = 2; ranks <= 5; ranks++)
            run_ranks(ranks, 0, 0, disagree, &how);
}

static void misuse(ferry *f, void *arg)
{
    (void)arg;
    double d = 0;
    CHECK(ferry_broadcast(f, ferry_ranks(f), &d, 8) == FERRY_EINVAL);
    CHECK(strstr(ferry_error_message(f), "outside 0..") != NULL);
    CHECK(ferry_broadcast(f, 0, NULL, 8) == FERRY_EINVAL);
    CHECK(ferry_allreduce(f, (ferry_type)9, FERRY_SUM, &d, &d, 1) == FERRY_EINVAL);
    CHECK(ferry_allreduce(f, FERRY_DOUBLE, (ferry_reduction)9, &d, &d, 1) == FERRY_EINVAL);
    CHECK(ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, NULL, &d, 1) == FERRY_EINVAL);
    CHECK(ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, &d, &d, SIZE_MAX / 8) == FERRY_EINVAL);
}

static void test_collective_refuses_bad_arguments(void **state)
{
    (void)state;
    run_ranks(2, 0, 0, misuse, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collective_calls_never_mix),
        cmocka_unit_test(test_barrier_lets_nobody_go_early),
        cmocka_unit_test(test_broadcast_of_any_size),
        cmocka_unit_test(test_broadcast_root_cannot_run_away),
        cmocka_unit_test(test_allreduce_is_the_same_everywhere),
        cmocka_unit_test(test_allreduce_types_and_reductions),
        cmocka_unit_test(test_collective_disagreement_is_told_to_all),
        cmocka_unit_test(test_collective_refuses_bad_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
