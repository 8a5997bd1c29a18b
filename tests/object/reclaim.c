/* Goal: a long run that creates, sends to, moves and destroys objects does not grow: no rank keeps
 * anything of objects that are no more.
 * Method: in each round every rank creates objects that all ranks send to; handlers move them at
 * random, and one message destroys each, while others are still in flight. After the round each
 * tracked message has had one end, and every rank's directory gets empty.
 *
 * Run as FERRY_RANKS=N [FERRY_THREADS=1] reclaim OBJECTS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/random.h"
#include "object/object.h"

enum { PER_ROUND = 50, MESSAGES = 3, LOOK_NS = 1000 * 1000 };

typedef struct account {
    ferry_object_type type;
    ferry_handler handler;
    uint64_t random, wrong;
    uint64_t sent, ended; /* tracked messages */
    int64_t alive;
} account;

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)object;
    void *data = malloc(size_bytes);
    ((account *)ferry_user_data(f))->alive++;
    return data == NULL ? NULL : memcpy(data, buffer, size_bytes);
}

static void destroy(ferry *f, void *data)
{
    ((account *)ferry_user_data(f))->alive--;
    free(data);
}

static void handle(ferry *f, ferry_object object, void *data, int source,
                   const ferry_message *message)
{
    account *a = ferry_user_data(f);
    (void)data;
    (void)source;
    int error =
        message->words[0] != 0
            ? ferry_object_destroy(f, object)
            : ferry_object_move(f, object, (int)(xorshift(&a->random) % (uint64_t)ferry_ranks(f)));
    a->wrong += error != 0;
}

static void ended(ferry *f, void *arg, const ferry_receipt *receipt)
{
    account *a = arg;
    (void)f;
    a->ended++;
    a->wrong += receipt->error != 0 && receipt->error != FERRY_ENOENT;
}

static void send_to(ferry *f, account *a, ferry_object object, bool last)
{
    const ferry_track track = {.size = sizeof track,
                               .completed = ended,
                               .completed_arg = a,
                               .failed = ended,
                               .failed_arg = a};
    const ferry_message m = {.handler = a->handler, .word_count = 1, .words = {last}};
    int error = ferry_object_send(f, object, &m, &track);
    a->sent += error == 0;
    a->wrong += error != 0 && error != FERRY_ENOENT;
}

static void run_round(ferry *f, account *a, ferry_object *all)
{
    int rank = ferry_rank(f), ranks = ferry_ranks(f), count = PER_ROUND * ranks;
    memset(all, 0, (size_t)count * sizeof *all);
    for (int i = 0; i < PER_ROUND; i++) {
        a->alive++;
        a->wrong += ferry_object_create(f, a->type, calloc(1, sizeof(uint64_t)),
                                        &all[rank * PER_ROUND + i]) != 0;
    }
    a->wrong += ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, all, all, (size_t)count) != 0;
    for (int turn = 0; turn < MESSAGES; turn++)
        for (int i = 0; i < count; i++)
            send_to(f, a, all[i], turn == MESSAGES / 2 && i % ranks == rank);
    a->wrong += ferry_quiesce(f) != 0;
    /* The directory learns of the end without a handler, so no wait ends. */
    while (a->ended < a->sent || fy_objects_of(f)->directory.count != 0)
        a->wrong += ferry_wait(f, LOOK_NS) < 0;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .flat_bytes = sizeof(uint64_t), .unpack = unpack, .destroy = destroy};
    account a = {.random = ((uint64_t)ferry_rank(f) + 1) * 0x9e3779b97f4a7c15u};
    int rounds = (argc > 1 ? atoi(argv[1]) : 1000) / (PER_ROUND * ferry_ranks(f));
    ferry_object *all = calloc((size_t)(PER_ROUND * ferry_ranks(f)), sizeof *all);
    ferry_user_data_set(f, &a);
    if (all == NULL || ferry_object_type_register(f, &ops, &a.type) != 0 ||
        ferry_object_handler_register(f, "handle", handle, &a.handler) != 0)
        return 1;
    for (int round = 0; round < rounds && a.wrong == 0; round++)
        run_round(f, &a, all);
    /* Numbers of names are used again: there are as many as objects lived at once. */
    a.wrong += fy_objects_of(f)->names.count > 2 * PER_ROUND + 1;
    if (ferry_rank(f) == 0)
        printf("reclaim: %d rounds, %llu messages of rank 0\n", rounds, (unsigned long long)a.sent);
    free(all);
    if (a.wrong != 0)
        fprintf(stderr, "reclaim: rank %d: %llu wrong\n", ferry_rank(f),
                (unsigned long long)a.wrong);
    return a.wrong != 0 || a.alive < 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
