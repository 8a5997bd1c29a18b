/* Goal: every kind of collective, waiting and started, with built-in and own operations, gives what
 * collective.h says. Method: ranks are threads; results are compared with plain loops over all
 * ranks' values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/reduce.h"
#include "ranks.h"

/* A sanitizer looks at each byte. */
#ifdef FERRY_SANITIZED
enum { COUNT_MAX = 20000 };
#else
enum { COUNT_MAX = 60000 };
#endif

/* Each rank, index and salt has a value of its own. */
static uint64_t value_of(int rank, size_t index, uint64_t salt)
{
    return (salt * 1000003 + index * 64 + (uint64_t)rank) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Affine maps x -> ax + b, packed: their composition is associative, not commutative. */
typedef struct affine {
    uint32_t a, b;
} affine;

static char own_arg[1];

static void compose(void *arg, void *into, const void *low, const void *high, size_t count)
{
    CHECK(arg == own_arg);
    for (size_t i = 0; i < count; i++) {
        affine l = ((const affine *)low)[i], h = ((const affine *)high)[i];
        ((affine *)into)[i] = (affine){l.a * h.a, l.a * h.b + l.b};
    }
}

/* The combined value of ranks [0, ranks) at `index`. */
static uint64_t expected(int ranks, size_t index, uint64_t salt, bool own)
{
    uint64_t all = value_of(0, index, salt);
    for (int rank = 1; rank < ranks; rank++) {
        uint64_t next = value_of(rank, index, salt);
        if (own)
            compose(own_arg, &all, &all, &next, 1);
        else
            all += next;
    }
    return all;
}

typedef struct buffers {
    uint64_t *in, *out;
} buffers;

/* Whether `in` has a piece for each rank. */
static bool has_pieces(ferry_collective_kind kind)
{
    return kind == FERRY_ALLTOALL || kind == FERRY_REDUCE_SCATTER;
}

static void fill(ferry *f, const buffers *b, size_t pieces, size_t count, uint64_t salt)
{
    for (size_t i = 0; i < pieces * count; i++)
        b->in[i] = value_of(ferry_rank(f), i, salt);
    for (size_t i = 0; i < count * (size_t)ferry_ranks(f); i++)
        b->out[i] = 7;
}

static ferry_collective call_of(const buffers *b, ferry_collective_kind kind, int root,
                                size_t count, bool own)
{
    ferry_collective c = {.size = sizeof(c),
                          .kind = kind,
                          .root = root,
                          .in = b->in,
                          .out = b->out,
                          .count = count,
                          .type = FERRY_UINT64,
                          .reduction = FERRY_SUM};
    if (own) {
        c.combine = compose;
        c.combine_arg = own_arg;
        c.value_bytes = sizeof(affine);
    }
    return c;
}

static void check_result(ferry *f, const ferry_collective *c, uint64_t salt)
{
    const uint64_t *out = c->out;
    bool own = c->combine != NULL, at_root = ferry_rank(f) == c->root;
    int rank = ferry_rank(f), ranks = ferry_ranks(f);
    for (size_t i = 0; i < c->count; i++) {
        uint64_t kept = c->in == c->out ? value_of(rank, i, salt) : 7;
        if (c->kind == FERRY_ALLREDUCE || (c->kind == FERRY_REDUCE && at_root))
            CHECK(out[i] == expected(ranks, i, salt, own));
        if (c->kind == FERRY_REDUCE && !at_root)
            CHECK(out[i] == kept);
        if (c->kind == FERRY_SCAN)
            CHECK(out[i] == (rank == 0 ? kept : expected(rank, i, salt, own)));
        if (c->kind == FERRY_BROADCAST)
            CHECK(out[i] == value_of(c->root, i, salt));
        size_t own_piece = (size_t)rank * c->count + i;
        if (c->kind == FERRY_REDUCE_SCATTER)
            CHECK(out[i] == expected(ranks, own_piece, salt, own));
        for (int r = 0; r < ranks && c->kind == FERRY_ALLTOALL; r++)
            CHECK(out[(size_t)r * c->count + i] == value_of(r, own_piece, salt));
        if (c->kind == FERRY_ALLGATHER || (c->kind == FERRY_GATHER && at_root))
            for (int r = 0; r < ranks; r++)
                CHECK(out[(size_t)r * c->count + i] == value_of(r, i, salt));
    }
}

static void prepare(ferry *f, const ferry_collective *c, uint64_t salt)
{
    if (c->kind == FERRY_BROADCAST && ferry_rank(f) == c->root)
        for (size_t i = 0; i < c->count; i++)
            ((uint64_t *)c->out)[i] = value_of(c->root, i, salt);
}

static buffers make_buffers(const ferry *f, size_t count)
{
    size_t bytes = (count * (size_t)ferry_ranks(f) + 1) * sizeof(uint64_t);
    buffers b = {malloc(bytes), malloc(bytes)};
    CHECK(b.in != NULL && b.out != NULL);
    return b;
}

static void free_buffers(const buffers *b)
{
    free(b->in);
    free(b->out);
}

static void run_kind(ferry *f, ferry_collective_kind kind, const buffers *b, size_t count,
                     uint64_t salt)
{
    size_t pieces = has_pieces(kind) ? (size_t)ferry_ranks(f) : 1;
    for (int variant = 0; variant < 4; variant++, salt++) {
        int root = (int)(salt % (uint64_t)ferry_ranks(f));
        ferry_collective c = call_of(b, kind, root, count, variant & 1);
        bool in_place = variant & 2 && kind <= FERRY_SCAN && kind != FERRY_BROADCAST;
        fill(f, b, pieces, count, salt);
        prepare(f, &c, salt);
        if (in_place)
            c.out = b->in;
        CHECK(ferry_collective_run(f, &c) == 0);
        check_result(f, &c, salt);
    }
}

static void run_kinds(ferry *f, void *arg)
{
    static const size_t counts[] = {0, 1, 2, 4, 5, 1000, 9000, COUNT_MAX};
    size_t most = *(size_t *)arg;
    buffers b = make_buffers(f, COUNT_MAX);
    uint64_t salt = 1;
    for (int i = FERRY_BARRIER; i <= FERRY_REDUCE_SCATTER; i++) {
        ferry_collective_kind kind = (ferry_collective_kind)i;
        size_t share = has_pieces(kind) ? most / (size_t)ferry_ranks(f) : most;
        if (kind == FERRY_SCAN_INCLUSIVE || kind == FERRY_SCATTER)
            continue; /* group_test.c */
        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]) && counts[k] <= share; k++)
            run_kind(f, kind, &b, counts[k], salt += 4);
    }
    free_buffers(&b);
}

