/* The scheduler of `ferry calibrate`: it runs tasks in their order and moves no object. Rank 0 can
 * ask rank 1, whose helper answers even while a task runs there. */
#include <stdlib.h>

#include "cmd/calibrate.h"

#define ASKS UINT64_C(0x63616c6962726174) /* the first word of a query and of its answer */

typedef struct policy {
    ferry_schedulable *first, *last;
} policy;

calibrate_asking *calibrate_asking_here(void)
{
    static calibrate_asking here; /* a rank is a process */
    return &here;
}

static int yardstick_create(ferry_scheduling *s, void **out)
{
    (void)s;
    *out = calloc(1, sizeof(policy));
    return *out != NULL ? 0 : FERRY_ENOMEM;
}

static void yardstick_destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    free(state);
}

static void unlink_item(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    policy *p = state;
    (void)s;
    if (!item->queued)
        return;
    *(item->prev != NULL ? &item->prev->next : &p->first) = item->next;
    *(item->next != NULL ? &item->next->prev : &p->last) = item->prev;
    item->queued = false;
}

static ferry_schedulable *yardstick_next(ferry_scheduling *s, void *state)
{
    ferry_schedulable *item = ((policy *)state)->first;
    if (item != NULL)
        unlink_item(s, state, item);
    return item;
}

static void yardstick_add(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    policy *p = state;
    (void)s;
    if (item->queued || item->pending == 0)
        return;
    item->prev = p->last;
    item->next = NULL;
    *(p->last != NULL ? &p->last->next : &p->first) = item;
    p->last = item;
    item->queued = true;
}

static void yardstick_notify(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    calibrate_asking *asking = calibrate_asking_here();
    if (asking->wanted) {
        const uint64_t words[FERRY_SCHEDULER_WORDS] = {ASKS, ferry_scheduling_now(s)};
        asking->wanted = false;
        ferry_scheduling_send(s, 1 - ferry_scheduling_rank(s), words);
    }
    yardstick_add(s, state, item);
}

static bool policy_empty(ferry_scheduling *s, void *state)
{
    (void)s;
    return ((policy *)state)->first == NULL;
}

static void yardstick_message(ferry_scheduling *s, void *state, int source,
                              const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    calibrate_asking *asking = calibrate_asking_here();
    (void)state;
    if (words[0] == ASKS && ferry_scheduling_rank(s) != 0)
        ferry_scheduling_send(s, source, words);
    if (words[0] != ASKS || ferry_scheduling_rank(s) != 0)
        return;
    asking->answer_ns = ferry_scheduling_now(s) - words[1];
    asking->answers++;
}

const ferry_scheduler calibrate_scheduler = {
    .size = sizeof(ferry_scheduler),
    .name = "calibrate",
    .create = yardstick_create,
    .destroy = yardstick_destroy,
    .next = yardstick_next,
    .activate = yardstick_add,
    .notify = yardstick_notify,
    .remove = unlink_item,
    .empty = policy_empty,
    .message = yardstick_message,
};
