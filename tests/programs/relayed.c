/* Goal: ranks that join a job over several nodes are ranks like others to those of every node.
 * Requests and large payloads come once, whole and in order, also when many are in flight. Puts,
 * gets and remote words reach their memory. Objects with much data go to them and come back.
 * Collectives count them. If one leaves, or is killed while it sends as fast as it can, all ranks
 * are told, and the others go on. Method: rank 0 and the last rank start one each, from two nodes
 * where there are two; then steps between quiescences. Run with room for two ranks more. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ferry/ferry.h>

#include "../support/check.h"

/* SMALL is above the number of frames that may be in flight between two ranks. */
enum { RANKS_MAX = 32, ROUNDS = 2, SMALL = 600, ADDS = 30, TRIP_BYTES = 100000 };

/* Payloads: none; in a cache line; in a ring; in a block; beside the frame; larger than a ring. */
static const size_t sizes[] = {0, 8, 300, 5000, 12000, 20000, 300000, 1500000};
enum { SIZES = sizeof sizes / sizeof sizes[0], SIZE_MAX_BYTES = 1500000 };

typedef struct parcel {
    int64_t hops;
    unsigned char bytes[TRIP_BYTES];
} parcel;

typedef struct state {
    ferry_handler piece, noise, tell, travel;
    ferry_object_type type;
    uint64_t next[RANKS_MAX]; /* by source: the request that comes next */
    int64_t noises, heard, returned;
    int64_t died, left;
    unsigned char *data;
} state;

static unsigned char byte_at(uint64_t number, size_t at)
{
    return (unsigned char)(number * 31 + at * 7 + at / 4096);
}

static bool is_whole(const unsigned char *data, size_t size_bytes, uint64_t number)
{
    for (size_t i = 0; i < size_bytes; i++)
        if (data[i] != byte_at(number, i))
            return false;
    return true;
}

static void on_piece(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    check(f, message->words[0] == s->next[source], "a request is lost, doubled, or out of order");
    check(f, is_whole(message->data, message->size_bytes, message->words[0]), "data are damaged");
    s->next[source]++;
}

static void on_noise(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)source;
    check(f, is_whole(message->data, message->size_bytes, message->words[0]), "data are damaged");
    s->noises++;
}

/* A member has the victim's process number. */
static void on_heard(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)source;
    (void)message;
    s->heard++;
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    state *s = arg;
    (void)f;
    s->died += event->died;
    s->left += !event->died && !event->joined;
}

static void send_piece(ferry *f, state *s, int target, uint64_t number, size_t size_bytes)
{
    for (size_t i = 0; i < size_bytes; i++)
        s->data[i] = byte_at(number, i);
    const ferry_message m = {.handler = s->piece,
                             .word_count = 1,
                             .words = {number},
                             .data = s->data,
                             .size_bytes = size_bytes};
    check(f, ferry_request_send(f, target, &m, NULL) == 0, "send");
}

/* All to all: every size, then many small ones, for which nobody looks meanwhile. */
static void exchange(ferry *f, state *s)
{
    int count = ferry_member_count(f);
    uint64_t number = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (int size = 0; size < SIZES; size++, number++)
            for (int i = 0; i < count; i++)
                send_piece(f, s, ferry_member_rank(f, i), number, sizes[size]);
    for (int k = 0; k < SMALL; k++, number++)
        for (int i = 0; i < count; i++)
            send_piece(f, s, ferry_member_rank(f, i), number, 0);
    check(f, ferry_quiesce(f) == 0, "quiesce");
    for (int i = 0; i < count; i++)
        check(f, s->next[ferry_member_rank(f, i)] == number, "requests are lost");
    memset(s->next, 0, sizeof s->next);
    check(f, ferry_barrier(f) == 0, "barrier");
}

/* Each member counts up a word of each other, and writes a block to the next one and reads it back.
 */
