/* Goal: a task ends on a rank whose requests another rank refuses meanwhile, although each word to
 * the rank's helper costs more time than the other rank waits before the first one. Words that the
 * helper does not take use no memory. Method: a task of rank 1 sends more requests than rank 0
 * answers before rank 1 takes the answers. Then the task computes for SECONDS.
 *
 * Run as ferry sim -n 2 refused SECONDS, with FERRY_RING_SLOTS=8 and FERRY_BACKLOG_BYTES=4096. */
#include <stdlib.h>

#include "replies.h"

enum { REQUESTS = 8, ANSWERS = 4, DATA_BYTES = 1000 };

typedef struct account {
    replies replies;
    double seconds;
} account;

static void on_task(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    const account *a = ferry_user_data(f);
    (void)object, (void)data, (void)source, (void)message;
    const ferry_message request = {.handler = a->replies.request};
    for (int i = 0; i < REQUESTS; i++)
        must(f, ferry_request_send(f, 0, &request, NULL), "send");
    ferry_compute(f, a->seconds);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    account a = {.replies = {.each = ANSWERS, .size_bytes = DATA_BYTES},
                 .seconds = argc > 1 ? atof(argv[1]) : 0.1};
    const replies *r = &a.replies;
    static const ferry_object_ops ops = {.size = sizeof ops, .name = "thing", .flat_bytes = 64};
    ferry_object_type type;
    ferry_handler task;
    ferry_user_data_set(f, &a);
    replies_register(f, &a.replies);
    must(f, ferry_object_type_register(f, &ops, &type), "type");
    must(f, ferry_object_handler_register(f, "task", on_task, &task), "task");
    must(f, ferry_balance_enable(f, true), "phase");
    if (ferry_rank(f) == 1) {
        ferry_object object;
        void *data = calloc(1, 64);
        if (data == NULL)
            abort();
        must(f, ferry_object_create(f, type, data, &object), "create");
        must(f, ferry_balance_add(f, object, NULL), "add");
        must(f, ferry_object_send(f, object, &(ferry_message){.handler = task}, NULL), "send");
    }
    must(f, ferry_quiesce(f), "quiesce");
    if (ferry_rank(f) == 0 ? r->requests != REQUESTS : r->answers != REQUESTS * ANSWERS)
        wrong(f, "requests and answers", (uint64_t)r->requests, (uint64_t)r->answers);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
