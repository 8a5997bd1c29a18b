/* Goal: ranks that are started later are ranks like others, whichever launcher the job has.
 * Requests, puts, gets, objects and collectives reach every member from every other. A second start
 * finds the ranks of the first one there. One of the new ranks may start more, leave or die while
 * the others go on. One that ends before it has opened Ferry is reported as dead. Method: steps
 * between quiescences, which new ranks enter where they come. Run with room for 2n + 4 ranks,
 * started with n > 1. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ferry/ferry.h>

#include "../support/check.h"

enum { RANKS_MAX = 64, FAILED = 2 };

typedef enum step { FAIL, GROW, GROW_MORE, USE, LEAVE, DIE, USE_AGAIN, END } step;

typedef struct traveller {
    int64_t start, hops; /* the place of its creator; how often it has moved */
} traveller;

typedef struct state {
    ferry_handler hello, travel;
    ferry_object_type type;
    int64_t shaken[RANKS_MAX]; /* by source */
    int64_t returned;
    int joined, died;
    char *const *argv;
    const char *mode; /* "late": ranks of other nodes say late that they go on */
} state;

static void on_hello(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    check(f, message->words[0] == (uint64_t)source, "a request came from another rank");
    s->shaken[source]++;
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    state *s = arg;
    check(f, !event->joined || !ferry_peer_is_gone(f, event->rank), "one that joined is gone");
    s->joined += event->joined;
    s->died += event->died;
}

/* An object goes round all members, and its next message with it. */
static void travel(ferry *f, ferry_object object, void *data, int source,
                   const ferry_message *message)
{
    traveller *t = data;
    state *s = ferry_user_data(f);
    int count = ferry_member_count(f);
    (void)source;
    check(f, message->words[0] == (uint64_t)t->hops, "an object has another number of moves");
    check(f, ferry_member_rank(f, (int)(t->start + t->hops) % count) == ferry_rank(f),
          "an object is elsewhere");
    if (t->hops == count) {
        t->hops = 0;
        s->returned++;
        return;
    }
    t->hops++;
    const ferry_message next = {
        .handler = s->travel, .word_count = 1, .words = {(uint64_t)t->hops}};
    check(f,
          ferry_object_move(f, object, ferry_member_rank(f, (int)(t->start + t->hops) % count)) ==
              0,
          "move");
    check(f, ferry_object_send(f, object, &next, NULL) == 0, "send to an object");
}

/* Starts programs that are no ranks; both starts succeed, and each is told of as a death. */
static void fail(ferry *f, state *s)
{
    char *const ends[] = {"false", NULL}, *const is_not_there[] = {"/nonexistent/program", NULL};
    const struct timespec pause = {.tv_nsec = 200 * 1000 * 1000};
    bool late = ferry_rank(f) != 0 && strcmp(s->mode, "late") == 0;
    int first;
    if (late)
        check(f, ferry_peer_watch(f, NULL, NULL) == 0, "on_peer");
    check(f, ferry_barrier(f) == 0, "barrier"); /* all go on without who dies */
    if (late) {
        nanosleep(&pause, NULL);
        check(f, ferry_peer_watch(f, on_peer, s) == 0, "on_peer");
    }
    if (ferry_member_place(f, ferry_rank(f)) != 0)
        return;
    check(f, ferry_spawn(f, 1, ends, &first) == 0, "spawn");
    check(f, first == ferry_member_count(f), "spawn gave a wrong number");
    check(f, ferry_spawn(f, 1, is_not_there, &first) == 0, "spawn");
    while (s->died < FAILED)
        (void)ferry_wait(f, FERRY_FOREVER);
    check(f, s->joined == 0 && ferry_peer_is_gone(f, first), "one that failed is there");
    s->died = 0;
}

static void grow(ferry *f, const state *s, bool all)
{
    int first, place = ferry_member_place(f, ferry_rank(f));
    if (all || place == ferry_member_count(f) - 1)
        check(f, ferry_spawn(f, 1, all ? NULL : s->argv, &first) == 0, "spawn");
}

