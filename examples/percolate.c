/* Percolate: data servers keep blocks on disk, and computing engines sort them. Each server makes
 * blocks of 80 KB, and has memory for a tenth of them. A block goes to an engine when a message
 * comes for it, is sorted there, and goes back.
 *
 *     cc percolate.c $(pkg-config --cflags --libs ferry-data) -o percolate
 *     ferry run -n 4 --servers 1 ./percolate */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

enum { BLOCKS = 60, VALUES = 10000, BUDGET = BLOCKS * VALUES * 8 / 10 };

typedef struct counts {
    int64_t sorted, by_servers, reads;
} counts;

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* A task: it runs on an engine. */
static void on_sort(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    counts *c = ferry_user_data(f);
    (void)object, (void)source, (void)m;
    qsort(data, VALUES, sizeof(uint64_t), compare);
    c->sorted++;
    c->by_servers += ferry_rank(f) < ferry_percolation_servers(f);
}

static int create(ferry *f, ferry_object_type type, ferry_object *out)
{
    uint64_t *values = calloc(VALUES, sizeof *values);
    if (values == NULL)
        return FERRY_ENOMEM;
    for (uint64_t i = 0; i < VALUES; i++)
        values[i] = i * 0x9e3779b97f4a7c15u; /* in no order */
    int error = ferry_object_create(f, type, values, out);
    return error == 0 ? ferry_balance_add(f, *out, NULL) : error;
}

/* Makes the blocks of this rank, and has each sorted. The servers make all, or all ranks if there
 * are no servers. */
static int make(ferry *f, ferry_store *store, ferry_object_type type, ferry_handler sort)
{
    const ferry_message message = {.handler = sort};
    const int servers = ferry_percolation_servers(f),
              makers = servers > 0 ? servers : ferry_ranks(f);
    for (int i = ferry_rank(f); i < BLOCKS && ferry_rank(f) < makers; i += makers) {
        ferry_object object;
        int error = create(f, type, &object);
        if (error == 0)
            error = ferry_object_send(f, object, &message, NULL);
        if (error != 0)
            return error;
        ferry_store_trim(store); /* no poll comes meanwhile */
    }
    return 0;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    ferry_percolation_options percolation = FERRY_PERCOLATION_OPTIONS_DEFAULTS; /* FERRY_SERVERS */
    ferry_store_stats stats = FERRY_STORE_STATS_DEFAULTS;
    ferry_store *store = NULL;
    ferry_object_type type;
    ferry_handler sort;
    counts c = {0, 0, 0};
    (void)argc, (void)argv;
    ops.flat_bytes = VALUES * sizeof(uint64_t);
    options.budget_bytes = BUDGET;
    ferry_user_data_set(f, &c);
    if (ferry_object_type_register(f, &ops, &type) != 0 ||
        ferry_object_handler_register(f, "sort", on_sort, &sort) != 0 ||
        ferry_store_open(f, &options, &store) != 0 || ferry_store_add(store, type) != 0 ||
        ferry_percolation_start(f, &percolation) != 0 || make(f, store, type, sort) != 0 ||
        ferry_quiesce(f) != 0 || ferry_store_stats_get(store, &stats) != 0) {
        fprintf(stderr, "%s\n", ferry_error_message(f));
        return 1;
    }
    c.reads = (int64_t)stats.reads;
    if (ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &c, &c, 3) != 0)
        ferry_abort(f, 1, ferry_error_message(f));
    if (ferry_rank(f) == 0)
        printf("%lld blocks sorted, %lld of them by servers; %s from disk\n", (long long)c.sorted,
               (long long)c.by_servers, c.reads > 0 ? "some came" : "none came");
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
