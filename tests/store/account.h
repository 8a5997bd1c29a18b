/* Account: what tests of the store share: objects that add up numbers, and what became of them. */
#ifndef FY_TEST_ACCOUNT_H
#define FY_TEST_ACCOUNT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ranks.h"
#include "store/state.h"

enum { OBJECTS = 16, BYTES = 1000, BUDGET = 4000 };

typedef struct account {
    ferry_object_type type;
    ferry_handler add;
    ferry_object objects[OBJECTS];
    ferry_store *store;
    uint64_t last; /* value that the last handler has left */
    int handled, alive, ended, error;
} account;

static inline void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)object;
    void *data = malloc(size_bytes);
    ((account *)ferry_user_data(f))->alive++;
    return data == NULL ? NULL : memcpy(data, buffer, size_bytes);
}

static inline void destroy(ferry *f, void *data)
{
    ((account *)ferry_user_data(f))->alive--;
    free(data);
}

static inline double granularity(ferry *f, const void *data)
{
    (void)f;
    return (double)*(const uint64_t *)data;
}

static inline void on_add(ferry *f, ferry_object object, void *data, int source,
                          const ferry_message *m)
{
    account *a = ferry_user_data(f);
    uint64_t *values = data;
    (void)source;
    CHECK(ferry_object_data(f, object) == data);
    CHECK(values[0] == values[BYTES / 8 - 1]);
    values[0] += m->words[0];
    values[BYTES / 8 - 1] = values[0];
    a->last = values[0];
    a->handled++;
}

static inline void on_ended(ferry *f, void *arg, const ferry_receipt *receipt)
{
    account *a = arg;
    (void)f;
    a->ended++;
    a->error = receipt->error;
}

static inline void set_up(ferry *f, account *a, uint64_t budget_bytes)
{
    const ferry_object_ops ops = {.size = sizeof ops,
                                  .flat_bytes = BYTES,
                                  .unpack = unpack,
                                  .destroy = destroy,
                                  .granularity = granularity};
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    options.budget_bytes = budget_bytes;
    *a = (account){.last = 0};
    ferry_user_data_set(f, a);
    CHECK(ferry_object_type_register(f, &ops, &a->type) == 0);
    CHECK(ferry_object_handler_register(f, "add", on_add, &a->add) == 0);
    CHECK(ferry_store_open(f, &options, &a->store) == 0);
    CHECK(ferry_store_add(a->store, a->type) == 0);
}

/* A job of two ranks with stores. */
static inline void open_two(test_job *job, account a[2], uint64_t budget_bytes)
{
    job_open(job, 2, 0, 0);
    for (int rank = 0; rank < 2; rank++)
        set_up(job->f[rank], &a[rank], budget_bytes);
}

static inline void create_all(ferry *f, account *a)
{
    for (int i = 0; i < OBJECTS; i++) {
        uint64_t *data = calloc(1, BYTES);
        CHECK(data != NULL);
        data[0] = data[BYTES / 8 - 1] = (uint64_t)i;
        a->alive++;
        CHECK(ferry_object_create(f, a->type, data, &a->objects[i]) == 0);
    }
}

static inline ferry_store_stats stats_of(const account *a)
{
    ferry_store_stats stats = FERRY_STORE_STATS_DEFAULTS;
    CHECK(ferry_store_stats_get(a->store, &stats) == 0);
    return stats;
}

static inline void send_add(ferry *f, account *a, ferry_object object, uint64_t value)
{
    const ferry_message message = {.handler = a->add, .word_count = 1, .words = {value}};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = track.failed = on_ended;
    track.completed_arg = track.failed_arg = a;
    a->error = 1;
    CHECK(ferry_object_send(f, object, &message, &track) == 0);
}

static inline bool is_out(ferry *f, ferry_object object)
{
    return fy_record_here(f, object)->out;
}

/* Polls until nothing is being written. */
static inline void settle_writes(ferry *f, const account *a)
{
    do
        (void)ferry_poll(f);
    while (a->store->leaving_bytes != 0);
}

#endif