/* Every member writes to every other and reads that back, in the shared heap and in own memory. */
static void put_and_get(ferry *f, int count)
{
    int64_t own[RANKS_MAX] = {0}, *shared, self = ferry_rank(f);
    int64_t *mine[2] = {own}, *all[2 * RANKS_MAX];
    int place = ferry_member_place(f, ferry_rank(f));
    check(f, ferry_alloc(f, sizeof own, (void **)&shared) == 0, "alloc");
    check(f, ferry_memory_register(f, own, sizeof own) == 0, "memory_register");
    mine[1] = shared;
    check(f, ferry_allgather(f, mine, sizeof mine, all) == 0, "allgather");
    for (int i = 0; i < 2 * count; i++)
        check(f,
              ferry_put(f, ferry_member_rank(f, i / 2), all[i] + place, &self, sizeof self, NULL) ==
                  0,
              "put");
    /* A quiescence counts no puts; a get comes behind those that went the same way. */
    for (int i = 0; i < 2 * count; i++) {
        int64_t back = -1;
        check(f,
              ferry_get(f, ferry_member_rank(f, i / 2), &back, all[i] + place, sizeof back, NULL) ==
                  0,
              "get");
        check(f, back == self, "a put is lost on its way");
    }
    check(f, ferry_quiesce(f) == 0 && ferry_barrier(f) == 0, "quiesce");
    for (int i = 0; i < count; i++)
        check(f, own[i] == ferry_member_rank(f, i) && shared[i] == own[i], "a put is lost");
    for (int i = 0; i < 2 * count; i++) {
        int64_t got[RANKS_MAX];
        check(f,
              ferry_get(f, ferry_member_rank(f, i / 2), got, all[i], (size_t)count * sizeof *got,
                        NULL) == 0,
              "get");
        for (int k = 0; k < count; k++)
            check(f, got[k] == ferry_member_rank(f, k), "a get brought something else");
    }
    check(f, ferry_barrier(f) == 0, "barrier");
    check(f, ferry_memory_unregister(f, own) == 0 && ferry_free(f, shared) == 0, "free");
}

static void handshake(ferry *f, state *s, int count)
{
    int64_t before[RANKS_MAX];
    const ferry_message m = {
        .handler = s->hello, .word_count = 1, .words = {(uint64_t)ferry_rank(f)}};
    for (int i = 0; i < RANKS_MAX; i++)
        before[i] = s->shaken[i];
    check(f, ferry_barrier(f) == 0, "barrier");
    for (int i = 0; i < count; i++)
        check(f, ferry_request_send(f, ferry_member_rank(f, i), &m, NULL) == 0, "send");
    check(f, ferry_quiesce(f) == 0, "quiesce");
    for (int i = 0; i < count; i++) {
        int rank = ferry_member_rank(f, i);
        check(f, s->shaken[rank] == before[rank] + 1, "a request is lost or doubled");
    }
}

static void send_round(ferry *f, state *s)
{
    ferry_object object;
    traveller *t = calloc(1, sizeof *t);
    const ferry_message m = {.handler = s->travel, .word_count = 1, .words = {0}};
    check(f, t != NULL, "memory");
    t->start = ferry_member_place(f, ferry_rank(f));
    s->returned = 0;
    check(f, ferry_object_create(f, s->type, t, &object) == 0, "create");
    check(f, ferry_object_send(f, object, &m, NULL) == 0, "send to an object");
    check(f, ferry_quiesce(f) == 0, "quiesce");
    check(f, s->returned == 1, "an object has not come back");
    check(f, ferry_object_destroy(f, object) == 0, "destroy");
}

