/* Goal: when steering changes the scheduler between phases, each task runs exactly once, and the
 * tasks of one rank to one object keep their order. Method: objects begin on rank 0, under the
 * scheduler that the program names. In each phase each rank sends several tasks to every object, as
 * soon as its own quiescence has ended, so tasks and objects are in flight while the ranks change.
 * Each object knows what it must get next from each rank. Steering measures a change in phases 1, 4
 * to 7, 16 to 31 and so on. With `spoilt` these have a task that is longer than all others
 * together. So each change seems to make things worse, and is taken back.
 *
 * Run as FERRY_RANKS=N FERRY_STEER=1 phases SCHEDULER PHASES [spoilt]. Rank 0 prints the time of
 * each phase. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/failed.h"

enum { OBJECTS = 40, EACH = 2, RANKS_MAX = 32 };

typedef struct item {
    uint32_t number, next[RANKS_MAX]; /* of the next task from each rank */
} item;

typedef struct account {
    uint64_t done, wrong;
    ferry_object objects[OBJECTS];
    ferry_handler handler;
    bool spoilt;
} account;

static void check(ferry *f, account *a, int error)
{
    a->wrong += failed(f, error);
}

static bool is_measured(uint64_t phase)
{
    bool odd = false;
    for (; phase > 0; phase /= 2)
        odd = !odd;
    return odd;
}

static void task(ferry *f, ferry_object object, void *data, int source,
                 const ferry_message *message)
{
    account *a = ferry_user_data(f);
    item *it = data;
    (void)object;
    if (message->words[0] != it->next[source]++)
        a->wrong++;
    uint64_t phase = message->words[0] / EACH;
    double ms = it->number % 4 == 0 ? 1 : 0.25;
    if (a->spoilt && it->number == 0 && is_measured(phase))
        ms = 20;
    ferry_compute(f, ms * 1e-3);
    a->done++;
}

static void create(ferry *f, account *a, ferry_object_type type)
{
    for (uint32_t i = 0; i < OBJECTS && ferry_rank(f) == 0; i++) {
        item *it = calloc(1, sizeof *it);
        if (it == NULL)
            ferry_abort(f, 1, "no memory");
        it->number = i;
        check(f, a, ferry_object_create(f, type, it, &a->objects[i]));
        check(f, a, ferry_balance_add(f, a->objects[i], NULL));
    }
    check(f, a, ferry_broadcast(f, 0, a->objects, sizeof a->objects));
}

static void run_phase(ferry *f, account *a, uint64_t phase)
{
    uint64_t begin_ns = ferry_now(f);
    for (uint64_t k = 0; k < EACH; k++)
        for (int i = 0; i < OBJECTS; i++) {
            const ferry_message message = {
                .handler = a->handler, .word_count = 1, .words = {phase * EACH + k}};
            int error;
            while ((error = ferry_object_send(f, a->objects[i], &message, NULL)) == FERRY_EAGAIN)
                ferry_poll(f);
            check(f, a, error);
        }
    check(f, a, ferry_quiesce(f));
    if (ferry_rank(f) == 0)
        printf("phase %d: %.3f ms\n", (int)phase, (double)(ferry_now(f) - begin_ns) * 1e-6);
}

static int run(ferry *f, account *a, uint64_t phases)
{
    for (uint64_t phase = 0; phase < phases; phase++)
        run_phase(f, a, phase);
    uint64_t sums[2] = {a->done, a->wrong};
    check(f, a, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, 2));
    uint64_t expected = phases * EACH * OBJECTS * (uint64_t)ferry_ranks(f);
    if (sums[0] != expected || sums[1] != 0 || a->wrong != 0) {
        fprintf(stderr, "phases: %d tasks and %d mistakes; expected %d and 0\n", (int)sums[0],
                (int)sums[1], (int)expected);
        return 1;
    }
    return 0;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    account a = {.spoilt = argc > 3 && strcmp(argv[3], "spoilt") == 0};
    if (argc < 3 || ferry_ranks(f) > RANKS_MAX)
        return 2;
    ferry_user_data_set(f, &a);
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ops.name = "item";
    ops.flat_bytes = sizeof(item);
    ferry_object_type type;
    check(f, &a, ferry_object_type_register(f, &ops, &type));
    check(f, &a, ferry_object_handler_register(f, "task", task, &a.handler));
    check(f, &a, ferry_balance_choose(f, argv[1]));
    check(f, &a, ferry_balance_enable(f, true));
    create(f, &a, type);
    return run(f, &a, strtoull(argv[2], NULL, 10));
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
