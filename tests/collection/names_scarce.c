/* Goal: messages to elements whose names a rank must ask for arrive, although memory runs out on
 * the way. Method: each rank sends tracked messages to indices that a rank inserts before,
 * meanwhile or later. Calls that find no memory are repeated, and so are insertions if a home finds
 * none. The simulator fails allocations. */
#include <stdlib.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"
#include "../support/random.h"
#include "../support/tracked.h"

enum { INDICES = 24, ROUNDS = 3 };

typedef struct account {
    ferry_collection *c;
    ferry_handler hit;
    tracked ends;
    uint64_t random;
    int sent, handled;
} account;

static void *make(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size_bytes)
{
    (void)f, (void)e, (void)arg, (void)bytes, (void)size_bytes;
    return calloc(1, sizeof(double));
}

static void hit(ferry *f, ferry_object object, void *data, int source, const ferry_message *message)
{
    account *a = ferry_user_data(f);
    (void)data, (void)source, (void)message;
    a->handled++;
    if (draw(&a->random, 4) != 0)
        return;
    int error = ferry_object_move(f, object, (int)draw(&a->random, (uint64_t)ferry_ranks(f)));
    CHECK(f, error == 0 || error == FERRY_ENOMEM);
}

static ferry_index any_index(account *a)
{
    return ferry_index_of((int64_t)draw(&a->random, INDICES), 0, 0);
}

static void send_one(ferry *f, account *a)
{
    const ferry_message message = {.handler = a->hit};
    const ferry_track track = tracked_by(&a->ends);
    int error = ferry_collection_send(a->c, any_index(a), &message, &track);
    CHECK(f, error == 0 || error == FERRY_ENOMEM);
    a->sent += error == 0;
}

/* Inserts an equal part of the indices. Repeats those without memory. */
static void insert_all(ferry *f, account *a)
{
    for (int64_t i = ferry_rank(f); i < INDICES; i += ferry_ranks(f))
        for (;;) {
            int error = ferry_collection_insert(a->c, NULL, ferry_index_of(i, 0, 0), NULL, 0);
            CHECK(f, error == 0 || error == FERRY_ENOMEM);
            if (error == 0)
                break;
            ferry_poll(f);
        }
}

/* The end of an operation is no work: it may come after quiescence. */
static void wait_for_ends(ferry *f, const account *a)
{
    uint64_t limit_ns = ferry_now(f) + UINT64_C(20000000000);
    while (a->ends.completed + a->ends.failed != a->sent && ferry_now(f) < limit_ns)
        CHECK(f, ferry_wait(f, 1000000) >= 0);
}

static void check_sums(ferry *f, account *a)
{
    const int64_t own[3] = {a->sent, a->handled, a->ends.completed};
    int64_t all[3];
    CHECK(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, own, all, 3) == 0);
    CHECK(f, all[0] == all[1] && a->ends.failed == 0);
    CHECK(f, a->ends.completed == a->sent);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    account *a = calloc(1, sizeof *a);
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    (void)argc, (void)argv;
    CHECK(f, a != NULL);
    a->random = 0x9e3779b97f4a7c15u + (uint64_t)ferry_rank(f) * 77;
    ferry_user_data_set(f, a);
    ops.flat_bytes = sizeof(double);
    options.ops = &ops;
    options.make = make;
    CHECK(f, ferry_object_handler_register(f, "hit", hit, &a->hit) == 0);
    CHECK(f, ferry_collection_create(f, &options, &a->c) == 0);
    for (int i = 0; i < INDICES; i++)
        send_one(f, a);
    do {
        insert_all(f, a);
        CHECK(f, ferry_quiesce(f) == 0);
    } while (ferry_collection_check(a->c) != 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < INDICES; i++)
            send_one(f, a);
        CHECK(f, ferry_quiesce(f) == 0);
        wait_for_ends(f, a);
        check_sums(f, a);
    }
    CHECK(f, ferry_collection_destroy(a->c) == 0);
    free(a);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
