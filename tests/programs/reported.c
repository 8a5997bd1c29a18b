/* Goal: when ferry_quiesce returns, every tracked request, object message, put and get of this rank
 * has been reported, on every port. One that has timed out or was cancelled has ended too. Method:
 * each rank counts the operations that it starts and those that callbacks tell; the simulator makes
 * ends late. */
#include <stdint.h>
#include <stdlib.h>

#include "../support/check.h"

enum { ROUNDS = 12, RANKS_MAX = 64 };

typedef struct state {
    ferry_object_type type;
    ferry_handler request, message;
    ferry_object objects[RANKS_MAX];
    uint64_t addresses[RANKS_MAX], started, ended, word;
} state;

static void on_request(ferry *f, int source, const ferry_message *message)
{
    (void)f, (void)source, (void)message;
}

static void on_message(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    (void)f, (void)object, (void)data, (void)source, (void)message;
}

static void on_end(ferry *f, void *arg, const ferry_receipt *receipt)
{
    check(f, receipt->event == FERRY_COMPLETED, "an operation has failed");
    ((state *)arg)->ended++;
}

/* For an operation that may time out, or is cancelled. */
static void on_any(ferry *f, void *arg, const ferry_receipt *receipt)
{
    check(f,
          receipt->error == 0 || receipt->error == FERRY_ETIMEDOUT ||
              receipt->error == FERRY_ECANCELED,
          "an operation has failed");
    ((state *)arg)->ended++;
}

static void start_doomed(ferry *f, state *s, int rank)
{
    const ferry_message request = {.handler = s->request};
    ferry_op op;
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = track.failed = on_any;
    track.completed_arg = track.failed_arg = s;
    track.timeout_ns = 2000;
    check(f, ferry_request_send(f, rank, &request, &track) == 0, "request with a timeout");
    track.timeout_ns = 0;
    track.op = &op;
    check(f, ferry_request_send(f, rank, &request, &track) == 0, "request to cancel");
    check(f, ferry_op_cancel(f, &op) == 0, "cancel");
    s->started += 2;
}

static void start_all(ferry *f, state *s, int rank, uint64_t *got)
{
    const ferry_message request = {.handler = s->request}, message = {.handler = s->message};
    uint64_t *there = (uint64_t *)(uintptr_t)s->addresses[rank];
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = track.failed = on_end;
    track.completed_arg = track.failed_arg = s;
    check(f, ferry_request_send(f, rank, &request, &track) == 0, "request");
    check(f, ferry_object_send(f, s->objects[rank], &message, &track) == 0, "message");
    check(f, ferry_put(f, rank, there, &s->started, sizeof(*there), &track) == 0, "put");
    check(f, ferry_get(f, rank, got, there, sizeof(*there), &track) == 0, "get");
    s->started += 4;
}

static void run_rounds(ferry *f, state *s)
{
    uint64_t got[RANKS_MAX];
    for (int round = 0; round < ROUNDS; round++) {
        for (int rank = 0; rank < ferry_ranks(f); rank++)
            start_all(f, s, rank, &got[rank]);
        for (int rank = 0; rank < ferry_ranks(f); rank++)
            start_doomed(f, s, rank);
        check(f, ferry_quiesce(f) == 0, "quiesce");
        check(f, s->ended == s->started, "ferry_quiesce returned before an end was reported");
        check(f, ferry_barrier(f) == 0, "barrier");
    }
}

static int run(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops ops = {.size = sizeof(ops), .name = "word", .flat_bytes = 8};
    (void)argc, (void)argv;
    state *s = calloc(1, sizeof(*s));
    ferry_object own;
    check(f, s != NULL && ferry_ranks(f) <= RANKS_MAX, "memory");
    check(f, ferry_handler_register(f, "request", on_request, &s->request) == 0, "register");
    check(f, ferry_object_type_register(f, &ops, &s->type) == 0, "type");
    check(f, ferry_object_handler_register(f, "message", on_message, &s->message) == 0, "register");
    check(f, ferry_object_create(f, s->type, calloc(1, 8), &own) == 0, "create");
    check(f, ferry_memory_register(f, &s->word, sizeof(s->word)) == 0, "register");
    uint64_t address = (uintptr_t)&s->word;
    check(f, ferry_allgather(f, &own, sizeof(own), s->objects) == 0, "allgather");
    check(f, ferry_allgather(f, &address, sizeof(address), s->addresses) == 0, "allgather");
    run_rounds(f, s);
    check(f, ferry_memory_unregister(f, &s->word) == 0, "unregister");
    free(s);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
