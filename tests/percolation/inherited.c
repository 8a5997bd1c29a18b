/* Goal: when a data server leaves and an engine dies, each message ends, and objects that are
 * anywhere still answer. Method: ranks 0 and 1 are servers, ranks 2 to 4 are engines, and rank 4
 * creates the objects. Each rank sends to all objects in rounds. Server 1 leaves in the second
 * round, and the simulator kills engine 3 at its time. The successor of rank 1 knows objects that
 * have never been there, and gets messages for them. At last each rank sends once more. As many of
 * its messages fail as there are objects on no rank.
 *
 * Run as ferry sim -n 5 --seed N --faults die=3@TIME inherited. */
#include <stdio.h>

#include "../support/survive.h"
#include "setup.h"

enum {
    OBJECTS = 8,
    ROUNDS = 3,
    BYTES = 1000,
    SERVERS = 2,
    LEAVES = 1,
    VICTIM = 3,
    CREATOR = 4,
    DEATHS = 2
};

typedef struct account {
    ferry_handler add;
    ferry_object objects[OBJECTS];
    int sent, ended, failed;
} account;

static void on_add(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)object, (void)data, (void)source, (void)m;
    ferry_compute(f, 5e-6);
}

static void on_end(ferry *f, void *arg, const ferry_receipt *receipt)
{
    account *a = arg;
    check(f, receipt->error == 0 || receipt->error == FERRY_EPEER, "a message failed otherwise");
    a->ended++;
    a->failed += receipt->error != 0;
}

/* A collective call fails while a death becomes known, and can be repeated then. */
static void settle(ferry *f)
{
    int error = FERRY_EPEER;
    for (int i = 0; i <= DEATHS && error == FERRY_EPEER; i++)
        error = ferry_quiesce(f);
    check(f, error == 0, "quiesce");
}

static bool set_up(ferry *f, account *a)
{
    check(f, survive_deaths(f) == 0, "watch");
    ferry_object_type type = store_set_up(f, BYTES, BYTES * 5 / 2);
    check(f, ferry_object_handler_register(f, "add", on_add, &a->add) == 0, "handler");
    if (!percolation_begins(f, SERVERS))
        return false; /* the engine died before */
    if (ferry_rank(f) == CREATOR)
        objects_create(f, type, BYTES, a->objects, OBJECTS);
    return ferry_broadcast(f, CREATOR, a->objects, sizeof a->objects) == 0;
}

static void send_all(ferry *f, account *a)
{
    const ferry_message message = {.handler = a->add};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = track.failed = on_end;
    track.completed_arg = track.failed_arg = a;
    for (int i = 0; i < OBJECTS; i++) {
        int error = ferry_object_send(f, a->objects[i], &message, &track);
        check(f, error == 0 || error == FERRY_EPEER, "a message was refused otherwise");
        a->sent += error == 0;
        a->failed += error != 0;
    }
}

/* Each message must have ended. If all ranks knew of the death before, the objects are counted. */
static void check_end(ferry *f, account *a)
{
    int64_t sums[2] = {(int64_t)ferry_object_count(f), ferry_peer_is_gone(f, VICTIM)};
    check(f, a->ended == a->sent, "a quiescence came before the end of a message");
    if (ferry_allreduce(f, FERRY_INT64, FERRY_SUM, sums, sums, 2) != 0)
        return;
    a->failed = 0;
    send_all(f, a);
    settle(f);
    bool counted = sums[1] == ferry_member_count(f);
    check(f, !counted || a->failed == OBJECTS - sums[0], "an object is there and is not found");
    if (ferry_rank(f) == CREATOR)
        printf("inherited: right, %d objects are lost\n", a->failed);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    account a = {.sent = 0};
    (void)argc, (void)argv;
    if (!set_up(f, &a))
        return 0;
    settle(f);
    for (int round = 0; round < ROUNDS; round++) {
        send_all(f, &a);
        if (round == 1 && ferry_rank(f) == LEAVES)
            return ferry_leave(f);
        settle(f);
    }
    for (int i = 0; i < DEATHS; i++) /* all have heard of both */
        settle(f);
    check_end(f, &a);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
