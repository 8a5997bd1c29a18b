/* Goal: a job grows while it runs. Method: in each round some rank, in its program or in a handler,
 * has more ranks started, until there is room for none. A node may have used up its share before
 * others have; it passes on what it cannot start. A round ends with a quiescence and with
 * collectives. Both must take in the ranks that were started, and the quiescence the messages to
 * and from them. Run with FERRY_RANKS and FERRY_RANKS_MAX. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check.h"
#include "../support/random.h"

enum { MESSAGES = 20, LIFE = 6 };

typedef struct state {
    ferry_handler wander, spawn;
    uint64_t sent, handled;
    uint64_t random;
    int joined;
} state;

/* A request goes to a rank that this one knows to be there, from there to another, and so on. */
static void send_one(ferry *f, state *s, uint64_t life)
{
    int target;
    do
        target = (int)draw(&s->random, (uint64_t)ferry_ranks(f));
    while (ferry_peer_is_gone(f, target));
    const ferry_message m = {.handler = s->wander, .word_count = 1, .words = {life}};
    s->sent++;
    check(f, ferry_request_send(f, target, &m, NULL) == 0, "send");
}

static void wander(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    check(f, !ferry_peer_is_gone(f, source), "a message from nobody");
    s->handled++;
    if (message->words[0] > 0)
        send_one(f, s, message->words[0] - 1);
}

static void ask(ferry *f, int who, int count)
{
    const state *s = ferry_user_data(f);
    const ferry_message m = {
        .handler = s->spawn, .word_count = 1, .words = {(uint64_t)(uint32_t)count}};
    check(f, ferry_request_send(f, who, &m, NULL) == 0, "send");
}

/* The next member starts those for which there are no numbers here. */
static void spawn(ferry *f, int count)
{
    int first = -1, error = ferry_spawn(f, count, NULL, &first);
    int next = (ferry_member_place(f, ferry_rank(f)) + 1) % ferry_member_count(f);
    if (error == FERRY_ENOMEM && count > 1) {
        for (int i = 0; i < count; i++)
            spawn(f, 1);
        return;
    }
    if (error == FERRY_ENOMEM) {
        ask(f, ferry_member_rank(f, next), 1);
        return;
    }
    check(f, error == 0, "spawn");
    check(f, first >= 0 && first + count <= ferry_ranks(f), "spawn gave a wrong number");
}

static void spawn_here(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    spawn(f, (int)message->words[0]);
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    state *s = arg;
    check(f, !event->died, "a rank died");
    if (!event->joined)
        return; /* it has closed before this one */
    check(f, !ferry_peer_is_gone(f, event->rank), "one that joined is gone");
    s->joined++;
    send_one(f, s, LIFE);
}

/* The first member has `count` more started, or has another do so. */
static void grow(ferry *f, state *s, int count)
{
    int who = ferry_member_rank(f, (int)draw(&s->random, (uint64_t)ferry_member_count(f)));
    if (who == ferry_rank(f))
        spawn(f, count);
    else
        ask(f, who, count);
}

static void check_members(ferry *f, state *s, int expected)
{
    int64_t one = 1, count = 0;
    uint64_t words[2] = {s->sent, s->handled}, sums[2] = {0, 1};
    int *ranks = calloc((size_t)ferry_member_count(f), sizeof *ranks), self = ferry_rank(f);
    check(f, ferry_member_count(f) == expected, "members are missing");
    check(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &one, &count, 1) == 0, "allreduce");
    check(f, count == expected, "allreduce counted wrong");
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, words, sums, 2) == 0, "allreduce");
    check(f, sums[0] == sums[1], "quiescence came early");
    check(f, ferry_allgather(f, &self, sizeof self, ranks) == 0, "allgather");
    for (int place = 0; place < expected; place++)
        check(f, ranks[place] == ferry_member_rank(f, place), "allgather gave a wrong order");
    free(ranks);
}

static int run(ferry *f, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    state s = {.random = (uint64_t)ferry_rank(f) * 977 + 5};
    ferry_user_data_set(f, &s);
    check(f, ferry_handler_register(f, "wander", wander, &s.wander) == 0, "register");
    check(f, ferry_handler_register(f, "spawn", spawn_here, &s.spawn) == 0, "register");
    check(f, ferry_peer_watch(f, on_peer, &s) == 0, "on_peer");
    bool newcomer = ferry_member_place(f, ferry_rank(f)) < 0;
    int first;
    if (newcomer)
        check(f, ferry_barrier(f) == FERRY_ESTATE, "a newcomer called a collective");
    /* A newcomer comes into the middle of a round, and learns at its end which it is. */
    while (ferry_member_count(f) < ferry_ranks(f)) {
        int now = ferry_member_count(f), most = ferry_ranks(f) - now;
        int more = now % 2 + 1 < most ? now % 2 + 1 : most;
        if (ferry_member_place(f, ferry_rank(f)) == 0)
            grow(f, &s, more);
        for (int i = 0; i < MESSAGES; i++)
            send_one(f, &s, LIFE);
        check(f, ferry_quiesce(f) == 0, "quiesce");
        check_members(f, &s, newcomer ? ferry_member_count(f) : now + more);
        newcomer = false;
    }
    check(f, ferry_spawn(f, 1, NULL, &first) == FERRY_ENOMEM, "spawn without room");
    check(f, ferry_spawn(f, 0, NULL, &first) == FERRY_EINVAL, "spawn of none");
    char *const nothing[] = {NULL};
    check(f, ferry_spawn(f, 1, nothing, &first) == FERRY_EINVAL, "spawn of no program");
    check(f, strcmp(ferry_error_message(f), "spawn: argv names no program (count 1)") == 0, "why");
    if (ferry_rank(f) == 0)
        printf("%d ranks\n", ferry_member_count(f));
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