static void test_collective_kinds_give_their_results(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 9; ranks++) {
        size_t most = ranks % 3 == 0 ? COUNT_MAX : 9000;
        run_ranks(ranks, ranks % 2 ? 8 : 0, ranks % 2 ? 1024 : 0, run_kinds, &most);
    }
}

/* Several started at once, between waiting ones; each is looked at in its own way. */
static void run_started(ferry *f, void *arg)
{
    enum { AT_ONCE = 6 };
    (void)arg;
    buffers b[AT_ONCE];
    ferry_collective c[AT_ONCE];
    ferry_op op[AT_ONCE];
    uint64_t common = 1, own = (uint64_t)ferry_rank(f);
    for (int i = 0; i < AT_ONCE; i++)
        b[i] = make_buffers(f, 3000);
    for (uint64_t round = 0; round < 60; round++) {
        for (int i = 0; i < AT_ONCE; i++) {
            uint64_t choice = next_random(&common);
            c[i] = call_of(&b[i], (ferry_collective_kind)(choice % 7),
                           (int)(choice / 7 % (uint64_t)ferry_ranks(f)), choice / 64 % 3000,
                           choice & 32);
            fill(f, &b[i], 1, c[i].count, round * AT_ONCE + (uint64_t)i);
            prepare(f, &c[i], round * AT_ONCE + (uint64_t)i);
            const ferry_track track = {.size = sizeof(track), .op = &op[i]};
            CHECK(ferry_collective_start(f, &c[i], &track) == 0);
            loiter(&own, 30);
            if (i == 3)
                CHECK(ferry_barrier(f) == 0);
        }
        for (int i = AT_ONCE; i-- > 0;) {
            CHECK(ferry_op_wait(f, &op[i]) == 0);
            check_result(f, &c[i], round * AT_ONCE + (uint64_t)i);
        }
    }
    for (int i = 0; i < AT_ONCE; i++)
        free_buffers(&b[i]);
}

static void test_collectives_started_together(void **state)
{
    (void)state;
    static const int ranks[] = {1, 2, 3, 5, 8};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++)
        run_ranks(ranks[i], 8, 1024, run_started, NULL);
}

/* The program leaves room in the shared heap for three pieces in flight, fewer than go to the other
 * ranks. Its buffers are not in the heap. */
static void run_in_small_heap(ferry *f, void *arg)
{
    enum { COUNT = 200000, PIECE_BYTES = 64 * 1024, LEFT = 3, TAKEN_MAX = 4096 };
    void *taken[TAKEN_MAX];
    int count = 0;
    (void)arg;
    buffers b = make_buffers(f, COUNT);
    while (count < TAKEN_MAX && ferry_alloc(f, PIECE_BYTES, &taken[count]) == 0)
        count++;
    CHECK(count > LEFT && count < TAKEN_MAX);
    for (int i = 0; i < LEFT; i++)
        CHECK(ferry_free(f, taken[--count]) == 0);
    for (uint64_t salt = 1; salt < 12; salt += 4) {
        run_kind(f, FERRY_ALLTOALL, &b, COUNT / (size_t)ferry_ranks(f), salt);
        run_kind(f, FERRY_ALLGATHER, &b, COUNT / (size_t)ferry_ranks(f), salt);
    }
    while (count > 0)
        CHECK(ferry_free(f, taken[--count]) == 0);
    free_buffers(&b);
}

