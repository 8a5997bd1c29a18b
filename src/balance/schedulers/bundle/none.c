/* None: nothing moves. Objects run in the order in which they got their tasks. */
#include <stdlib.h>

#include "balance/schedulers/bundle/bundle.h"
#include "balance/schedulers/bundle/lists.h"
#include "base/alloc.h"

static int create(ferry_scheduling *s, void **out)
{
    (void)s;
    *out = fy_calloc(1, sizeof(fy_waiting));
    return *out != NULL ? 0 : FERRY_ENOMEM;
}

static ferry_schedulable *next(ferry_scheduling *s, void *state)
{
    fy_waiting *waiting = state;
    (void)s;
    waiting->running = fy_waiting_pop(waiting);
    return waiting->running;
}

static void notify(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    fy_waiting *waiting = state;
    (void)s;
    fy_waiting_add(waiting, item);
}

static void message(ferry_scheduling *s, void *state, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    (void)s;
    (void)state;
    (void)source;
    (void)words;
}

const ferry_scheduler fy_scheduler_none = {
    .size = sizeof(ferry_scheduler),
    .name = "none",
    .create = create,
    .destroy = fy_policy_destroy,
    .next = next,
    .activate = notify,
    .notify = notify,
    .remove = fy_policy_remove,
    .empty = fy_policy_empty,
    .message = message,
    .ahead = fy_policy_ahead,
};
