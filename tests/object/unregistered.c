/* Goal: a rank leaves that has got objects of types it has not registered, and nothing is lost. The
 * objects are not lost, nor messages that came with them, wait for them or come later, nor the ends
 * of tracked messages. This holds too if the next rank registers the types only afterwards. Method:
 * rank 0 sends objects of each type, and messages for them, to rank 1, which has registered none of
 * them, and leaves when it has got all. Only when that is known, rank 2, the next, registers the
 * types, and rank 3 sends messages. Each object counts what it gets, in order.
 *
 * Run with FERRY_RANKS=4. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check.h"

enum { RANKS = 4, MESSAGES = 3, LARGE_BYTES = 200000 };

/* SELF moves in its handler, with one message; SHARED stands in the shared heap. */
typedef enum sort { SMALL, SELF, LARGE, SHARED, SCHEDULED, SORTS } sort;

typedef struct counter {
    uint64_t handled[RANKS]; /* by source */
} counter;

typedef struct state {
    ferry_object objects[SORTS];
    ferry_object_type types[SORTS];
    ferry_handler visit, go;
    int64_t handled, tracked, completed;
    bool goes, left;
} state;

static void visit(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    counter *c = data;
    check(f, m->words[0] == c->handled[source], "a message is lost, doubled or out of order");
    c->handled[source]++;
    ((state *)ferry_user_data(f))->handled++;
    if (m->words[1] != 0)
        check(f, ferry_object_move(f, object, 1) == 0, "move");
}

static void go(ferry *f, int source, const ferry_message *m)
{
    (void)source, (void)m;
    ((state *)ferry_user_data(f))->goes = true;
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    check(f, event->rank == 1 && !event->died, "another rank than 1 has gone");
    ((state *)arg)->left = true;
}

static void on_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f, (void)receipt;
    ((state *)arg)->completed++;
}

static void on_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)arg;
    fprintf(stderr, "failed: %s\n", receipt->reason);
    check(f, false, "a message has failed");
}

static void register_kinds(ferry *f, state *s)
{
    for (int i = 0; i < SORTS; i++) {
        const ferry_object_ops ops = {.size = sizeof ops,
                                      .name = "counter",
                                      .flags = i == SHARED ? FERRY_OBJECT_SHARED : 0,
                                      .flat_bytes = i == LARGE ? LARGE_BYTES : sizeof(counter)};
        check(f, ferry_object_type_register(f, &ops, &s->types[i]) == 0, "type");
    }
}

static void create(ferry *f, state *s, int i)
{
    void *data = NULL;
    if (i == SHARED)
        check(f, ferry_alloc(f, sizeof(counter), &data) == 0, "alloc");
    else
        data = calloc(1, i == LARGE ? LARGE_BYTES : sizeof(counter));
    memset(data, 0, sizeof(counter));
    check(f, ferry_object_create(f, s->types[i], data, &s->objects[i]) == 0, "create");
    if (i == SCHEDULED)
        check(f, ferry_balance_add(f, s->objects[i], NULL) == 0, "balance_add");
}

/* The messages of this rank from `first` up to `end`; with `moves` the first has the object move.
 */
static void send(ferry *f, state *s, int i, uint64_t first, uint64_t end, bool moves)
{
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = on_completed;
    track.failed = on_failed;
    track.completed_arg = track.failed_arg = s;
    for (uint64_t k = first; k < end; k++) {
        const ferry_message m = {.handler = s->visit, .word_count = 2, .words = {k, moves}};
        check(f, ferry_object_send(f, s->objects[i], &m, k % 2 == 0 ? NULL : &track) == 0, "send");
        s->tracked += k % 2 != 0;
        moves = false;
    }
}

static void tell(ferry *f, const state *s, int rank)
{
    const ferry_message m = {.handler = s->go};
    check(f, ferry_request_send(f, rank, &m, NULL) == 0, "send");
}

static void await(ferry *f, const bool *flag)
{
    while (!*flag)
        check(f, ferry_poll(f) >= 0, "poll");
}

/* A message that waits for SELF after SELF handled the message that moves it is not tracked. */
static void send_away(ferry *f, state *s)
{
    for (int i = 0; i < SORTS; i++) {
        send(f, s, i, 0, i == SELF ? 1 : MESSAGES, i == SELF);
        if (i != SELF)
            check(f, ferry_object_move(f, s->objects[i], 1) == 0, "move");
    }
    send(f, s, SELF, 1, MESSAGES, false);
    for (int rank = 0; rank != 1;)
        check(f, ferry_poll(f) >= 0 && ferry_object_locate(f, s->objects[SELF], &rank) == 0,
              "poll");
    for (int i = 0; i < SORTS; i++)
        send(f, s, i, MESSAGES, 2 * MESSAGES, false);
    tell(f, s, 1);
}

static int run(ferry *f, int argc, char **argv)
{
    state s = {0};
    (void)argc, (void)argv;
    check(f, ferry_ranks(f) == RANKS, "run with FERRY_RANKS=4");
    ferry_user_data_set(f, &s);
    check(f, ferry_object_handler_register(f, "visit", visit, &s.visit) == 0, "register");
    check(f, ferry_handler_register(f, "go", go, &s.go) == 0, "register");
    check(f, ferry_peer_watch(f, on_peer, &s) == 0, "on_peer");
    if (ferry_rank(f) == 0 || ferry_rank(f) == 3)
        register_kinds(f, &s);
    for (int i = 0; i < SORTS && ferry_rank(f) == 0; i++)
        create(f, &s, i);
    check(f, ferry_broadcast(f, 0, s.objects, sizeof s.objects) == 0, "broadcast");
    if (ferry_rank(f) == 0)
        send_away(f, &s);
    if (ferry_rank(f) == 1) {
        await(f, &s.goes);
        check(f, ferry_leave(f) == 0, "leave");
        return 0;
    }
    await(f, &s.left);
    if (ferry_rank(f) == 0)
        tell(f, &s, 2);
    if (ferry_rank(f) == 2) {
        await(f, &s.goes);
        register_kinds(f, &s);
    }
    for (int i = 0; i < SORTS && ferry_rank(f) == 3; i++)
        send(f, &s, i, 0, MESSAGES, false);
    check(f, ferry_quiesce(f) == 0, "quiesce");
    while (s.completed != s.tracked)
        check(f, ferry_poll(f) >= 0, "poll");
    int64_t sum;
    check(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &s.handled, &sum, 1) == 0, "allreduce");
    check(f, sum == 3 * SORTS * MESSAGES, "messages are missing");
    check(f, ferry_object_count(f) == (ferry_rank(f) == 2 ? SORTS : 0), "objects are elsewhere");
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
