/* Rounds: a program of time steps whose work is balanced while the tasks run.
 *
 * 64 objects live on rank 0 at first. In each round each object gets one task. A quarter of the
 * objects has ten times the work of the others, and it is another quarter in each round. Idle ranks
 * take objects from busy ranks. Without FERRY_COMPUTE the tasks do nothing, with sleep they sleep.
 *
 *     cc rounds.c $(pkg-config --cflags --libs ferry) -o rounds
 *     FERRY_COMPUTE=sleep FERRY_SCHEDULER=none ferry run -n 4 ./rounds
 *     FERRY_COMPUTE=sleep ferry run -n 4 ./rounds */
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

enum { OBJECTS = 64, ROUNDS = 4, GROUP = OBJECTS / ROUNDS };

typedef struct item {
    int number;
    int64_t done; /* tasks of this object so far */
} item;

static void check(ferry *f, int error)
{
    if (error < 0)
        ferry_abort(f, 1, ferry_error_message(f));
}

static void step(ferry *f, ferry_object object, void *data, int source,
                 const ferry_message *message)
{
    (void)object, (void)source;
    item *it = data;
    int round = (int)message->words[0];
    ferry_compute(f, it->number / GROUP == round ? 0.010 : 0.001); /* stands for work */
    it->done++;
    ++*(int64_t *)ferry_user_data(f); /* tasks of this rank in this round */
}

static void create(ferry *f, ferry_object_type type, ferry_object *objects)
{
    for (int i = 0; i < OBJECTS; i++) {
        item *it = malloc(sizeof *it);
        if (it == NULL)
            ferry_abort(f, 1, "no memory for an object");
        *it = (item){.number = i};
        check(f, ferry_object_create(f, type, it, &objects[i]));
        check(f, ferry_balance_add(f, objects[i], NULL)); /* its messages are tasks from now on */
    }
}

static void run_round(ferry *f, int round, ferry_handler handler, const ferry_object *objects)
{
    int64_t *tasks = ferry_user_data(f), all = 0;
    *tasks = 0;
    check(f, ferry_barrier(f)); /* every rank counts from 0 before the first task runs */
    uint64_t start = ferry_now(f);
    const ferry_message message = {.handler = handler, .word_count = 1, .words = {(uint64_t)round}};
    for (int i = 0; ferry_rank(f) == 0 && i < OBJECTS; i++)
        check(f, ferry_object_send(f, objects[i], &message, NULL));
    check(f, ferry_quiesce(f)); /* no task is left on any rank */
    double ms = (double)(ferry_now(f) - start) / 1e6;
    check(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, tasks, &all, 1));
    if (ferry_rank(f) == 0)
        printf("round %d: %d tasks, %d of them on rank 0, %.0f ms\n", round, (int)all, (int)*tasks,
               ms);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    int64_t tasks = 0;
    ferry_user_data_set(f, &tasks);
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ops.name = "item";
    ops.flat_bytes = sizeof(item);
    ferry_object_type type;
    ferry_handler handler;
    check(f, ferry_object_type_register(f, &ops, &type));
    check(f, ferry_object_handler_register(f, "step", step, &handler));
    check(f, ferry_balance_enable(f, true));

    ferry_object objects[OBJECTS];
    if (ferry_rank(f) == 0)
        create(f, type, objects);
    for (int round = 0; round < ROUNDS; round++)
        run_round(f, round, handler, objects);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
