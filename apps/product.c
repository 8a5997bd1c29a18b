/* Product: C = A B out of core. The blocks of the three matrices are objects of stores that have
 * memory for some of them.
 *
 * ferry run -n 2 build/apps/product [N [BLOCK]] --budget BYTES
 * ferry run -n 4 --servers 1 build/apps/product: the blocks rest on a data server
 *
 * For each i, j and k, block A(i,k) sends its values to B(k,j), which multiplies and sends the
 * product to C(i,j), which adds it. Each rank has a window of such triples in flight. Their
 * messages tell the store what runs next, and take memory besides the budget. Checks every element
 * of C against its sum, computed in memory. All elements are small whole numbers, so it must be
 * exact. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "common/cost.h"
#include "common/parameters.h"

enum { A, B, C, MATRICES };

typedef struct block {
    int64_t matrix, row, column; /* of the block */
    double values[];
} block;

typedef struct solver {
    ferry *f;
    int64_t n, size, blocks; /* rows of a matrix, of a block, and blocks in a row */
    int64_t next, triples, wrong;
    ferry_object *objects; /* of all ranks: by matrix, row and column */
    ferry_object_type type;
    ferry_handler give, multiply, add, done, check;
    ferry_store *store;
    double *left, *product; /* a block each */
    cost cost;
} solver;

static void check(ferry *f, int error)
{
    if (error != 0)
        ferry_abort(f, 1, ferry_error_message(f));
}

static double element(int64_t matrix, int64_t i, int64_t j)
{
    return matrix == A ? (double)((i * 7 + j * 3) % 11 - 5) : (double)((i * 5 + j * 2) % 13 - 6);
}

static size_t block_bytes(const solver *s)
{
    return (size_t)(s->size * s->size) * sizeof(double);
}

static ferry_object *object_at(const solver *s, int64_t matrix, int64_t row, int64_t column)
{
    return &s->objects[(matrix * s->blocks + row) * s->blocks + column];
}

static void send(solver *s, ferry_object object, ferry_handler handler, const uint64_t words[3],
                 const double *values)
{
    const ferry_message message = {.handler = handler,
                                   .word_count = 3,
                                   .words = {words[0], words[1], words[2]},
                                   .data = values,
                                   .size_bytes = values == NULL ? 0 : block_bytes(s)};
    check(s->f, ferry_object_send(s->f, object, &message, NULL));
}

/* Begins the next triple of this rank. Triples with the same block of A follow each other. They
 * need a row of blocks of B and one of C. */
static void begin_next(solver *s)
{
    int64_t i = s->next / (s->blocks * s->blocks), k = s->next / s->blocks % s->blocks;
    if (s->next >= s->triples)
        return;
    const uint64_t words[3] = {(uint64_t)(s->next % s->blocks), (uint64_t)ferry_rank(s->f)};
    s->next += ferry_ranks(s->f);
    send(s, *object_at(s, A, i, k), s->give, words, NULL);
}

static void on_give(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    solver *s = ferry_user_data(f);
    const block *a = data;
    const uint64_t words[3] = {(uint64_t)a->row, m->words[1]};
    (void)object, (void)source;
    send(s, *object_at(s, B, a->column, (int64_t)m->words[0]), s->multiply, words, a->values);
}

static void on_multiply(ferry *f, ferry_object object, void *data, int source,
                        const ferry_message *m)
{
    solver *s = ferry_user_data(f);
    const block *b = data;
    int64_t size = s->size;
    (void)object, (void)source;
    memcpy(s->left, m->data, block_bytes(s));
    memset(s->product, 0, block_bytes(s));
    for (int64_t i = 0; i < size; i++)
        for (int64_t k = 0; k < size; k++)
            for (int64_t j = 0; j < size; j++)
                s->product[i * size + j] += s->left[i * size + k] * b->values[k * size + j];
    cost_add(&s->cost, 2.0 * (double)(size * size * size));
    cost_spend(&s->cost, f);
    const uint64_t words[3] = {m->words[1]};
    send(s, *object_at(s, C, (int64_t)m->words[0], b->column), s->add, words, s->product);
}