static void use_memory(ferry *f, const state *s)
{
    enum { BLOCK_BYTES = 1 << 20 };
    int count = ferry_member_count(f), place = ferry_member_place(f, ferry_rank(f));
    unsigned char *block, *blocks[RANKS_MAX], *got = malloc(BLOCK_BYTES);
    uint64_t *word, *words[RANKS_MAX], old;
    check(f, got != NULL && ferry_alloc(f, BLOCK_BYTES, (void **)&block) == 0, "alloc");
    check(f, ferry_alloc(f, sizeof *word, (void **)&word) == 0, "alloc");
    *word = 0;
    check(f, ferry_allgather(f, &word, sizeof word, words) == 0, "allgather");
    check(f, ferry_allgather(f, &block, sizeof block, blocks) == 0, "allgather");
    for (int k = 0; k < ADDS; k++)
        for (int i = 0; i < count; i++) {
            const ferry_atomic add = {.verb = FERRY_FETCH_ADD, .target = words[i], .operand = 1};
            check(f,
                  ferry_atomic_update(f, ferry_member_rank(f, i), &add, k % 2 ? &old : NULL,
                                      NULL) == 0,
                  "fetch-add");
        }
    int next = (place + 1) % count;
    for (size_t i = 0; i < BLOCK_BYTES; i++)
        s->data[i] = byte_at((uint64_t)place, i);
    check(f,
          ferry_put(f, ferry_member_rank(f, next), blocks[next], s->data, BLOCK_BYTES, NULL) == 0,
          "put");
    /* A quiescence counts neither; both have been waited for. */
    check(f, ferry_get(f, ferry_member_rank(f, next), got, blocks[next], BLOCK_BYTES, NULL) == 0,
          "get");
    check(f, is_whole(got, BLOCK_BYTES, (uint64_t)place), "a get is damaged");
    check(f, ferry_quiesce(f) == 0 && ferry_barrier(f) == 0, "quiesce");
    check(f, *word == (uint64_t)count * ADDS, "words were counted wrong");
    check(f, is_whole(block, BLOCK_BYTES, (uint64_t)((place + count - 1) % count)),
          "a put is damaged");
    check(f, ferry_barrier(f) == 0, "barrier");
    check(f, ferry_free(f, word) == 0 && ferry_free(f, block) == 0, "free");
    free(got);
}

/* An object visits all members, its data with it, and its next message behind it. */
static void travel(ferry *f, ferry_object object, void *data, int source,
                   const ferry_message *message)
{
    parcel *p = data;
    state *s = ferry_user_data(f);
    int count = ferry_member_count(f), start = (int)message->words[0];
    (void)source;
    check(f, ferry_member_rank(f, (start + (int)p->hops) % count) == ferry_rank(f),
          "an object is elsewhere");
    check(f, is_whole(p->bytes, sizeof p->bytes, message->words[0]), "an object is damaged");
    if (p->hops++ == count) {
        s->returned++;
        return;
    }
    int next = ferry_member_rank(f, (start + (int)p->hops) % count);
    const ferry_message m = {.handler = s->travel, .word_count = 1, .words = {message->words[0]}};
    check(f, ferry_object_move(f, object, next) == 0, "move");
    check(f, ferry_object_send(f, object, &m, NULL) == 0, "send to an object");
}

static void send_round(ferry *f, state *s)
{
    ferry_object object;
    parcel *p = calloc(1, sizeof *p);
    uint64_t place = (uint64_t)ferry_member_place(f, ferry_rank(f));
    const ferry_message m = {.handler = s->travel, .word_count = 1, .words = {place}};
    check(f, p != NULL, "memory");
    for (size_t i = 0; i < sizeof p->bytes; i++)
        p->bytes[i] = byte_at(place, i);
    s->returned = 0;
    check(f, ferry_object_create(f, s->type, p, &object) == 0, "create");
    check(f, ferry_object_send(f, object, &m, NULL) == 0, "send to an object");
    check(f, ferry_quiesce(f) == 0, "quiesce");
    check(f, s->returned == 1, "an object has not come back");
    check(f, ferry_object_destroy(f, object) == 0, "destroy");
}

/* Sends to all until it is killed, whatever they take. */
static void make_noise(ferry *f, state *s, int count)
{
    for (uint64_t number = 0;; number++)
        for (int i = 0; i < count; i++) {
            size_t size_bytes = sizes[number % SIZES];
            for (size_t k = 0; k < size_bytes; k++)
                s->data[k] = byte_at(number, k);
            const ferry_message m = {.handler = s->noise,
                                     .word_count = 1,
                                     .words = {number},
                                     .data = s->data,
                                     .size_bytes = size_bytes};
            check(f, ferry_request_send(f, ferry_member_rank(f, i), &m, NULL) == 0, "send");
        }
}