static void use(ferry *f, state *s, int expected)
{
    int64_t one = 1, sum = 0;
    int count = ferry_member_count(f), first;
    if (count != expected)
        fprintf(stderr, "%d members, expected %d\n", count, expected);
    check(f, count == expected, "members are missing");
    check(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &one, &sum, 1) == 0, "allreduce");
    check(f, sum == count, "allreduce counted wrong");
    for (int place = 0; place < count; place++) {
        int root = ferry_member_rank(f, place), told = ferry_rank(f);
        check(f, ferry_broadcast(f, root, &told, sizeof told) == 0, "broadcast");
        check(f, told == root, "broadcast brought something else");
    }
    check(f, ferry_spawn(f, 1, NULL, &first) == FERRY_ENOMEM, "spawn without room");
    handshake(f, s, count);
    put_and_get(f, count);
    send_round(f, s);
}

static int shaken_twice(const state *s)
{
    int count = 0;
    for (int i = 0; i < RANKS_MAX; i++)
        count += s->shaken[i] == 2;
    return count;
}

/* One dies when all others have said that they are through with what they were in with it. */
static void die(ferry *f, state *s, int victim)
{
    const ferry_message m = {
        .handler = s->hello, .word_count = 1, .words = {(uint64_t)ferry_rank(f)}};
    if (victim != ferry_rank(f)) {
        int error = ferry_request_send(f, victim, &m, NULL);
        check(f, error == 0 || error == FERRY_EPEER, "send");
        return;
    }
    while (shaken_twice(s) < ferry_member_count(f) - 1)
        (void)ferry_wait(f, FERRY_FOREVER);
    raise(SIGKILL);
}

/* False: this rank has left. */
static bool act(ferry *f, state *s, step at, int started)
{
    int count = ferry_member_count(f), subject = -1;
    if (at == LEAVE)
        subject = ferry_member_rank(f, started);
    if (at == DIE)
        subject = ferry_member_rank(f, count - 1);
    if (at == FAIL)
        fail(f, s);
    if (at == GROW || at == GROW_MORE)
        grow(f, s, at == GROW_MORE);
    if (at == USE || at == USE_AGAIN)
        use(f, s, at == USE ? 2 * started + 2 : 2 * started);
    if (at == LEAVE && subject == ferry_rank(f)) {
        check(f, ferry_leave(f) == 0, "leave");
        return false;
    }
    if (at == DIE)
        die(f, s, subject);
    while (subject >= 0 && !ferry_peer_is_gone(f, subject))
        (void)ferry_wait(f, FERRY_FOREVER);
    check(f, s->died == (at >= DIE), "deaths are told wrong");
    return true;
}

static void open_state(ferry *f, state *s)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "traveller", .flat_bytes = sizeof(traveller)};
    ferry_user_data_set(f, s);
    check(f, ferry_handler_register(f, "hello", on_hello, &s->hello) == 0, "register");
    check(f, ferry_object_type_register(f, &ops, &s->type) == 0, "type");
    check(f, ferry_object_handler_register(f, "travel", travel, &s->travel) == 0, "register");
    check(f, ferry_peer_watch(f, on_peer, s) == 0, "on_peer");
}

static int run(ferry *f, int argc, char **argv)
{
    state s = {.argv = argv, .mode = argc > 1 ? argv[1] : ""};
    int started = (ferry_ranks(f) - 4) / 2;
    bool comes = ferry_member_place(f, ferry_rank(f)) < 0;
    check(f, started > 1 && ferry_ranks(f) <= RANKS_MAX, "run with room for 2n + 4 ranks");
    check(f, comes || ferry_member_count(f) == started, "run with room for 2n + 4 ranks");
    open_state(f, &s);
    for (step at = FAIL; at != END;) {
        if (!comes && !act(f, &s, at, started))
            return 0;
        comes = false;
        check(f, ferry_quiesce(f) == 0, "quiesce");
        at++;
        check(f, ferry_broadcast(f, 0, &at, sizeof at) == 0, "broadcast");
    }
    if (ferry_rank(f) == 0)
        printf("%d members in the end\n", ferry_member_count(f));
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