static void on_add(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    solver *s = ferry_user_data(f);
    block *c = data;
    const ferry_message done = {.handler = s->done};
    (void)object, (void)source;
    memcpy(s->product, m->data, block_bytes(s));
    for (int64_t i = 0; i < s->size * s->size; i++)
        c->values[i] += s->product[i];
    check(f, ferry_request_send(f, (int)m->words[0], &done, NULL));
}

static void on_done(ferry *f, int source, const ferry_message *m)
{
    (void)source, (void)m;
    begin_next(ferry_user_data(f));
}

static void on_check(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    solver *s = ferry_user_data(f);
    const block *c = data;
    (void)object, (void)source, (void)m;
    for (int64_t i = 0; i < s->size; i++)
        for (int64_t j = 0; j < s->size; j++) {
            double sum = 0;
            for (int64_t k = 0; k < s->n; k++)
                sum += element(A, c->row * s->size + i, k) * element(B, k, c->column * s->size + j);
            s->wrong += sum != c->values[i * s->size + j];
        }
}

static void make_block(solver *s, int64_t matrix, int64_t row, int64_t column)
{
    block *b = malloc(sizeof *b + block_bytes(s));
    if (b == NULL)
        ferry_abort(s->f, 1, "no memory for a block");
    *b = (block){.matrix = matrix, .row = row, .column = column};
    for (int64_t i = 0; i < s->size; i++)
        for (int64_t j = 0; j < s->size; j++)
            b->values[i * s->size + j] =
                matrix == C ? 0 : element(matrix, row * s->size + i, column * s->size + j);
    ferry_object *object = object_at(s, matrix, row, column);
    check(s->f, ferry_object_create(s->f, s->type, b, object));
    check(s->f, ferry_balance_add(s->f, *object, NULL));
    ferry_store_trim(s->store); /* no poll comes meanwhile */
}

/* The data servers make all blocks, or all ranks if there are none. */
static void make_blocks(solver *s)
{
    int servers = ferry_percolation_servers(s->f),
        makers = servers != 0 ? servers : ferry_ranks(s->f);
    int64_t count = MATRICES * s->blocks * s->blocks;
    for (int64_t at = ferry_rank(s->f); at < count && ferry_rank(s->f) < makers; at += makers)
        make_block(s, at / (s->blocks * s->blocks), at / s->blocks % s->blocks, at % s->blocks);
    check(s->f,
          ferry_allreduce(s->f, FERRY_UINT64, FERRY_SUM, s->objects, s->objects, (size_t)count));
    check(s->f, ferry_barrier(s->f)); /* handlers use the names */
}

static void solver_init(solver *s, uint64_t budget_bytes)
{
    ferry *f = s->f;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    ferry_percolation_options percolation = FERRY_PERCOLATION_OPTIONS_DEFAULTS; /* FERRY_SERVERS */
    ops.name = "block";
    ops.flat_bytes = sizeof(block) + block_bytes(s);
    options.budget_bytes = budget_bytes;
    s->blocks = s->n / s->size;
    s->triples = s->blocks * s->blocks * s->blocks;
    s->next = ferry_rank(f);
    s->objects = calloc((size_t)(MATRICES * s->blocks * s->blocks), sizeof *s->objects);
    s->left = malloc(block_bytes(s));
    s->product = malloc(block_bytes(s));
    if (s->objects == NULL || s->left == NULL || s->product == NULL)
        ferry_abort(f, 1, "no memory");
    ferry_user_data_set(f, s);
    check(f, ferry_object_type_register(f, &ops, &s->type));
    check(f, ferry_object_handler_register(f, "give", on_give, &s->give));
    check(f, ferry_object_handler_register(f, "multiply", on_multiply, &s->multiply));
    check(f, ferry_object_handler_register(f, "add", on_add, &s->add));
    check(f, ferry_object_handler_register(f, "check", on_check, &s->check));
    check(f, ferry_handler_register(f, "done", on_done, &s->done));
    check(f, ferry_store_open(f, &options, &s->store));
    check(f, ferry_store_add(s->store, s->type));
    check(f, ferry_percolation_start(f, &percolation));
}

