/* Alone: schedulers that ask no other rank. Objects run in the order in which they got their tasks.
 *
 * - none: no object moves.
 * - rotate: every object moves to the next rank after each of its tasks. It is for tests of
 *   programs. It soon shows mistakes in pack and unpack, addresses that a program keeps beyond a
 *   poll, and a wrong order of messages.
 * - inplace: every object is packed and unpacked after each of its tasks, on its own rank, and its
 *   old data are destroyed. It shows mistakes in pack and unpack on one rank already. */
#include <stdlib.h>

#include "balance/schedulers/bundle/bundle.h"
#include "balance/schedulers/bundle/lists.h"
#include "base/alloc.h"

static int alone_create(ferry_scheduling *s, void **out)
{
    (void)s;
    *out = fy_calloc(1, sizeof(fy_waiting_queue));
    return *out != NULL ? 0 : FERRY_ENOMEM;
}

static ferry_schedulable *alone_next(ferry_scheduling *s, void *state)
{
    fy_waiting_queue *waiting = state;
    (void)s;
    waiting->running = fy_waiting_pop(waiting);
    return waiting->running;
}

static void alone_notify(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    fy_waiting_queue *waiting = state;
    (void)s;
    fy_waiting_add(waiting, item);
}

/* Moves the object that has just run to `rank`. If `rank` is -1 or migration is off, the object
 * stays. */
static void alone_settle(ferry_scheduling *s, fy_waiting_queue *waiting, ferry_schedulable *item,
                         int rank)
{
    bool ran = item == waiting->running;
    waiting->running = ran ? NULL : waiting->running;
    if (ran && rank >= 0 && ferry_scheduling_is_on(s))
        ferry_scheduling_migrate(s, item, rank);
    else
        fy_waiting_add(waiting, item);
}

static void activate_rotating(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    alone_settle(s, state, item,
                 ferry_scheduling_acceptor_count(s) > 0 ? ferry_scheduling_acceptor(s, 1) : -1);
}

static void activate_in_place(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    alone_settle(s, state, item, ferry_scheduling_rank(s));
}

static void alone_message(ferry_scheduling *s, void *state, int source,
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
    .create = alone_create,
    .destroy = fy_policy_destroy,
    .next = alone_next,
    .activate = alone_notify,
    .notify = alone_notify,
    .remove = fy_policy_remove,
    .empty = fy_policy_empty,
    .message = alone_message,
    .ahead = fy_policy_ahead,
};

const ferry_scheduler fy_scheduler_rotate = {
    .size = sizeof(ferry_scheduler),
    .name = "rotate",
    .create = alone_create,
    .destroy = fy_policy_destroy,
    .next = alone_next,
    .activate = activate_rotating,
    .notify = alone_notify,
    .remove = fy_policy_remove,
    .empty = fy_policy_empty,
    .message = alone_message,
};

const ferry_scheduler fy_scheduler_inplace = {
    .size = sizeof(ferry_scheduler),
    .name = "inplace",
    .create = alone_create,
    .destroy = fy_policy_destroy,
    .next = alone_next,
    .activate = activate_in_place,
    .notify = alone_notify,
    .remove = fy_policy_remove,
    .empty = fy_policy_empty,
    .message = alone_message,
};
