/* Goal: a main program that waits for room for a request does not hang when a scheduler takes its
 * objects away meanwhile. Method: rank 0 has no work and takes objects of rank 1, whose main
 * program sends requests only. Each request is answered by two, so rank 0 soon leaves requests in
 * its ring until rank 1 takes the answers. Before them stands what the eager directory says of an
 * object that is leaving rank 1, for which this rank has yet to do its part. Every request, answer
 * and task is counted at the end. */
#include <stdio.h>
#include <stdlib.h>

#include "replies.h"

enum { OBJECTS = 40, TASKS = 5, REQUESTS = 300, BURST = 10, ANSWERS = 2, DATA_BYTES = 200 };

typedef struct account {
    replies replies;
    ferry_handler task;
    int64_t tasks;
} account;

static void on_task(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    account *a = ferry_user_data(f);
    (void)object, (void)data, (void)source, (void)message;
    a->tasks++;
    ferry_compute(f, 20e-6);
}

static void create_objects(ferry *f, account *a)
{
    static const ferry_object_ops ops = {.size = sizeof ops, .name = "thing", .flat_bytes = 64};
    ferry_object_type type;
    must(f, ferry_object_type_register(f, &ops, &type), "type");
    must(f, ferry_object_handler_register(f, "task", on_task, &a->task), "task");
    const ferry_message task = {.handler = a->task};
    for (int i = 0; ferry_rank(f) == 1 && i < OBJECTS; i++) {
        ferry_object object;
        void *data = calloc(1, 64);
        if (data == NULL)
            abort();
        must(f, ferry_object_create(f, type, data, &object), "create");
        must(f, ferry_balance_add(f, object, NULL), "add");
        for (int j = 0; j < TASKS; j++)
            must(f, ferry_object_send(f, object, &task, NULL), "send");
    }
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    account a = {.replies = {.each = ANSWERS, .size_bytes = DATA_BYTES}};
    ferry_user_data_set(f, &a);
    replies_register(f, &a.replies);
    create_objects(f, &a);
    must(f, ferry_barrier(f), "barrier");
    must(f, ferry_balance_enable(f, true), "phase");
    const ferry_message request = {.handler = a.replies.request};
    for (int i = 0; ferry_rank(f) == 1 && i < REQUESTS; i++) {
        must(f, ferry_request_send(f, 0, &request, NULL), "send");
        if (i % BURST == 0)
            (void)ferry_poll(f); /* a task runs, and meanwhile the helper lets objects go */
    }
    must(f, ferry_quiesce(f), "quiesce");
    int64_t sums[] = {a.replies.requests, a.replies.answers, a.tasks};
    must(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, sums, sums, 3), "allreduce");
    if (sums[0] == REQUESTS && sums[1] == REQUESTS * ANSWERS && sums[2] == OBJECTS * TASKS)
        return 0;
    fprintf(stderr, "%d requests, %d answers, %d tasks\n", (int)sums[0], (int)sums[1],
            (int)sums[2]);
    return 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
