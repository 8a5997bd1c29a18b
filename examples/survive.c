/* Survive: a farm that loses a worker and no task.
 *
 * Rank 0 hands out tasks, one at a time to each worker. Rank 2 is killed in its first task. Rank 0
 * hears of the death and gives that task to another worker.
 *
 *     cc survive.c $(pkg-config --cflags --libs ferry) -o survive
 *     ferry run -n 4 ./survive */
#include <signal.h>
#include <stdio.h>

#include <ferry/ferry.h>

enum { TASKS = 20, RANKS_MAX = 1024, NONE = -1 };

typedef struct farm {
    ferry_handler task, result, finish;
    int next, done, sum; /* of rank 0 */
    int again[TASKS];    /* tasks of workers that died */
    int again_count;
    int task_of[RANKS_MAX]; /* what each worker has */
    bool finished;
} farm;

static void check(ferry *f, int error)
{
    if (error < 0 && error != FERRY_EPEER) /* who is dead gets nothing; on_peer hears of it */
        ferry_abort(f, 1, ferry_error_message(f));
}

static void hand_out(ferry *f, farm *p, int worker)
{
    int task = p->again_count > 0 ? p->again[--p->again_count] : p->next < TASKS ? p->next++ : NONE;
    p->task_of[worker] = task;
    const ferry_message message = {.handler = p->task, .word_count = 1, .words = {(uint64_t)task}};
    if (task != NONE)
        check(f, ferry_request_send(f, worker, &message, NULL));
}

static void on_task(ferry *f, int source, const ferry_message *message)
{
    const farm *p = ferry_user_data(f);
    if (ferry_rank(f) == 2)
        raise(SIGKILL);
    const ferry_message reply = {
        .handler = p->result, .word_count = 1, .words = {message->words[0]}};
    check(f, ferry_request_send(f, source, &reply, NULL));
}

static void on_result(ferry *f, int source, const ferry_message *message)
{
    farm *p = ferry_user_data(f);
    p->done++;
    p->sum += (int)message->words[0];
    hand_out(f, p, source);
}

static void on_finish(ferry *f, int source, const ferry_message *message)
{
    (void)source, (void)message;
    ((farm *)ferry_user_data(f))->finished = true;
}

/* Runs after everything that the dead rank sent has been handled. */
static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    farm *p = arg;
    if (ferry_rank(f) != 0 || !event->died || p->task_of[event->rank] == NONE)
        return;
    p->again[p->again_count++] = p->task_of[event->rank];
    p->task_of[event->rank] = NONE;
    for (int rank = 1; rank < ferry_ranks(f); rank++)
        if (p->task_of[rank] == NONE && !ferry_peer_is_gone(f, rank))
            hand_out(f, p, rank); /* workers that were idle already */
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    farm p = {.next = 0};
    ferry_user_data_set(f, &p);
    check(f, ferry_on_peer(f, on_peer, &p)); /* every rank, else a death ends the job */
    check(f, ferry_handler_register(f, "task", on_task, &p.task));
    check(f, ferry_handler_register(f, "result", on_result, &p.result));
    check(f, ferry_handler_register(f, "finish", on_finish, &p.finish));
    check(f, ferry_barrier(f));
    for (int rank = 1; ferry_rank(f) == 0 && rank < ferry_ranks(f); rank++)
        hand_out(f, &p, rank);
    while (ferry_rank(f) == 0 ? p.done < TASKS : !p.finished)
        check(f, ferry_wait(f, FERRY_FOREVER));
    const ferry_message over = {.handler = p.finish};
    if (ferry_rank(f) == 0)
        check(f, ferry_request_broadcast(f, &over, NULL));
    check(f, ferry_quiesce(f)); /* those that live agree on who is left */
    if (ferry_rank(f) == 0)
        printf("%d tasks, sum %d, %d ranks left\n", p.done, p.sum, ferry_member_count(f));
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main);
}
