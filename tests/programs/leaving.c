/* Goal: ranks leave a running job and nothing is lost. Objects that were there or made there are
 * reached by their names as before. Each message is handled once and in order, also if it was in
 * flight. Quiescence and collectives go on among the ranks that stay. Method: all ranks send to all
 * objects, which move at random in their handlers. In the middle of each round one or two ranks
 * leave, many of them creators of objects. Each object knows at the end what it must have got. The
 * others send requests with data to the rank that leaves, also while it leaves: each request has
 * one end. Arguments: a number that makes runs differ. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check.h"
#include "../support/random.h"

enum { OBJECTS = 4, MESSAGES = 5, RANKS_MAX = 64, LATE = 20, LATE_BYTES = 50000 };

/* An object counts here what it has seen. */
typedef struct walker {
    uint64_t handled, random;
    uint32_t last[RANKS_MAX]; /* by source */
} walker;

typedef struct state {
    ferry_object_type type;
    ferry_handler visit, report, late;
    ferry_object *objects; /* of all ranks */
    int count;
    uint32_t sent; /* to each */
    uint64_t random, reports;
    int64_t late_sent, late_done, late_failed;
} state;

static void visit(ferry *f, ferry_object object, void *data, int source,
                  const ferry_message *message)
{
    walker *w = data;
    uint32_t number = (uint32_t)message->words[0];
    check(f, number == w->last[source] + 1, "a message is lost, doubled or out of order");
    w->last[source] = number;
    w->handled++;
    if (draw(&w->random, 3) != 0)
        return;
    int target = (int)draw(&w->random, (uint64_t)ferry_ranks(f));
    int error = ferry_object_move(f, object, target);
    check(f, error == 0 || error == FERRY_EPEER, "move");
}

static void report(ferry *f, ferry_object object, void *data, int source,
                   const ferry_message *message)
{
    (void)object;
    (void)source;
    const walker *w = data;
    state *s = ferry_user_data(f);
    if (w->handled != message->words[0])
        fprintf(stderr, "object %d: %d handled, %d sent\n", (int)message->words[1], (int)w->handled,
                (int)message->words[0]);
    check(f, w->handled == message->words[0], "an object has not got what was sent to it");
    s->reports++;
}

static void on_late(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    check(f, message->size_bytes == LATE_BYTES, "a request came shortened");
}

static void on_done(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    (void)receipt;
    ((state *)arg)->late_done++;
}

static void on_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    state *s = arg;
    check(f, receipt->error == FERRY_EPEER, "a request failed for another reason");
    s->late_failed++;
}

/* Requests to ranks that leave, until they are known to be gone. */
static void pester(ferry *f, state *s, uint64_t leaving)
{
    static const char data[LATE_BYTES];
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = on_done;
    track.failed = on_failed;
    track.completed_arg = track.failed_arg = s;
    const ferry_message m = {.handler = s->late, .data = data, .size_bytes = LATE_BYTES};
    for (int rank = 0; rank < ferry_ranks(f); rank++)
        for (int i = 0; i < LATE && leaving >> rank & 1 && !ferry_peer_is_gone(f, rank); i++) {
            int error = ferry_request_send(f, rank, &m, &track);
            check(f, error == 0 || error == FERRY_EPEER, "send to one that leaves");
            s->late_sent += error == 0;
            (void)ferry_poll(f);
        }
    while (s->late_done + s->late_failed != s->late_sent)
        (void)ferry_poll(f);
}

