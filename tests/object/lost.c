/* Goal: the reason of a message to an object that is lost does not say of a rank that lives that it
 * has gone. Method: rank 0 makes an object, which goes to rank 2. That dies, and rank 1 sends to
 * the object by way of rank 0. For the simulator: sim -n 3 --faults die=2@30ms. */
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"
#include "../support/survive.h"

enum { HOME, SENDER, HOLDER };

typedef struct end {
    int count;
    ferry_receipt receipt;
    char reason[200];
} end;

static void on_end(ferry *f, void *arg, const ferry_receipt *receipt)
{
    end *e = arg;
    (void)f;
    e->count++;
    e->receipt = *receipt;
    (void)snprintf(e->reason, sizeof(e->reason), "%s", receipt->reason);
}

static void on_message(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    (void)f, (void)object, (void)data, (void)source, (void)message;
}

static void send_to_lost(ferry *f, ferry_object object, ferry_handler handler)
{
    const ferry_message message = {.handler = handler};
    end e = {0};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = track.failed = on_end;
    track.completed_arg = track.failed_arg = &e;
    CHECK(f, ferry_object_send(f, object, &message, &track) == 0);
    while (e.count == 0)
        CHECK(f, ferry_wait(f, FERRY_FOREVER) >= 0);
    CHECK(f, e.receipt.error == FERRY_EPEER && e.receipt.rank == HOME);
    CHECK(f, strcmp(e.reason, "rank 0 needs a rank that is gone") == 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_object_type type;
    ferry_handler handler;
    ferry_object object = {0};
    (void)argc, (void)argv;
    ops.name = "lost";
    ops.flat_bytes = 8;
    CHECK(f, survive_deaths(f) == 0);
    CHECK(f, ferry_object_type_register(f, &ops, &type) == 0);
    CHECK(f, ferry_object_handler_register(f, "message", on_message, &handler) == 0);
    if (ferry_rank(f) == HOME)
        CHECK(f, ferry_object_create(f, type, calloc(1, 8), &object) == 0 &&
                     ferry_object_move(f, object, HOLDER) == 0);
    CHECK(f, ferry_broadcast(f, HOME, &object, sizeof(object)) == 0);
    CHECK(f, ferry_quiesce(f) == 0);
    ferry_compute(f, 0.06);
    int error = survive_quiesce(f);
    CHECK(f, error == 0 && ferry_member_count(f) == HOLDER);
    if (ferry_rank(f) == SENDER)
        send_to_lost(f, object, handler);
    error = ferry_quiesce(f);
    CHECK(f, error == 0);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
