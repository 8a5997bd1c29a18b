/* Goal: broadcasts, reductions and allreduces of every size, from and to many roots, have the right
 * results and keep the order of ranks. So do gathers, scatters and sums of pieces. Method: values
 * are 2x2 matrices, whose product depends on the order. A rank computes all results by itself. With
 * `measure BYTES` it prints what each call takes in place of that (docs/lab/collectives.md). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"

enum { VALUES_MAX = 40000 };

typedef struct matrix {
    uint32_t at[4];
} matrix;

static matrix product(const matrix *x, const matrix *y)
{
    matrix out;
    for (int i = 0; i < 4; i++)
        out.at[i] = x->at[i / 2 * 2] * y->at[i % 2] + x->at[i / 2 * 2 + 1] * y->at[i % 2 + 2];
    return out;
}

/* A ferry_combine_fn. */
static void combine(void *arg, void *into, const void *low, const void *high, size_t count)
{
    (void)arg;
    for (size_t i = 0; i < count; i++)
        ((matrix *)into)[i] = product((const matrix *)low + i, (const matrix *)high + i);
}

static matrix value_of(uint32_t rank, size_t index)
{
    return (matrix){
        {rank * 7 + (uint32_t)(index % 5) + 1, rank + 2, (uint32_t)(index % 11), 3 * rank + 1}};
}

typedef struct data {
    matrix *in, *out, *expected;
    size_t bytes; /* of the values of this round */
} data;

static void make_values(const ferry *f, const data *d, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        d->in[i] = value_of((uint32_t)ferry_rank(f), i);
        d->expected[i] = value_of(0, i);
        for (uint32_t rank = 1; rank < (uint32_t)ferry_ranks(f); rank++) {
            matrix next = value_of(rank, i);
            d->expected[i] = product(&d->expected[i], &next);
        }
    }
}

static void check_result(ferry *f, const data *d)
{
    CHECK(f, d->bytes == 0 || memcmp(d->out, d->expected, d->bytes) == 0);
}

static void meet(ferry *f, const data *d, size_t count)
{
    ferry_collective what = {.size = sizeof(what),
                             .kind = FERRY_ALLREDUCE,
                             .in = d->in,
                             .out = d->out,
                             .count = count,
                             .value_bytes = sizeof(matrix),
                             .combine = combine};
    memset(d->out, 0, d->bytes);
    CHECK(f, ferry_collective_run(f, &what) == 0);
    check_result(f, d);
    what.kind = FERRY_REDUCE;
    int apart = ferry_ranks(f) > 6 ? ferry_ranks(f) / 3 : 1;
    for (what.root = 0; what.root < ferry_ranks(f); what.root += apart) {
        bool root = ferry_rank(f) == what.root;
        memset(d->out, 0, d->bytes);
        CHECK(f, ferry_collective_run(f, &what) == 0);
        if (root)
            check_result(f, d);
        else
            memset(d->out, 0, d->bytes);
        CHECK(f, ferry_broadcast(f, what.root, d->out, d->bytes) == 0);
        check_result(f, d);
    }
}

/* Pieces of `count` values for each rank. The values of `d` are those of all pieces. */
static void share(ferry *f, const data *d, size_t count)
{
    size_t piece = count * sizeof(matrix);
    const matrix *own = d->expected + (size_t)ferry_rank(f) * count;
    const ferry_collective sums = {.size = sizeof(sums),
                                   .kind = FERRY_REDUCE_SCATTER,
                                   .in = d->in,
                                   .out = d->out,
                                   .count = count,
                                   .value_bytes = sizeof(matrix),
                                   .combine = combine};
    CHECK(f, ferry_collective_run(f, &sums) == 0);
    CHECK(f, piece == 0 || memcmp(d->out, own, piece) == 0);
    int root = (int)count % ferry_ranks(f);
    memset(d->out, 0, d->bytes);
    CHECK(f, ferry_scatter(f, root, d->expected, piece, d->out) == 0);
    CHECK(f, piece == 0 || memcmp(d->out, own, piece) == 0);
    memset(d->out, 0, d->bytes);
    CHECK(f, ferry_allgather(f, own, piece, d->out) == 0);
    check_result(f, d);
    memset(d->out, 0, d->bytes);
    CHECK(f, ferry_gather(f, root, own, piece, d->out) == 0);
    if (ferry_rank(f) == root)
        check_result(f, d);
}

