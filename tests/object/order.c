/* Goal: messages from one rank to one object are handled once and in order while the objects move.
 * Method: every rank sends numbered messages to every object; handlers check the numbers against
 * the object's own account, move the object at random and send on. Sums over all ranks, counted
 * outside the runtime, must agree after each quiescence. Odd rounds balance scheduled objects as
 * well. If memory is freed because its object has left, it says where the object went.
 *
 * Run as FERRY_RANKS=N [FERRY_THREADS=1] order [seed]. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/random.h"

enum { OBJECTS = 6, ROUNDS = 6, MESSAGES = 60, RANKS_MAX = 64, BYTES = 700 };

typedef struct thing {
    ferry_object self;
    uint64_t expected[RANKS_MAX]; /* next number per source */
    uint64_t handled;
} thing;

typedef struct account {
    uint64_t random;
    uint64_t sent, handled, wrong, alive, left;
    ferry_handler handler;
    ferry_object *objects; /* of all ranks */
    uint64_t *numbers;     /* of the next message to each */
    int count;
} account;

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)object;
    void *data = malloc(size_bytes);
    if (data != NULL)
        memcpy(data, buffer, size_bytes);
    ((account *)ferry_user_data(f))->alive++;
    return data;
}

static void destroy(ferry *f, void *data)
{
    account *a = ferry_user_data(f);
    int rank = ferry_rank(f);
    a->alive--;
    if (ferry_object_locate(f, ((thing *)data)->self, &rank) == 0)
        a->left += rank != ferry_rank(f);
    free(data);
}

static void send_to(ferry *f, account *a, int target, uint64_t hops)
{
    unsigned char data[BYTES];
    size_t size_bytes = xorshift(&a->random) % 3 == 0 ? xorshift(&a->random) % BYTES : 0;
    uint64_t number = a->numbers[target]++;
    memset(data, (int)(number & 0xff), size_bytes);
    ferry_message message = {.handler = a->handler,
                             .word_count = (uint8_t)(2 + xorshift(&a->random) % 3),
                             .tag = (int32_t)number,
                             .words = {number, hops, 2, 3},
                             .data = data,
                             .size_bytes = size_bytes};
    if (ferry_object_send(f, a->objects[target], &message, NULL) != 0) {
        fprintf(stderr, "send: %s\n", ferry_error_message(f));
        a->wrong++;
    }
    a->sent++;
}

static bool contents_are_right(const ferry_message *message)
{
    const unsigned char *data = message->data;
    for (size_t i = 0; i < message->size_bytes; i++)
        if (data[i] != (message->words[0] & 0xff))
            return false;
    return message->tag == (int32_t)message->words[0] &&
           (message->word_count < 3 || message->words[2] == 2) &&
           (message->word_count < 4 || message->words[3] == 3);
}

static void handle(ferry *f, ferry_object object, void *data, int source,
                   const ferry_message *message)
{
    account *a = ferry_user_data(f);
    thing *t = data;
    if (t->expected[source] != message->words[0] || !contents_are_right(message)) {
        fprintf(stderr, "rank %d: object %llx: message %llu from %d, expected %llu\n",
                ferry_rank(f), (unsigned long long)object.word,
                (unsigned long long)message->words[0], source,
                (unsigned long long)t->expected[source]);
        a->wrong++;
    }
    t->expected[source] = message->words[0] + 1;
    t->handled++;
    a->handled++;
    if (message->words[1] > 0)
        send_to(f, a, (int)(xorshift(&a->random) % (uint64_t)a->count), message->words[1] - 1);
    if (xorshift(&a->random) % 4 == 0 &&
        ferry_object_move(f, object, (int)(xorshift(&a->random) % (uint64_t)ferry_ranks(f))) != 0)
        a->wrong++;
}