static void test_collectives_in_small_shared_heap(void **state)
{
    (void)state;
    run_ranks(5, 0, 0, run_in_small_heap, NULL);
}

/* An operation that tries to wait. */
typedef struct waiting {
    ferry *f;
    int calls;
} waiting;

static void wait_and_add(void *arg, void *into, const void *low, const void *high, size_t count)
{
    waiting *w = arg;
    w->calls++;
    CHECK(ferry_poll(w->f) == FERRY_ESTATE);
    CHECK(ferry_barrier(w->f) == FERRY_ESTATE);
    CHECK(ferry_quiesce(w->f) == FERRY_ESTATE);
    for (size_t i = 0; i < count; i++)
        ((uint64_t *)into)[i] = ((const uint64_t *)low)[i] + ((const uint64_t *)high)[i];
}

/* With a value that goes by the board, and with values that go in frames. */
static void run_waiting(ferry *f, void *arg)
{
    static const size_t counts[] = {1, 5000};
    (void)arg;
    buffers b = make_buffers(f, counts[1]);
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        waiting w = {.f = f};
        ferry_collective c = call_of(&b, FERRY_ALLREDUCE, 0, counts[k], false);
        c.combine = wait_and_add;
        c.combine_arg = &w;
        c.value_bytes = sizeof(uint64_t);
        fill(f, &b, 1, c.count, k);
        CHECK(ferry_collective_run(f, &c) == 0);
        for (size_t i = 0; i < c.count; i++)
            CHECK(b.out[i] == expected(ferry_ranks(f), i, k, false));
        CHECK(ferry_rank(f) != 0 || w.calls > 0);
    }
    CHECK(ferry_poll(f) >= 0);
    free_buffers(&b);
}

static void test_collective_operation_may_not_wait(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 4; ranks++)
        run_ranks(ranks, 0, 0, run_waiting, NULL);
}

/* The short forms. */
static void run_short_forms(ferry *f, void *arg)
{
    (void)arg;
    int rank = ferry_rank(f), ranks = ferry_ranks(f);
    float product = 0, two = 2;
    int64_t below = -1, one = 1;
    unsigned char mine = (unsigned char)rank, all[TEST_RANKS_MAX] = {0};
    CHECK(ferry_reduce(f, ranks - 1, FERRY_FLOAT, FERRY_PRODUCT, &two, &product, 1) == 0);
    CHECK(rank != ranks - 1 || product == (float)(1 << ranks));
    CHECK(ferry_scan(f, FERRY_INT64, FERRY_SUM, &one, &below, 1) == 0);
    CHECK(below == (rank == 0 ? -1 : rank));
    CHECK(ferry_gather(f, 0, &mine, 1, rank == 0 ? all : NULL) == 0);
    CHECK(rank != 0 || all[ranks - 1] == ranks - 1);
    CHECK(ferry_allgather(f, &mine, 1, all) == 0);
    for (int i = 0; i < ranks; i++)
        CHECK(all[i] == i);
    unsigned char bits = (unsigned char)(1 << rank % 8);
    CHECK(ferry_allreduce(f, FERRY_BYTE, FERRY_OR, &bits, &bits, 1) == 0);
    CHECK(bits == (ranks >= 8 ? 255 : (1 << ranks) - 1));
    CHECK(ferry_allreduce(f, FERRY_DOUBLE, FERRY_XOR, all, all, 1) == FERRY_EINVAL);
    ferry_collective odd = {.size = sizeof(odd), .kind = (ferry_collective_kind)99};
    CHECK(ferry_collective_run(f, &odd) == FERRY_EINVAL);
    odd = (ferry_collective){.size = 3};
    CHECK(ferry_collective_start(f, &odd, NULL) == FERRY_EINVAL);
    CHECK(ferry_collective_start(f, NULL, NULL) == FERRY_EINVAL);
    odd = (ferry_collective){.size = sizeof(odd), .kind = FERRY_SCAN, .value_bytes = 3};
    CHECK(ferry_collective_run(f, &odd) == FERRY_EINVAL);
}

static void test_collective_short_forms(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 12; ranks++)
        run_ranks(ranks, 0, 0, run_short_forms, NULL);
}

