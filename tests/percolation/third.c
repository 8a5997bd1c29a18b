/* Goal: after the death of an engine, a rank that knows an object only at that engine still finds
 * it. Method: ranks 0 and 1 are servers, rank 2 is the engine. Every second object visits rank 1
 * and goes back. Rank 1 sends a task to each object of rank 0. While the task runs, rank 1 sends
 * another one, so it learns that the engine has the object. When the objects are back on rank 0,
 * the engine is killed. Then rank 1 sends to all objects again, and each message must be completed.
 * With `learn` it first waits until it knows where the objects are that it has had.
 *
 * Run as FERRY_RANKS=3 FERRY_COMPUTE=sleep third [learn]. */
#include <signal.h>
#include <stdio.h>

#include "../support/survive.h"
#include "setup.h"

enum { OBJECTS = 8, ROUNDS = 2, BYTES = 64, SERVERS = 2, ASKER = 1, ENGINE = 2 };

typedef struct account {
    ferry_handler hold, add, seen;
    ferry_object objects[OBJECTS];
    int sent, completed, failed, error;
} account;

static void send_one(ferry *f, account *a, ferry_object object, ferry_handler handler);

/* A task during which rank 1 sends another one. */
static void on_hold(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    const account *a = ferry_user_data(f);
    const ferry_message seen = {.handler = a->seen, .word_count = 1, .words = {object.word}};
    (void)data, (void)source, (void)m;
    check(f, ferry_request_send(f, ASKER, &seen, NULL) == 0, "request");
    ferry_compute(f, 20e-3);
}

static void on_add(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)f, (void)object, (void)data, (void)source, (void)m;
}

static void on_seen(ferry *f, int source, const ferry_message *m)
{
    account *a = ferry_user_data(f);
    (void)source;
    send_one(f, a, (ferry_object){m->words[0]}, a->add);
}

static void on_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f, (void)receipt;
    ((account *)arg)->completed++;
}

static void on_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    account *a = arg;
    (void)f;
    a->failed++;
    a->error = receipt->error;
}

static void set_up(ferry *f, account *a)
{
    ferry_user_data_set(f, a);
    check(f, survive_deaths(f) == 0, "watch");
    ferry_object_type type = store_set_up(f, BYTES, 4 * BYTES);
    check(f,
          ferry_object_handler_register(f, "hold", on_hold, &a->hold) == 0 &&
              ferry_object_handler_register(f, "add", on_add, &a->add) == 0 &&
              ferry_handler_register(f, "seen", on_seen, &a->seen) == 0,
          "handlers");
    check(f, ferry_barrier(f) == 0 && percolation_begins(f, SERVERS), "start");
    if (ferry_rank(f) == 0)
        objects_create(f, type, BYTES, a->objects, OBJECTS);
    check(f, ferry_broadcast(f, 0, a->objects, sizeof a->objects) == 0, "broadcast");
}

static void send_one(ferry *f, account *a, ferry_object object, ferry_handler handler)
{
    const ferry_message message = {.handler = handler};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = on_completed;
    track.failed = on_failed;
    track.completed_arg = track.failed_arg = a;
    check(f, ferry_object_send(f, object, &message, &track) == 0, "send");
    a->sent++;
}

/* Rank 1 sends to all objects. */
static void play_round(ferry *f, account *a, ferry_handler handler)
{
    for (int i = 0; i < OBJECTS && ferry_rank(f) == ASKER; i++)
        send_one(f, a, a->objects[i], handler);
    check(f, ferry_quiesce(f) == 0, "quiesce");
    if (a->failed != 0)
        fprintf(stderr, "%d of %d messages failed: %s\n", a->failed, a->sent,
                ferry_strerror(a->error));
    check(f, a->completed == a->sent, "a message failed");
}

/* Every second object has been on the rank that will send to it. */
static void visit(ferry *f, const account *a)
{
    for (int i = 1; i < OBJECTS && ferry_rank(f) == 0; i += 2)
        check(f, ferry_object_move(f, a->objects[i], ASKER) == 0, "move");
    check(f, ferry_quiesce(f) == 0, "quiesce");
    for (int i = 1; i < OBJECTS && ferry_rank(f) == ASKER; i += 2)
        check(f, ferry_object_move(f, a->objects[i], 0) == 0, "move back");
    check(f, ferry_quiesce(f) == 0, "quiesce");
}

/* Rank 1 learns where the objects are now: messages of others may come to it. */
static void learn(ferry *f, const account *a)
{
    for (int i = 1; i < OBJECTS && ferry_rank(f) == ASKER; i += 2)
        for (int place = ENGINE; place == ENGINE; (void)ferry_poll(f))
            check(f, ferry_object_locate(f, a->objects[i], &place) == 0, "locate");
}

static int rank_main(ferry *f, int argc, char **argv)
{
    account a = {.sent = 0};
    (void)argv;
    set_up(f, &a);
    visit(f, &a);
    play_round(f, &a, a.hold);
    if (ferry_rank(f) == ENGINE)
        raise(SIGKILL);
    while (!ferry_peer_is_gone(f, ENGINE))
        (void)ferry_poll(f);
    if (argc > 1)
        learn(f, &a);
    for (int round = 0; round < ROUNDS; round++)
        play_round(f, &a, a.add);
    if (ferry_rank(f) == ASKER)
        printf("third: right, %d messages\n", a.sent);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