/* The last member is killed by the first, when that has heard it. The others have its number then:
 * a broadcast may fail where its root dies. */
static void kill_one(ferry *f, state *s)
{
    int count = ferry_member_count(f), pid = (int)getpid();
    int victim = ferry_member_rank(f, count - 1);
    check(f, ferry_broadcast(f, victim, &pid, sizeof pid) == 0, "broadcast");
    if (ferry_rank(f) == victim)
        make_noise(f, s, count - 1);
    const ferry_message heard = {.handler = s->tell};
    check(f, ferry_request_send(f, ferry_member_rank(f, 0), &heard, NULL) == 0, "send");
    while (s->noises < 20 && s->died == 0)
        (void)ferry_wait(f, FERRY_FOREVER);
    bool kills = ferry_member_place(f, ferry_rank(f)) == 0;
    while (kills && s->heard < count - 1)
        (void)ferry_wait(f, FERRY_FOREVER);
    if (kills)
        check(f, kill((pid_t)pid, SIGKILL) == 0, "kill");
    while (s->died == 0)
        (void)ferry_wait(f, FERRY_FOREVER);
    check(f, ferry_peer_is_gone(f, victim) && s->died == 1, "a death is told wrong");
}

static void count_members(ferry *f, int expected)
{
    int64_t one = 1, sum = 0;
    check(f, ferry_member_count(f) == expected, "members are missing");
    check(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &one, &sum, 1) == 0, "allreduce");
    check(f, sum == expected, "allreduce counted wrong");
}

static void open_state(ferry *f, state *s)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "parcel", .flat_bytes = sizeof(parcel)};
    ferry_user_data_set(f, s);
    s->data = malloc(SIZE_MAX_BYTES);
    check(f, s->data != NULL, "memory");
    check(f, ferry_handler_register(f, "piece", on_piece, &s->piece) == 0, "register");
    check(f, ferry_handler_register(f, "noise", on_noise, &s->noise) == 0, "register");
    check(f, ferry_handler_register(f, "heard", on_heard, &s->tell) == 0, "register");
    check(f, ferry_object_type_register(f, &ops, &s->type) == 0, "type");
    check(f, ferry_object_handler_register(f, "travel", travel, &s->travel) == 0, "register");
    check(f, ferry_peer_watch(f, on_peer, s) == 0, "on_peer");
}

/* All members do this; then the last but one leaves, and the others are told. False: this rank
 * left. */
static bool live(ferry *f, state *s, int started)
{
    count_members(f, started + 2);
    exchange(f, s);
    use_memory(f, s);
    send_round(f, s);
    int leaver = ferry_member_rank(f, started);
    if (ferry_rank(f) == leaver)
        return false;
    while (s->left == 0)
        (void)ferry_wait(f, FERRY_FOREVER);
    check(f, s->left == 1 && ferry_peer_is_gone(f, leaver), "a leave is told wrong");
    check(f, ferry_quiesce(f) == 0, "quiesce");
    count_members(f, started + 1);
    exchange(f, s);
    kill_one(f, s);
    check(f, ferry_quiesce(f) == 0, "quiesce");
    count_members(f, started);
    exchange(f, s);
    return true;
}

static int run(ferry *f, int argc, char **argv)
{
    state s = {0};
    int started = ferry_ranks(f) - 2, rank = ferry_rank(f), first;
    bool comes = ferry_member_place(f, rank) < 0;
    (void)argc;
    (void)argv;
    check(f, comes || (ferry_member_count(f) == started && started > 1), "run with room for two");
    check(f, ferry_ranks(f) <= RANKS_MAX, "too many ranks");
    open_state(f, &s);
    if (!comes)
        check(f, ferry_barrier(f) == 0, "barrier");
    if (rank == 0 || rank == started - 1)
        check(f, ferry_spawn(f, 1, NULL, &first) == 0, "spawn");
    check(f, ferry_quiesce(f) == 0, "quiesce");
    bool stays = live(f, &s, started);
    free(s.data);
    if (!stays)
        return ferry_leave(f) == 0 ? 0 : 1;
    if (rank == 0)
        printf("%d members in the end\n", ferry_member_count(f));
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
