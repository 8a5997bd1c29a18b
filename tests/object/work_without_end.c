/* Goal: handlers that create work without end neither exhaust memory nor hang. The work that waits
 * on a rank stays within its limit (FERRY_WAITING_BYTES). A sender that would go beyond is told so.
 * Each message that was sent is handled once. Method: each task or request sends two more. It ends
 * when so many were created that they would take many times the limit, or when it is told that
 * there is no room. Each process watches the most memory that it ever had resident; under the
 * simulator, the simulator does (ferry sim --memory).
 *
 * Run as work_without_end HOW COUNT LIMIT_KIB [BYTES]; COUNT of each rank; LIMIT_KIB 0: memory is
 * not watched; BYTES of data of each, 1000 by default. HOW is
 * - here: tasks for the object on the same rank
 * - across: tasks for the objects on all ranks, in turn
 * - main: as across, by the main program, which is not told, but waits
 * - request: requests of the rank to itself
 * - broadcast: requests to all others */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/failed.h"
#include "resident.h"

enum { RANKS_MAX = 64, BYTES_MAX = 1000 };

typedef struct account {
    ferry_handler task, request;
    ferry_object objects[RANKS_MAX];
    uint64_t count, sent, refused, handled, wrong;
    size_t size_bytes;
    bool across, requests, broadcasts, idle;
} account;

static const unsigned char bytes[BYTES_MAX];

/* One more; what it comes to. */
static void send_one(ferry *f, account *a)
{
    const ferry_message message = {
        .handler = a->requests ? a->request : a->task, .data = bytes, .size_bytes = a->size_bytes};
    int rank = a->across ? (int)(a->sent % (uint64_t)ferry_ranks(f)) : ferry_rank(f);
    int error = a->broadcasts ? ferry_request_broadcast(f, &message, NULL)
                : a->requests ? ferry_request_send(f, rank, &message, NULL)
                              : ferry_object_send(f, a->objects[rank], &message, NULL);
    a->sent += error == 0;
    a->refused += error == FERRY_EAGAIN;
    if (error == 0 || error == FERRY_EAGAIN)
        return;
    a->wrong++;
    fprintf(stderr, "work_without_end: rank %d: %s\n", ferry_rank(f), ferry_error_message(f));
}

static void breed(ferry *f, size_t size_bytes)
{
    account *a = ferry_user_data(f);
    a->handled++;
    a->wrong += size_bytes != a->size_bytes;
    for (int i = 0; i < 2 && a->sent < a->count && !a->idle; i++)
        send_one(f, a);
}

static void on_task(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)object, (void)data, (void)source;
    breed(f, m->size_bytes);
}

static void on_request(ferry *f, int source, const ferry_message *m)
{
    (void)source;
    breed(f, m->size_bytes);
}

static void check(ferry *f, int error)
{
    ((account *)ferry_user_data(f))->wrong += failed(f, error);
}

static void set_up(ferry *f, account *a)
{
    static const ferry_object_ops ops = {.size = sizeof ops, .name = "nest", .flat_bytes = 64};
    ferry_object_type type = {0};
    check(f, ferry_object_type_register(f, &ops, &type));
    check(f, ferry_object_handler_register(f, "breed", on_task, &a->task));
    check(f, ferry_handler_register(f, "breed too", on_request, &a->request));
    for (int rank = 0; rank < ferry_ranks(f); rank++) {
        if (ferry_rank(f) == rank) {
            check(f, ferry_object_create(f, type, calloc(1, 64), &a->objects[rank]));
            check(f, ferry_balance_add(f, a->objects[rank], NULL));
        }
        check(f, ferry_broadcast(f, rank, &a->objects[rank], sizeof a->objects[rank]));
    }
}

static int rank_main(ferry *f, int argc, char **argv)
{
    if (argc < 4 || argc > 5 || ferry_ranks(f) > RANKS_MAX) {
        fprintf(stderr,
                "usage: work_without_end here|across|main|request|broadcast COUNT LIMIT_KIB "
                "[BYTES], on at "
                "most %d\n",
                RANKS_MAX);
        return 2;
    }
    bool main_sends = strcmp(argv[1], "main") == 0;
    account a = {.count = strtoull(argv[2], NULL, 10),
                 .across = main_sends || strcmp(argv[1], "across") == 0,
                 .broadcasts = strcmp(argv[1], "broadcast") == 0,
                 .idle = main_sends,
                 .size_bytes = argc > 4 ? strtoul(argv[4], NULL, 10) % (BYTES_MAX + 1) : BYTES_MAX};
    a.requests = a.broadcasts || strcmp(argv[1], "request") == 0;
    uint64_t limit_kib = strtoull(argv[3], NULL, 10);
    ferry_user_data_set(f, &a);
    set_up(f, &a);
    check(f, ferry_barrier(f));
    uint64_t before_kib = resident_kib_max();
    do {
        send_one(f, &a);
    } while (main_sends && a.sent < a.count);
    check(f, ferry_quiesce(f));
    uint64_t grown_kib = resident_kib_max() - before_kib;
    if (limit_kib != 0 && grown_kib > limit_kib) {
        fprintf(stderr,
                "work_without_end: rank %d grew by %" PRIu64 " KiB, more than %" PRIu64 "\n",
                ferry_rank(f), grown_kib, limit_kib);
        a.wrong++;
    }
    /* A handler that is refused sends less; the main program waits, and sends all. */
    uint64_t own[3] = {a.sent, a.handled, a.refused}, sum[3];
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, own, sum, 3));
    uint64_t each = a.broadcasts ? (uint64_t)ferry_ranks(f) - 1 : 1;
    bool right = sum[0] * each == sum[1] && (sum[2] != 0) != main_sends &&
                 (!main_sends || a.sent == a.count);
    if (!right)
        fprintf(stderr,
                "work_without_end: %" PRIu64 " of %" PRIu64 " were handled, %" PRIu64 " refused\n",
                sum[1], sum[0], sum[2]);
    return a.wrong != 0 || !right;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