typedef int call_fn(ferry *f, double *in, double *out, size_t count);

static int broadcast(ferry *f, double *in, double *out, size_t count)
{
    (void)out;
    return ferry_broadcast(f, 0, in, count * sizeof(*in));
}

static int reduce(ferry *f, double *in, double *out, size_t count)
{
    return ferry_reduce(f, 0, FERRY_DOUBLE, FERRY_SUM, in, out, count);
}

static int allreduce(ferry *f, double *in, double *out, size_t count)
{
    return ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, in, out, count);
}

/* Pieces of `count` values. */
static int scatter(ferry *f, double *in, double *out, size_t count)
{
    return ferry_scatter(f, 0, in, count * sizeof(*in), out);
}

static int allgather(ferry *f, double *in, double *out, size_t count)
{
    return ferry_allgather(f, in, count * sizeof(*in), out);
}

static int reduce_scatter(ferry *f, double *in, double *out, size_t count)
{
    return ferry_reduce_scatter(f, FERRY_DOUBLE, FERRY_SUM, in, out, count);
}

/* Calls of pieces too, if these have 512 KiB at most together. */
static int measure(ferry *f, size_t count)
{
    enum { CALLS = 4, OF_ONE = 3, SHARED_MAX = 64 * 1024 };
    static call_fn *const calls[] = {broadcast, reduce,    allreduce,
                                     scatter,   allgather, reduce_scatter};
    static const char *const names[] = {"broadcast", "reduce",    "allreduce",
                                        "scatter",   "allgather", "reduce_scatter"};
    size_t all = count * (size_t)ferry_ranks(f), kinds = all > SHARED_MAX ? OF_ONE : 2 * OF_ONE;
    all = all > SHARED_MAX ? count : all;
    double *in = calloc(all + 1, sizeof(*in)), *out = calloc(all + 1, sizeof(*out));
    CHECK(f, in != NULL && out != NULL);
    for (size_t i = 0; i < kinds; i++) {
        CHECK(f, calls[i](f, in, out, count) == 0 && ferry_barrier(f) == 0);
        uint64_t start = ferry_now(f);
        for (int k = 0; k < CALLS; k++)
            CHECK(f, calls[i](f, in, out, count) == 0);
        CHECK(f, ferry_barrier(f) == 0);
        if (ferry_rank(f) == 0)
            printf("%s: %.3f ms\n", names[i], (double)(ferry_now(f) - start) / CALLS / 1e6);
    }
    free(in);
    free(out);
    return 0;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const size_t counts[] = {0,    1,    3,    48,   256,   1023,
                                    1024, 1025, 4096, 4097, 16400, VALUES_MAX};
    data d = {0};
    if (argc == 3 && strcmp(argv[1], "measure") == 0)
        return measure(f, (size_t)atol(argv[2]) / sizeof(double));
    CHECK(f, argc == 1);
    d.in = malloc(VALUES_MAX * sizeof(matrix));
    d.out = malloc(VALUES_MAX * sizeof(matrix));
    d.expected = malloc(VALUES_MAX * sizeof(matrix));
    CHECK(f, d.in != NULL && d.out != NULL && d.expected != NULL);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        d.bytes = counts[i] * sizeof(matrix);
        make_values(f, &d, counts[i]);
        meet(f, &d, counts[i]);
        size_t piece = counts[i] / (size_t)ferry_ranks(f);
        d.bytes = piece * (size_t)ferry_ranks(f) * sizeof(matrix);
        share(f, &d, piece);
    }
    free(d.in);
    free(d.out);
    free(d.expected);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
