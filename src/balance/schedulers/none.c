/* None: tasks run where they are, in the order in which their objects got them. */
#include <stdlib.h>

#include "balance/schedulers/schedulers.h"
#include "balance/schedulers/waiting.h"

static int create(ferry_scheduling *s, void **state)
{
    (void)s;
    *state = calloc(1, sizeof(fy_waiting));
    return *state != NULL ? 0 : FERRY_ENOMEM;
}

static void destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    free(state);
}

static ferry_schedulable *next(ferry_scheduling *s, void *state)
{
    (void)s;
    return fy_waiting_pop(state);
}

static void add(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    (void)s;
    fy_waiting_add(state, item);
}

static void take_out(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    (void)s;
    fy_waiting_remove(state, item);
}

static bool empty(ferry_scheduling *s, void *state)
{
    const fy_waiting *waiting = state;
    (void)s;
    return waiting->count == 0;
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
    .destroy = destroy,
    .next = next,
    .activate = add,
    .notify = add,
    .remove = take_out,
    .empty = empty,
    .message = message,
};
