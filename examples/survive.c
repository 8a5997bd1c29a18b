/* Survive: a farm that loses workers and no task.
 *
 * Rank 0 hands out tasks, one at a time to each rank, itself included. If a rank dies, rank 0 hears
 * of it and gives the task to another rank. The rank named by the argument is killed in its first
 * task.
 *
 *     cc survive.c $(pkg-config --cflags --libs ferry) -o survive
 *     ferry run -n 4 ./survive 2
 *     ferry swarm -n 5 --seeds 1..100 --all ./survive */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

enum { TASKS = 20, RANKS_MAX = 1024, NONE = -1 };

typedef struct farm {
    ferry_handler task, result;
    int done, sum; /* of rank 0 */
    bool taken[TASKS];
    int task_of[RANKS_MAX]; /* what each rank has */
    int victim;             /* the rank that is killed; NONE: no rank */
    bool finished;
} farm;

static void check(ferry *f, int error)
{
    if (error < 0 && error != FERRY_EPEER) /* on_peer is told of a rank that is dead */
        ferry_abort(f, 1, ferry_error_message(f));
}

static int take_task(farm *p)
{
    for (int task = 0; task < TASKS; task++)
        if (!p->taken[task]) {
            p->taken[task] = true;
            return task;
        }
    return NONE;
}

/* Sends a rank a task, or NONE when all are done. A broadcast could end at a rank that dies. */
static void hand_out(ferry *f, farm *p, int rank)
{
    int task = p->task_of[rank] = take_task(p);
    if (task == NONE && p->done < TASKS)
        return;
    const ferry_message message = {.handler = p->task, .word_count = 1, .words = {(uint64_t)task}};
    check(f, ferry_request_send(f, rank, &message, NULL));
}

static void hand_out_all(ferry *f, farm *p)
{
    for (int rank = 0; rank < ferry_ranks(f); rank++)
        if (p->task_of[rank] == NONE && !ferry_peer_is_gone(f, rank))
            hand_out(f, p, rank);
}

static void on_task(ferry *f, int source, const ferry_message *message)
{
    farm *p = ferry_user_data(f);
    if (ferry_rank(f) == p->victim)
        raise(SIGKILL);
    p->finished = (int)message->words[0] == NONE; /* there are no more tasks */
    if (p->finished)
        return;
    const ferry_message reply = {
        .handler = p->result, .word_count = 1, .words = {message->words[0]}};
    check(f, ferry_request_send(f, source, &reply, NULL));
}

static void on_result(ferry *f, int source, const ferry_message *message)
{
    farm *p = ferry_user_data(f);
    p->done++;
    p->sum += (int)message->words[0];
    p->task_of[source] = NONE;
    hand_out_all(f, p);
}

/* Runs after everything that the dead rank sent has been handled. */
static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    farm *p = arg;
    p->finished = p->finished || event->rank == 0; /* without rank 0 there is no work */
    if (ferry_rank(f) != 0 || p->task_of[event->rank] == NONE)
        return;
    p->taken[p->task_of[event->rank]] = false;
    p->task_of[event->rank] = NONE;
    hand_out_all(f, p); /* some ranks may be idle */
}

static int rank_main(ferry *f, int argc, char **argv)
{
    farm p = {.victim = argc > 1 ? (int)strtol(argv[1], NULL, 10) : NONE};
    for (int rank = 0; rank < RANKS_MAX; rank++)
        p.task_of[rank] = NONE;
    ferry_user_data_set(f, &p);
    check(f, ferry_peer_watch(f, on_peer, &p)); /* every rank, else a death ends the job */
    check(f, ferry_handler_register(f, "task", on_task, &p.task));
    check(f, ferry_handler_register(f, "result", on_result, &p.result));
    check(f, ferry_barrier(f)); /* now every rank watches: from here on a rank may die */
    if (ferry_rank(f) == 0)
        hand_out_all(f, &p);
    while (!p.finished)
        check(f, ferry_wait(f, FERRY_FOREVER));
    check(f, ferry_quiesce(f)); /* those that live agree on who is left */
    if (ferry_rank(f) == 0)
        printf("%d tasks, sum %d, %d ranks left\n", p.done, p.sum, ferry_member_count(f));
    return p.done == (ferry_rank(f) == 0 ? TASKS : 0) ? 0 : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
