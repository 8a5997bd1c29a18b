/* Inplace: every object is packed, unpacked and its old data destroyed after each of its tasks, on
 * its own rank. A test of programs, not a way to balance: mistakes of pack and unpack show on one
 * rank already, where they are easiest to follow. */
#include <stdlib.h>

#include "balance/schedulers/schedulers.h"
#include "balance/schedulers/waiting.h"

typedef struct inplace {
    fy_waiting waiting;
    ferry_schedulable *running;
} inplace;

static int create(ferry_scheduling *s, void **out)
{
    (void)s;
    *out = calloc(1, sizeof(inplace));
    return *out != NULL ? 0 : FERRY_ENOMEM;
}

static void destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    free(state);
}

static ferry_schedulable *next(ferry_scheduling *s, void *arg)
{
    inplace *state = arg;
    (void)s;
    state->running = fy_waiting_pop(&state->waiting);
    return state->running;
}

static void activate(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    inplace *state = arg;
    bool ran = item == state->running;
    state->running = ran ? NULL : state->running;
    if (ran && ferry_scheduling_on(s))
        ferry_scheduling_migrate(s, item, ferry_scheduling_rank(s));
    else
        fy_waiting_add(&state->waiting, item);
}

static void notify(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    inplace *state = arg;
    (void)s;
    fy_waiting_add(&state->waiting, item);
}

static void take_out(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    inplace *state = arg;
    (void)s;
    fy_waiting_remove(&state->waiting, item);
}

static bool empty(ferry_scheduling *s, void *arg)
{
    const inplace *state = arg;
    (void)s;
    return state->waiting.count == 0;
}

static void message(ferry_scheduling *s, void *state, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    (void)s;
    (void)state;
    (void)source;
    (void)words;
}

const ferry_scheduler fy_scheduler_inplace = {
    .size = sizeof(ferry_scheduler),
    .name = "inplace",
    .create = create,
    .destroy = destroy,
    .next = next,
    .activate = activate,
    .notify = notify,
    .remove = take_out,
    .empty = empty,
    .message = message,
};
