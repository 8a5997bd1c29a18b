/* Goal: after a quiescence, messages reach an object that lives, although its creator has died, or
 * a rank by which it had come. Method: rank 0 makes an object, which goes to rank 1 and on to
 * rank 2. Rank 0 or 1 dies. Then the others send to it: rank 3 knew nothing of it, and rank 4 had
 * sent to it while it was on rank 1. For the simulator: sim -n 5 --faults die=1@30ms. */
#include <stdlib.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"

enum { HOME, PASSED, HOLDER, STRANGER, KNOWS, RANKS };

typedef struct account {
    ferry_object object;
    ferry_handler onward, message;
    int completed, failed;
} account;

static void on_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)arg, (void)receipt;
    ((account *)ferry_user_data(f))->completed++;
}

static void on_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)arg, (void)receipt;
    ((account *)ferry_user_data(f))->failed++;
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f, (void)arg, (void)event;
}

/* The message names the rank to which the object goes on. */
static void on_onward(ferry *f, ferry_object object, void *data, int source,
                      const ferry_message *message)
{
    (void)data, (void)source;
    CHECK(f, ferry_object_move(f, object, (int)message->words[0]) == 0);
}

static void on_message(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    (void)object, (void)data, (void)source, (void)message;
    CHECK(f, ferry_rank(f) == HOLDER);
}

static void quiesce(ferry *f)
{
    int error = ferry_quiesce(f);
    while (error == FERRY_EPEER)
        error = ferry_quiesce(f);
    CHECK(f, error == 0);
}

static void send(ferry *f, account *a, ferry_handler handler, uint64_t word)
{
    const ferry_message message = {.handler = handler, .word_count = 1, .words = {word}};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = on_completed;
    track.failed = on_failed;
    CHECK(f, ferry_object_send(f, a->object, &message, &track) == 0);
}

/* One phase of the movements. */
static void send_on(ferry *f, account *a, int rank, int to)
{
    if (ferry_rank(f) == rank)
        send(f, a, a->onward, (uint64_t)to);
    quiesce(f);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_object_type type;
    account a = {0};
    (void)argc, (void)argv;
    ops.name = "outlives";
    ops.flat_bytes = 8;
    ferry_user_data_set(f, &a);
    CHECK(f, ferry_ranks(f) == RANKS && ferry_peer_watch(f, on_peer, NULL) == 0);
    CHECK(f, ferry_object_type_register(f, &ops, &type) == 0);
    CHECK(f, ferry_object_handler_register(f, "onward", on_onward, &a.onward) == 0);
    CHECK(f, ferry_object_handler_register(f, "message", on_message, &a.message) == 0);
    if (ferry_rank(f) == HOME)
        CHECK(f, ferry_object_create(f, type, calloc(1, 8), &a.object) == 0 &&
                     ferry_object_move(f, a.object, PASSED) == 0);
    CHECK(f, ferry_broadcast(f, HOME, &a.object, sizeof(a.object)) == 0);
    quiesce(f);
    send_on(f, &a, KNOWS, PASSED);
    send_on(f, &a, PASSED, HOLDER);
    ferry_compute(f, 0.06);
    quiesce(f);
    CHECK(f, ferry_member_count(f) == RANKS - 1);
    int before = a.completed;
    send(f, &a, a.message, 0);
    quiesce(f);
    CHECK(f, a.completed == before + 1 && a.failed == 0);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
