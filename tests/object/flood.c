/* Goal: memory stays bounded when ranks flood objects that move all the time. Nothing of the flood
 * is lost or out of order. Ranks that flood each other do not wait forever. Method: objects move
 * on after every few messages, and are slower than their senders. Messages wait for objects that
 * are in flight, for others before them, and at ranks that pass them on. Each process watches the
 * most memory that it ever had resident; under the simulator, the simulator does (ferry sim
 * --memory).
 *
 *      main     the upper half of the ranks sends, the objects move among the lower half
 *      handler  as main, from a handler, which may not wait: only the target is watched
 *      slow     as handler, but the handler is slow, so that no ring is ever full, and rank 1
 * stands still for a while when it has the object: rank 0 passes on to it meanwhile all      every
 * rank sends to objects that move among all
 *
 * Run as flood main|handler|slow|all COUNT BYTES LIMIT_KIB, on at least 2 ranks; COUNT messages of
 * BYTES from each sender to each object. LIMIT_KIB 0: memory is not watched. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ferry/ferry.h>

#include "../support/failed.h"
#include "resident.h"

enum { OBJECTS_MAX = 16, RANKS_MAX = 32, BYTES_MAX = 65536, STAY = 37, REST = 256, SLOW = 16 };
static const struct timespec pause = {.tv_nsec = 1000 * 1000}, stop = {.tv_sec = 1};

typedef struct thing {
    uint64_t next[RANKS_MAX]; /* number of the message due from each rank */
    uint64_t handled;
} thing;

typedef struct account {
    ferry_handler take, start;
    ferry_object objects[OBJECTS_MAX];
    int object_count;
    int movers; /* objects stay on ranks below */
    uint64_t count, wrong;
    size_t size_bytes;
    bool slow, stopped;
} account;

static const unsigned char bytes[BYTES_MAX];

static void check(ferry *f, int error)
{
    ((account *)ferry_user_data(f))->wrong += failed(f, error);
}

static void on_take(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    account *a = ferry_user_data(f);
    thing *t = data;
    if (m->words[0] != t->next[source]++ || m->size_bytes != a->size_bytes) {
        a->wrong++;
        fprintf(stderr, "flood: message %" PRIu64 " of rank %d, %zu bytes, is out of order\n",
                m->words[0], source, m->size_bytes);
    }
    ferry_compute(f, 2e-6);
    if (a->slow && !a->stopped && ferry_rank(f) == 1) {
        a->stopped = true;
        nanosleep(&stop, NULL);
    }
    if (++t->handled % REST == 0)
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000}, NULL);
    if (t->handled % STAY == 0)
        check(f, ferry_object_move(f, object, (ferry_rank(f) + 1) % a->movers));
}

static void send_all(ferry *f)
{
    account *a = ferry_user_data(f);
    for (uint64_t i = 0; i < a->count; i++) {
        if (a->slow && i % SLOW == SLOW - 1)
            nanosleep(&pause, NULL);
        const ferry_message message = {.handler = a->take,
                                       .word_count = 1,
                                       .words = {i},
                                       .data = bytes,
                                       .size_bytes = a->size_bytes};
        for (int o = 0; o < a->object_count; o++)
            check(f, ferry_object_send(f, a->objects[o], &message, NULL));
    }
}

static void on_start(ferry *f, int source, const ferry_message *m)
{
    (void)source, (void)m;
    send_all(f);
}

static void set_up(ferry *f, account *a)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "thing", .flat_bytes = sizeof(thing)};
    ferry_object_type type = {0};
    check(f, ferry_object_type_register(f, &ops, &type));
    check(f, ferry_object_handler_register(f, "take", on_take, &a->take));
    check(f, ferry_handler_register(f, "start", on_start, &a->start));
    for (int i = 0; i < a->object_count; i++) {
        if (ferry_rank(f) == i % a->movers)
            check(f, ferry_object_create(f, type, calloc(1, sizeof(thing)), &a->objects[i]));
        check(f, ferry_broadcast(f, i % a->movers, &a->objects[i], sizeof a->objects[i]));
    }
}

static void flood(ferry *f, account *a, bool sends, bool handler)
{
    const ferry_message start = {.handler = a->start};
    if (sends && handler)
        check(f, ferry_request_send(f, ferry_rank(f), &start, NULL));
    else if (sends)
        send_all(f);
    check(f, ferry_quiesce(f));
}

/* Messages that the objects here have handled. */
static uint64_t handled_here(ferry *f, const account *a)
{
    uint64_t sum = 0;
    for (int i = 0; i < a->object_count; i++) {
        const thing *t = ferry_object_data(f, a->objects[i]);
        sum += t != NULL ? t->handled : 0;
    }
    return sum;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    int ranks = ferry_ranks(f);
    if (argc != 5 || ranks < 2 || ranks > RANKS_MAX) {
        fprintf(stderr,
                "usage: flood main|handler|slow|all COUNT BYTES LIMIT_KIB, on 2 to %d ranks\n",
                RANKS_MAX);
        return 2;
    }
    bool all = strcmp(argv[1], "all") == 0, slow = strcmp(argv[1], "slow") == 0;
    bool handler = slow || strcmp(argv[1], "handler") == 0;
    account a = {.object_count = all ? 3 : 1,
                 .movers = all ? ranks : ranks / 2,
                 .count = strtoull(argv[2], NULL, 10),
                 .size_bytes = strtoul(argv[3], NULL, 10) % (BYTES_MAX + 1),
                 .slow = slow};
    uint64_t limit_kib = strtoull(argv[4], NULL, 10);
    bool sends = all || ferry_rank(f) >= a.movers;
    ferry_user_data_set(f, &a);
    set_up(f, &a);
    check(f, ferry_barrier(f));
    uint64_t before_kib = resident_kib_max();
    flood(f, &a, sends, handler);
    uint64_t grown_kib = resident_kib_max() - before_kib;
    if (limit_kib != 0 && !(sends && handler) && grown_kib > limit_kib) {
        fprintf(stderr, "flood: rank %d grew by %" PRIu64 " KiB, more than %" PRIu64 "\n",
                ferry_rank(f), grown_kib, limit_kib);
        a.wrong++;
    }
    uint64_t here = handled_here(f, &a), sum = 0;
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &here, &sum, 1));
    uint64_t sent = a.count * (uint64_t)(a.object_count * (all ? ranks : ranks - a.movers));
    if (sum != sent)
        fprintf(stderr, "flood: %" PRIu64 " of %" PRIu64 " messages were handled\n", sum, sent);
    return a.wrong != 0 || sum != sent;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