static void create_objects(ferry *f, account *a, ferry_object_type type)
{
    int ranks = ferry_ranks(f);
    a->count = OBJECTS * ranks;
    a->objects = calloc((size_t)a->count, sizeof *a->objects);
    a->numbers = calloc((size_t)a->count, sizeof *a->numbers);
    for (int i = 0; i < OBJECTS; i++) {
        ferry_object *object = &a->objects[ferry_rank(f) * OBJECTS + i];
        thing *t = calloc(1, sizeof *t);
        a->alive++;
        if (ferry_object_create(f, type, t, object) != 0 ||
            (i % 2 == 1 && ferry_balance_add(f, *object, NULL) != 0)) {
            fprintf(stderr, "create: %s\n", ferry_error_message(f));
            a->wrong++;
        }
        t->self = *object;
    }
    if (ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, a->objects, a->objects, (size_t)a->count) != 0)
        a->wrong++;
}

/* The oracle: sums that the runtime does not know. */
static bool sums_agree(ferry *f, account *a)
{
    uint64_t sums[4] = {a->sent, a->handled, a->wrong, a->alive};
    if (ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, 4) != 0)
        return false;
    bool right = sums[0] == sums[1] && sums[2] == 0 && sums[3] == (uint64_t)a->count;
    if (!right && ferry_rank(f) == 0)
        fprintf(stderr, "sent %llu, handled %llu, wrong %llu, objects %llu of %d\n",
                (unsigned long long)sums[0], (unsigned long long)sums[1],
                (unsigned long long)sums[2], (unsigned long long)sums[3], a->count);
    return right;
}

static bool round_is_right(ferry *f, account *a, int round)
{
    if (ferry_balance_enable(f, round % 2 == 1) != 0)
        a->wrong++;
    for (int i = 0; i < MESSAGES; i++) {
        int target = (int)(xorshift(&a->random) % (uint64_t)a->count);
        send_to(f, a, target, xorshift(&a->random) % 4);
        /* Most are elsewhere: then it must say so. */
        if (xorshift(&a->random) % 8 == 0) {
            int to = (int)(xorshift(&a->random) % (uint64_t)ferry_ranks(f));
            int error = ferry_object_move(f, a->objects[target], to);
            a->wrong += error != 0 && error != FERRY_ENOENT;
        }
        if (xorshift(&a->random) % 5 == 0)
            (void)ferry_poll(f);
    }
    if (ferry_quiesce(f) != 0)
        a->wrong++;
    return sums_agree(f, a);
}

/* Destroys what is here: afterwards nothing calls back. */
static void destroy_mine(ferry *f, account *a)
{
    if (ferry_balance_enable(f, false) != 0 || ferry_barrier(f) != 0)
        a->wrong++;
    while (ferry_poll(f) > 0)
        continue;
    for (int i = 0; i < a->count; i++)
        if (ferry_object_data(f, a->objects[i]) != NULL)
            (void)ferry_object_destroy(f, a->objects[i]);
    free(a->objects);
    free(a->numbers);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops ops = {.size = sizeof ops,
                                         .name = "thing",
                                         .flat_bytes = sizeof(thing),
                                         .unpack = unpack,
                                         .destroy = destroy};
    ferry_object_type type;
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    account a = {.random = (seed * 1000003 + (uint64_t)ferry_rank(f)) * 0x9e3779b97f4a7c15u + 1};
    ferry_user_data_set(f, &a);
    if (ferry_object_type_register(f, &ops, &type) != 0 ||
        ferry_object_handler_register(f, "handle", handle, &a.handler) != 0)
        return 1;
    create_objects(f, &a, type);
    bool right = true;
    for (int round = 0; right && round < ROUNDS; round++)
        right = round_is_right(f, &a, round);
    ferry_stats stats = FERRY_STATS_DEFAULTS;
    ferry_stats_get(f, &stats);
    if (a.left != stats.objects_out) {
        fprintf(stderr, "order: rank %d: of %llu that left %llu were known to be elsewhere\n",
                ferry_rank(f), (unsigned long long)stats.objects_out, (unsigned long long)a.left);
        right = false;
    }
    if (ferry_rank(f) == 0 && right)
        printf("order: seed %llu: right; rank 0 moved %llu out, forwarded %llu\n",
               (unsigned long long)seed, (unsigned long long)stats.objects_out,
               (unsigned long long)stats.messages_forwarded);
    destroy_mine(f, &a);
    return right ? 0 : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
