/* Goal: real ranks keep the contract that the world of world.h keeps (contract_test.c). Method:
 * objects with tasks on rank 0, under the scheduler that checks the contract.
 *
 * Run as FERRY_SCHEDULER=contract FERRY_SCHEDULER_GIVEN=3 FERRY_RANKS=N contract_ranks. */
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#include "contract.h"

enum { OBJECTS = 12, TASKS = 3 };

static void task(ferry *f, ferry_object object, void *data, int source,
                 const ferry_message *message)
{
    (void)object, (void)source, (void)message;
    ++*(uint64_t *)data;
    ferry_compute(f, 1e-3);
}

static int work(ferry *f)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "thing", .flat_bytes = sizeof(uint64_t)};
    ferry_object_type type;
    ferry_message message = {.word_count = 0};
    int error = ferry_scheduler_register(f, &contract_scheduler);
    if (error == 0)
        error = ferry_object_type_register(f, &ops, &type);
    if (error == 0)
        error = ferry_object_handler_register(f, "task", task, &message.handler);
    if (error == 0)
        error = ferry_balance_enable(f, true);
    for (int i = 0; i < OBJECTS * TASKS && ferry_rank(f) == 0 && error == 0; i++) {
        static ferry_object objects[OBJECTS];
        if (i < OBJECTS) {
            error = ferry_object_create(f, type, calloc(1, sizeof(uint64_t)), &objects[i]);
            if (error == 0)
                error =
                    ferry_balance_add(f, objects[i],
                                      &(ferry_balance_options){sizeof(ferry_balance_options),
                                                               CONTRACT_LOAD, 0, NULL, NULL, 0});
        }
        if (error == 0)
            error = ferry_object_send(f, objects[i % OBJECTS], &message, NULL);
    }
    return error == 0 ? ferry_quiesce(f) : error;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    int error = work(f);
    uint64_t now = ferry_now(f);
    const contract *c = &contracts[ferry_rank(f) % CONTRACT_RANKS];
    while (error == 0 && c->wakes == 0 && ferry_now(f) - now < UINT64_C(10000000000))
        error = ferry_wait(f, 1000 * 1000) < 0;
    int64_t sums[6] = {c->words_sent, c->words_heard, c->sent, c->arrived, c->wrong, c->ran};
    if (error == 0)
        error = ferry_barrier(f); /* words may still be in flight */
    sums[1] = c->words_heard;
    if (error == 0)
        error = ferry_allreduce(f, FERRY_INT64, FERRY_SUM, sums, sums, 6);
    bool right = error == 0 && sums[0] == sums[1] && sums[2] == sums[3] && sums[2] > 0 &&
                 sums[4] == 0 && sums[5] == OBJECTS * TASKS && c->wakes > 0;
    if (error != 0)
        fprintf(stderr, "contract: %s\n", ferry_error_message(f));
    if (!right || ferry_rank(f) == 0)
        fprintf(stderr,
                "rank %d: %d of %d words, %d of %d objects, %d broken, %d tasks, %d wakes\n",
                ferry_rank(f), (int)sums[1], (int)sums[0], (int)sums[3], (int)sums[2], (int)sums[4],
                (int)sums[5], c->wakes);
    return right ? 0 : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
