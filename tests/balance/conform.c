/* Goal: under every scheduler all tasks run exactly once, quiescence is reached, and nothing is
 * lost. The memory in use does not grow with the number of migrations. With balancing off no object
 * moves, with balancing on some do. Method: all objects begin on rank 0; tasks of different length
 * send further tasks to other objects; counts are summed outside the runtime. Repeated with
 * balancing switched off and on.
 *
 * Run as FERRY_RANKS=N FERRY_SCHEDULER=NAME [FERRY_THREADS=1] conform [rests]. With `rests` the
 * scheduler is one that moves nothing, and is to move nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/failed.h"

enum { OBJECTS = 48, ROUNDS = 6, GENERATIONS = 3, RANKS_MAX = 64 };

typedef struct account {
    ferry_handler handler;
    ferry_object objects[OBJECTS];
    uint64_t handled, alive, wrong;
} account;

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)object;
    uint64_t *data = malloc(sizeof *data);
    if (data != NULL)
        memcpy(data, buffer, size_bytes);
    ((account *)ferry_user_data(f))->alive++;
    return data;
}

static void destroy(ferry *f, void *data)
{
    ((account *)ferry_user_data(f))->alive--;
    free(data);
}

static double load(ferry *f, const void *data, const ferry_message *message)
{
    (void)f;
    (void)data;
    return (double)message->words[1];
}

static void check(ferry *f, account *a, int error)
{
    a->wrong += failed(f, error);
}

static void send_task(ferry *f, account *a, uint64_t number, uint64_t generation)
{
    const ferry_message message = {.handler = a->handler,
                                   .word_count = 3,
                                   .words = {generation, 20 + number * 37 % 200, number}};
    check(f, a, ferry_object_send(f, a->objects[number % OBJECTS], &message, NULL));
}

/* A task spins for its number of microseconds, touches another object's data when that is here, and
 * makes two more. */
static void task(ferry *f, ferry_object object, void *data, int source,
                 const ferry_message *message)
{
    account *a = ferry_user_data(f);
    (void)source;
    uint64_t end_ns = ferry_now(f) + message->words[1] * 1000;
    while (ferry_now(f) < end_ns)
        continue;
    ++*(uint64_t *)data;
    a->handled++;
    uint64_t number = message->words[2];
    ferry_object other = a->objects[(number + 1) % OBJECTS];
    uint64_t *value = ferry_object_data(f, other);
    if (value != NULL && !ferry_object_equal(object, other))
        *value += 0;
    if (message->words[0] > 0) {
        send_task(f, a, number * 2 + 1, message->words[0] - 1);
        send_task(f, a, number * 3 + 2, message->words[0] - 1);
    }
}

static uint64_t sum(ferry *f, account *a, uint64_t value)
{
    check(f, a, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &value, &value, 1));
    return value;
}

static uint64_t moves(ferry *f, account *a)
{
    ferry_stats stats = FERRY_STATS_DEFAULTS;
    ferry_stats_get(f, &stats);
    return sum(f, a, stats.objects_out);
}

static bool round_is_right(ferry *f, account *a, int round)
{
    bool on = round % 3 != 0;
    if (round > 0) /* off at the start */
        check(f, a, ferry_balance_enable(f, on));
    uint64_t before = moves(f, a);
    for (uint64_t i = 0; i < OBJECTS && ferry_rank(f) == round % ferry_ranks(f); i++)
        send_task(f, a, i, GENERATIONS);
    check(f, a, ferry_quiesce(f));
    uint64_t expected = OBJECTS * ((1u << (GENERATIONS + 1)) - 1) * ((uint64_t)round + 1);
    uint64_t handled = sum(f, a, a->handled);
    uint64_t wrong = sum(f, a, a->wrong), moved = moves(f, a) - before;
    uint64_t alive = sum(f, a, a->alive);
    if (!on && moved != 0 && ferry_rank(f) == 0)
        fprintf(stderr, "round %d: %llu moves, with balancing off\n", round,
                (unsigned long long)moved);
    if (handled != expected && ferry_rank(f) == 0)
        fprintf(stderr, "round %d: %llu tasks of %llu\n", round, (unsigned long long)handled,
                (unsigned long long)expected);
    if (alive != OBJECTS && ferry_rank(f) == 0)
        fprintf(stderr, "round %d: %llu objects of %d\n", round, (unsigned long long)alive,
                OBJECTS);
    return handled == expected && wrong == 0 && alive == OBJECTS && (on || moved == 0);
}

/* Whether objects have moved, if they were to. */
static bool moved_as_expected(ferry *f, uint64_t moved, bool rests)
{
    bool expected = !rests && ferry_ranks(f) > 1;
    if ((moved > 0) != expected && ferry_rank(f) == 0)
        fprintf(stderr, "%llu moves, expected %s\n", (unsigned long long)moved,
                expected ? "some: all objects begin on one rank" : "none");
    return (moved > 0) == expected;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops ops = {.size = sizeof ops,
                                         .name = "thing",
                                         .flat_bytes = sizeof(uint64_t),
                                         .unpack = unpack,
                                         .destroy = destroy,
                                         .load = load};
    static account accounts[RANKS_MAX];
    account *a = &accounts[ferry_rank(f) % RANKS_MAX];
    ferry_object_type type;
    bool rests = argc == 2 && strcmp(argv[1], "rests") == 0;
    if (argc > 1 && !rests) {
        fprintf(stderr, "usage: conform [rests]\n");
        return 2;
    }
    ferry_user_data_set(f, a);
    check(f, a, ferry_object_type_register(f, &ops, &type));
    check(f, a, ferry_object_handler_register(f, "task", task, &a->handler));
    for (int i = 0; i < OBJECTS && ferry_rank(f) == 0; i++) {
        a->alive++;
        check(f, a, ferry_object_create(f, type, calloc(1, sizeof(uint64_t)), &a->objects[i]));
        check(f, a, ferry_balance_add(f, a->objects[i], NULL));
    }
    check(f, a, ferry_broadcast(f, 0, a->objects, sizeof a->objects));
    bool right = true;
    for (int round = 0; right && round < ROUNDS; round++)
        right = round_is_right(f, a, round);
    uint64_t moved = moves(f, a);
    right = right && moved_as_expected(f, moved, rests);
    if (ferry_rank(f) == 0)
        printf("%s, %d ranks: %s, %llu moves\n", ferry_balance_scheduler(f), ferry_ranks(f),
               right ? "right" : "wrong", (unsigned long long)moved);
    return right && a->wrong == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