/* Returns the elements of C that are wrong. */
static int64_t count_wrong(solver *s)
{
    const uint64_t words[3] = {0};
    for (int64_t at = ferry_rank(s->f); at < s->blocks * s->blocks; at += ferry_ranks(s->f))
        send(s, *object_at(s, C, at / s->blocks, at % s->blocks), s->check, words, NULL);
    check(s->f, ferry_quiesce(s->f));
    int64_t wrong = s->wrong;
    check(s->f, ferry_allreduce(s->f, FERRY_INT64, FERRY_SUM, &wrong, &wrong, 1));
    return wrong;
}

/* `before` and `after` are the counts of the store when the product began and ended. */
static void report(solver *s, double seconds, const ferry_store_stats *before,
                   const ferry_store_stats *after)
{
    uint64_t sums[5] = {after->reads - before->reads, after->read_bytes - before->read_bytes,
                        after->writes - before->writes,
                        after->written_bytes - before->written_bytes,
                        after->wait_ns - before->wait_ns};
    int64_t wrong = count_wrong(s);
    check(s->f, ferry_allreduce(s->f, FERRY_UINT64, FERRY_SUM, sums, sums, 5));
    if (ferry_rank(s->f) == 0)
        printf("%lld^2 in blocks of %lld^2: %.6f s, %lld elements wrong; %llu blocks of %.1f MB "
               "read, %llu of %.1f MB written, a rank waited %.6f s for the disk\n",
               (long long)s->n, (long long)s->size, seconds, (long long)wrong,
               (unsigned long long)sums[0], (double)sums[1] * 1e-6, (unsigned long long)sums[2],
               (double)sums[3] * 1e-6, (double)sums[4] * 1e-9 / ferry_ranks(s->f));
    s->wrong = wrong;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    solver s = {.f = f};
    ferry_store_stats before = FERRY_STORE_STATS_DEFAULTS, after = FERRY_STORE_STATS_DEFAULTS;
    long n = 512, size = 64, budget = 1 << 20, window = 16;
    const parameter table[] = {
        {"N", "rows of the matrices", 1, 65536, .whole = &n},
        {"BLOCK", "rows of a block: N is a multiple of it", 1, 4096, .whole = &size},
        {"budget", "bytes of blocks that a rank keeps in memory", 1, 1e15, .whole = &budget},
        {"window", "products of two blocks that a rank has in flight", 1, 1e6, .whole = &window},
        COST_PARAMETER(&s.cost),
        {0},
    };
    int status = parameters_read(f, argc, argv, "Multiplies two matrices out of core.", table);
    if (status >= 0)
        return status;
    if (n % size != 0) {
        if (ferry_rank(f) == 0)
            fprintf(stderr, "product: N is %ld: expected a multiple of BLOCK, %ld\n", n, size);
        return 2;
    }
    s.n = n;
    s.size = size;
    solver_init(&s, (uint64_t)budget);
    make_blocks(&s);
    check(f, ferry_store_stats_get(s.store, &before));
    uint64_t begin = ferry_now(f);
    for (long i = 0; i < window; i++)
        begin_next(&s);
    check(f, ferry_quiesce(f));
    double seconds = (double)(ferry_now(f) - begin) * 1e-9;
    check(f, ferry_store_stats_get(s.store, &after));
    report(&s, seconds, &before, &after);
    free(s.objects);
    free(s.left);
    free(s.product);
    return s.wrong != 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