/* A ferry_combine_fn for values of any size, all 0. */
static void keep_low(void *arg, void *into, const void *low, const void *high, size_t count)
{
    (void)arg, (void)into, (void)low, (void)high, (void)count;
}

/* One rank waits where the others start, calls another sort, or has values of another size; all
 * learn it, the next works. */
static void run_disagreement(ferry *f, void *arg)
{
    enum { BYTES = 96000 };
    int how = *(int *)arg, error;
    bool odd = ferry_rank(f) == 1;
    int64_t value = 1;
    void *large = how == 2 ? calloc(1, BYTES) : NULL;
    buffers b = {(uint64_t *)&value, (uint64_t *)&value};
    ferry_collective c = call_of(&b, FERRY_ALLREDUCE, 0, 1, false);
    if (how == 2) {
        c.in = c.out = large;
        c.value_bytes = odd ? 32 : 8;
        c.count = BYTES / c.value_bytes;
        c.combine = keep_low;
    }
    ferry_op op;
    const ferry_track track = {.size = sizeof(track), .op = &op};
    if (how == 0 && odd)
        error = ferry_collective_run(f, &c);
    else if (how == 1 && odd)
        error = ferry_allgather(f, &value, 0, NULL);
    else
        error = ferry_collective_start(f, &c, &track) == 0 ? ferry_op_wait(f, &op) : 1;
    free(large);
    CHECK(error == FERRY_EINVAL);
    CHECK(ferry_barrier(f) == 0);
    value = 1;
    CHECK(ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &value, &value, 1) == 0);
    CHECK(value == ferry_ranks(f));
}

static void test_collective_forms_must_agree(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++)
        for (int ranks = 2; ranks <= 5; ranks++)
            run_ranks(ranks, 0, 0, run_disagreement, &how);
}

/* The meeting at the board and the exchange by frames compute the same expression. */
static void run_both_ways(ferry *f, void *arg)
{
    (void)arg;
    static const double scales[] = {1e16, 1.0, -1e16, 3.7, 1e-9};
    double in[5], small[4], large[5];
    for (int i = 0; i < 5; i++)
        in[i] = scales[ferry_rank(f) % 5] * (i + 1.1);
    CHECK(ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, in, small, 4) == 0);
    CHECK(ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, in, large, 5) == 0);
    CHECK(memcmp(small, large, sizeof(small)) == 0);
    double reduced[5] = {0};
    CHECK(ferry_reduce(f, 0, FERRY_DOUBLE, FERRY_SUM, in, reduced, 5) == 0);
    CHECK(ferry_rank(f) != 0 || memcmp(reduced, large, sizeof(large)) == 0);
    ferry_op op;
    const ferry_track track = {.size = sizeof(track), .op = &op};
    const ferry_collective scatter = {.size = sizeof(scatter),
                                      .kind = FERRY_REDUCE_SCATTER,
                                      .in = in,
                                      .out = reduced,
                                      .count = 1,
                                      .type = FERRY_DOUBLE,
                                      .reduction = FERRY_SUM};
    if (ferry_ranks(f) > 4)
        return;
    CHECK(ferry_reduce_scatter(f, FERRY_DOUBLE, FERRY_SUM, in, small, 1) == 0);
    CHECK(ferry_collective_start(f, &scatter, &track) == 0 && ferry_op_wait(f, &op) == 0);
    CHECK(memcmp(small, reduced, sizeof(small[0])) == 0);
}

static void test_reductions_are_the_same_both_ways(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 17; ranks++)
        run_ranks(ranks, 0, 0, run_both_ways, NULL);
}

/* Goal: a rank that has left ends others' calls with an error. Method: one thread; rank 1 leaves,
 * rank 0 then waits at the board and by frames. */
static void test_collective_ends_when_a_rank_has_left(void **state)
{
    (void)state;
    test_job job;
    job_open(&job, 2, 0, 0);
    fy_rank_destroy(job.f[1]);
    double values[10] = {0};
    assert_int_equal(ferry_barrier(job.f[0]), FERRY_EPEER);
    assert_int_equal(ferry_allreduce(job.f[0], FERRY_DOUBLE, FERRY_SUM, values, values, 10),
                     FERRY_EPEER);
    assert_int_equal(ferry_allgather(job.f[0], &values[0], 8, values), FERRY_EPEER);
    fy_rank_destroy(job.f[0]);
    fy_segment_unmap(job.segment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collective_kinds_give_their_results),
        cmocka_unit_test(test_collectives_started_together),
        cmocka_unit_test(test_collectives_in_small_shared_heap),
        cmocka_unit_test(test_collective_operation_may_not_wait),
        cmocka_unit_test(test_collective_short_forms),
        cmocka_unit_test(test_collective_forms_must_agree),
        cmocka_unit_test(test_reductions_are_the_same_both_ways),
        cmocka_unit_test(test_collective_ends_when_a_rank_has_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
