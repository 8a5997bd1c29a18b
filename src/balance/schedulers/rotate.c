/* Rotate: every object moves to the next rank after each of its tasks. A test of programs, not a
 * way to balance: what is wrong with pack and unpack, with addresses kept beyond a poll, or with
 * the order of messages shows soon. */
#include <stdlib.h>

#include "balance/schedulers/schedulers.h"
#include "balance/schedulers/waiting.h"

typedef struct rotate {
    fy_waiting waiting;
    ferry_schedulable *running;
} rotate;

static int create(ferry_scheduling *s, void **out)
{
    (void)s;
    *out = calloc(1, sizeof(rotate));
    return *out != NULL ? 0 : FERRY_ENOMEM;
}

static void destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    free(state);
}

static ferry_schedulable *next(ferry_scheduling *s, void *arg)
{
    rotate *state = arg;
    (void)s;
    state->running = fy_waiting_pop(&state->waiting);
    return state->running;
}

static void activate(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    rotate *state = arg;
    bool ran = item == state->running;
    int ranks = ferry_scheduling_ranks(s);
    state->running = ran ? NULL : state->running;
    if (ran && ranks > 1 && ferry_scheduling_on(s))
        ferry_scheduling_migrate(s, item, (ferry_scheduling_rank(s) + 1) % ranks);
    else
        fy_waiting_add(&state->waiting, item);
}

static void notify(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    rotate *state = arg;
    (void)s;
    fy_waiting_add(&state->waiting, item);
}

static void take_out(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    rotate *state = arg;
    (void)s;
    fy_waiting_remove(&state->waiting, item);
}

static bool empty(ferry_scheduling *s, void *arg)
{
    const rotate *state = arg;
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

const ferry_scheduler fy_scheduler_rotate = {
    .size = sizeof(ferry_scheduler),
    .name = "rotate",
    .create = create,
    .destroy = destroy,
    .next = next,
    .activate = activate,
    .notify = notify,
    .remove = take_out,
    .empty = empty,
    .message = message,
};
