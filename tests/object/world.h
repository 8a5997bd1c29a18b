/* World: five ranks, driven by one thread so that each step is complete before the next, with
 * objects that count the messages they handle. */
#ifndef TEST_WORLD_H
#define TEST_WORLD_H

#include <stdlib.h>
#include <string.h>

#include "object/ends.h"
#include "ranks.h"

enum { RANKS = 5 };

typedef struct account {
    ferry_object_type type;
    ferry_handler count, end;
    int handled, alive, completed, failed, last_error;
    int disordered; /* messages that came out of their order */
} account;

/* The built-in protocols, and those in shared objects. */
static const char *const protocols[] = {"lazy", "home", "eager", DIRECTORY_THESIS,
                                        DIRECTORY_GOSSIP};
enum { PROTOCOLS = sizeof protocols / sizeof *protocols };

typedef struct world {
    test_job job;
    account accounts[RANKS];
} world;

static inline void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)object;
    ((account *)ferry_user_data(f))->alive++;
    return memcpy(malloc(size_bytes), buffer, size_bytes);
}

static inline void destroy(ferry *f, void *data)
{
    ((account *)ferry_user_data(f))->alive--;
    free(data);
}

static inline void on_count(ferry *f, ferry_object object, void *data, int source,
                            const ferry_message *m)
{
    account *a = ferry_user_data(f);
    uint64_t *next = data; /* number due of each rank, where numbers are given */
    (void)object;
    a->handled++;
    a->disordered += m->word_count == 1 && next[source]++ != m->words[0];
}

static inline void on_end(ferry *f, ferry_object object, void *data, int source,
                          const ferry_message *m)
{
    (void)data, (void)source, (void)m;
    CHECK(ferry_object_destroy(f, object) == 0);
}

static const ferry_object_ops ops = {.size = sizeof ops,
                                     .flat_bytes = RANKS * sizeof(uint64_t),
                                     .unpack = unpack,
                                     .destroy = destroy};

static inline void world_open(world *w, const char *protocol)
{
    *w = (world){.accounts = {{.handled = 0}}};
    CHECK(setenv("FERRY_DIRECTORY", protocol, 1) == 0);
    job_open(&w->job, RANKS, 0, 0);
    for (int rank = 0; rank < RANKS; rank++) {
        ferry *f = w->job.f[rank];
        account *a = &w->accounts[rank];
        ferry_user_data_set(f, a);
        CHECK(ferry_object_type_register(f, &ops, &a->type) == 0);
        CHECK(ferry_object_handler_register(f, "count", on_count, &a->count) == 0);
        CHECK(ferry_object_handler_register(f, "end", on_end, &a->end) == 0);
    }
}

static inline void world_close(world *w)
{
    int alive = 0;
    job_close(&w->job);
    for (int rank = 0; rank < RANKS; rank++)
        alive += w->accounts[rank].alive;
    CHECK(alive == 0);
}

static inline ferry_object create(world *w, int rank)
{
    ferry_object object;
    uint64_t *data = calloc(RANKS, sizeof *data);
    w->accounts[rank].alive++;
    CHECK(ferry_object_create(w->job.f[rank], w->accounts[rank].type, data, &object) == 0);
    return object;
}

static inline void move(world *w, ferry_object object, int from, int to)
{
    CHECK(ferry_object_move(w->job.f[from], object, to) == 0);
    job_settle(&w->job);
}

static inline int guess(world *w, int rank, ferry_object object)
{
    int place = -1;
    CHECK(ferry_object_locate(w->job.f[rank], object, &place) == 0);
    return place;
}

static inline void on_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f, (void)receipt;
    ((account *)arg)->completed++;
}

static inline void on_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    ((account *)arg)->failed++;
    ((account *)arg)->last_error = receipt->error;
}

static inline ferry_track track_of(account *a)
{
    return (ferry_track){.size = sizeof(ferry_track),
                         .completed = on_completed,
                         .completed_arg = a,
                         .failed = on_failed,
                         .failed_arg = a};
}

static inline void post(world *w, int rank, ferry_object object, ferry_handler handler)
{
    const ferry_track track = track_of(&w->accounts[rank]);
    const ferry_message m = {.handler = handler};
    CHECK(ferry_object_send(w->job.f[rank], object, &m, &track) == 0);
}

static inline uint64_t forwards(world *w)
{
    uint64_t sum = 0;
    for (int rank = 0; rank < RANKS; rank++)
        sum += fy_stats(w->job.f[rank])->messages_forwarded;
    return sum;
}

static inline size_t entries(world *w)
{
    size_t sum = 0;
    for (int rank = 0; rank < RANKS; rank++)
        sum += fy_objects_of(w->job.f[rank])->directory.count;
    return sum;
}

#endif