static void open_objects(ferry *f, state *s)
{
    static const ferry_object_ops ops = {
        .size = sizeof(ops), .name = "walker", .flat_bytes = sizeof(walker)};
    ferry_object own[OBJECTS];
    check(f, ferry_object_type_register(f, &ops, &s->type) == 0, "type");
    check(f, ferry_object_handler_register(f, "visit", visit, &s->visit) == 0, "register");
    check(f, ferry_object_handler_register(f, "report", report, &s->report) == 0, "register");
    check(f, ferry_handler_register(f, "late", on_late, &s->late) == 0, "register");
    for (int i = 0; i < OBJECTS; i++) {
        walker *w = calloc(1, sizeof *w);
        check(f, w != NULL, "memory");
        w->random = (uint64_t)ferry_rank(f) * 91 + (uint64_t)i * 7 + s->random;
        check(f, ferry_object_create(f, s->type, w, &own[i]) == 0, "create");
    }
    s->count = OBJECTS * ferry_ranks(f);
    s->objects = calloc((size_t)s->count, sizeof *s->objects);
    check(f, ferry_allgather(f, own, sizeof own, s->objects) == 0, "allgather");
}

static void send_all(ferry *f, state *s)
{
    for (int i = 0; i < MESSAGES; i++) {
        s->sent++;
        const ferry_message m = {.handler = s->visit, .word_count = 1, .words = {s->sent}};
        int first = (int)draw(&s->random, (uint64_t)s->count);
        for (int k = 0; k < s->count; k++)
            check(f, ferry_object_send(f, s->objects[(first + k) % s->count], &m, NULL) == 0,
                  "send");
        if (draw(&s->random, 2) == 0)
            (void)ferry_poll(f);
    }
}

/* The same on every rank: who leaves in `round`; whoever it is, somebody stays. */
static uint64_t leavers(int ranks, int round, uint64_t mix, uint64_t gone)
{
    uint64_t random = mix + (uint64_t)round * 1237 + 11, set = 0;
    for (int i = 0; i < 1 + round % 2; i++) {
        int rank = (int)draw(&random, (uint64_t)ranks);
        while ((gone | set) >> rank & 1)
            rank = (rank + 1) % ranks;
        if (__builtin_popcountll(gone | set) < ranks - 1)
            set |= UINT64_C(1) << rank;
    }
    return set;
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)arg;
    check(f, !event->died, "a rank died");
}

static void check_reports(ferry *f, state *s, uint64_t expected)
{
    int64_t sum = 0, own;
    for (int k = 0; k < s->count && ferry_member_place(f, ferry_rank(f)) == 0; k++) {
        const ferry_message m = {
            .handler = s->report, .word_count = 2, .words = {expected, (uint64_t)k}};
        check(f, ferry_object_send(f, s->objects[k], &m, NULL) == 0, "send");
    }
    check(f, ferry_quiesce(f) == 0, "quiesce");
    own = (int64_t)s->reports;
    check(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &own, &sum, 1) == 0, "allreduce");
    check(f, sum == s->count, "objects are missing");
}

static int run(ferry *f, int argc, char **argv)
{
    uint64_t mix = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, gone = 0, expected = 0;
    int ranks = ferry_ranks(f), rounds = ranks < 6 ? ranks - 1 : 5;
    state s = {.random = (uint64_t)ferry_rank(f) * 977 + mix};
    ferry_user_data_set(f, &s);
    check(f, ferry_peer_watch(f, on_peer, &s) == 0, "on_peer");
    open_objects(f, &s);
    for (int round = 0; round < rounds; round++) {
        uint64_t set = leavers(ranks, round, mix, gone);
        expected += (uint64_t)(ranks - __builtin_popcountll(gone)) * MESSAGES;
        gone |= set;
        send_all(f, &s);
        if (set >> ferry_rank(f) & 1) {
            check(f, ferry_leave(f) == 0, "leave");
            check(f, ferry_leave(f) == FERRY_ESTATE, "a second leave");
            free(s.objects);
            return 0;
        }
        pester(f, &s, set);
        check(f, ferry_quiesce(f) == 0, "quiesce");
        check(f, ferry_barrier(f) == 0, "barrier");
        check(f, ferry_member_count(f) == ranks - __builtin_popcountll(gone), "members");
    }
    check_reports(f, &s, expected);
    if (ferry_member_place(f, ferry_rank(f)) == 0)
        printf("%d of %d ranks stay, %d objects each got %d messages\n", ferry_member_count(f),
               ranks, s.count, (int)expected);
    free(s.objects);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
