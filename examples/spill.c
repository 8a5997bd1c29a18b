/* Spill: each rank has objects of 100 KB, ten times what it may keep in memory. A store writes
 * those that rest to disk and reads them back before their next message.
 *
 *     cc spill.c $(pkg-config --cflags --libs ferry-data) -o spill
 *     ferry run -n 2 ./spill */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

enum { OBJECTS = 50, VALUES = 12500, ROUNDS = 3 };

/* Adds to the first value; the last message adds that to the sum of the rank. */
static void on_add(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    int64_t *values = data;
    (void)object, (void)source;
    values[0] += (int64_t)m->words[0];
    if (m->words[1] != 0)
        *(int64_t *)ferry_user_data(f) += values[0];
}

static int create(ferry *f, ferry_store *store, ferry_object_type type, ferry_object *objects)
{
    for (int i = 0; i < OBJECTS; i++) {
        void *data = calloc(VALUES, sizeof(int64_t));
        if (data == NULL || ferry_object_create(f, type, data, &objects[i]) != 0)
            return FERRY_ENOMEM;
        ferry_store_trim(store); /* no poll comes meanwhile */
    }
    return 0;
}

static int add_to_all(ferry *f, ferry_handler add, const ferry_object *objects)
{
    int error = 0;
    for (int round = 0; round < ROUNDS && error == 0; round++)
        for (int i = 0; i < OBJECTS && error == 0; i++) {
            uint64_t value = round + 1 < ROUNDS ? 50 : 0;
            const ferry_message message = {
                .handler = add, .word_count = 2, .words = {value, round + 1 == ROUNDS}};
            error = ferry_object_send(f, objects[i], &message, NULL);
        }
    return error == 0 ? ferry_quiesce(f) : error;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    ferry_store_stats stats = FERRY_STORE_STATS_DEFAULTS;
    ferry_store *store = NULL;
    ferry_object_type type;
    ferry_handler add;
    ferry_object objects[OBJECTS];
    int64_t sum = 0;
    (void)argc, (void)argv;
    ops.flat_bytes = VALUES * sizeof(int64_t);
    options.budget_bytes = 500 * 1000;
    ferry_user_data_set(f, &sum);
    if (ferry_object_type_register(f, &ops, &type) != 0 ||
        ferry_object_handler_register(f, "add", on_add, &add) != 0 ||
        ferry_store_open(f, &options, &store) != 0 || ferry_store_add(store, type) != 0 ||
        create(f, store, type, objects) != 0 || add_to_all(f, add, objects) != 0 ||
        ferry_store_stats_get(store, &stats) != 0) {
        fprintf(stderr, "%s\n", ferry_error_message(f));
        return 1;
    }
    if (ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &sum, &sum, 1) != 0)
        ferry_abort(f, 1, ferry_error_message(f));
    if (ferry_rank(f) == 0)
        printf("%d objects, sum %lld; rank 0 had %llu of %llu KB in memory at most\n",
               OBJECTS * ferry_ranks(f), (long long)sum,
               (unsigned long long)stats.peak_bytes / 1000,
               (unsigned long long)(stats.resident_bytes + stats.disk_bytes) / 1000);
    return ferry_store_close(store) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
