/* A scheduler that asks without a pause, in a shared object. A rank without work answers each
 * refusal with the next work request, until it has sent FERRY_SCHEDULER_LIMIT of them. */
#include <stdlib.h>

#include <ferry/scheduler.h>

enum { ASK, REFUSE };

typedef struct endless {
    ferry_schedulable *top;
    int left; /* work requests */
} endless;

static int create(ferry_scheduling *s, void **state)
{
    endless *r = calloc(1, sizeof *r);
    if (r == NULL)
        return FERRY_ENOMEM;
    r->left = ferry_scheduling_count(s, "LIMIT", 100000, 0, 1000000000);
    *state = r;
    return 0;
}

static void destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    free(state);
}

static void tell(ferry_scheduling *s, int rank, uint64_t what)
{
    const uint64_t words[FERRY_SCHEDULER_WORDS] = {what};
    ferry_scheduling_send(s, rank, words);
}

static void ask(ferry_scheduling *s, endless *r)
{
    int others = ferry_scheduling_acceptor_count(s);
    if (others == 0 || r->left == 0 || !ferry_scheduling_is_on(s))
        return;
    r->left--;
    tell(s, ferry_scheduling_acceptor(s, 1 + r->left % others), ASK);
}

static ferry_schedulable *take(endless *r)
{
    ferry_schedulable *item = r->top;
    r->top = item->next;
    item->queued = false;
    return item;
}

static ferry_schedulable *next(ferry_scheduling *s, void *state)
{
    endless *r = state;
    if (r->top != NULL)
        return take(r);
    ask(s, r);
    return NULL;
}

static void add(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    endless *r = state;
    (void)s;
    if (item->queued || item->pending == 0)
        return;
    item->queued = true;
    item->next = r->top;
    r->top = item;
}

static void leave(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    ferry_schedulable **at = &((endless *)state)->top;
    (void)s;
    while (*at != NULL && *at != item)
        at = &(*at)->next;
    if (*at != NULL)
        *at = item->next;
    item->queued = false;
}

static bool empty(ferry_scheduling *s, void *state)
{
    (void)s;
    return ((endless *)state)->top == NULL;
}

static void message(ferry_scheduling *s, void *state, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    endless *r = state;
    if (words[0] == REFUSE)
        ask(s, r);
    else if (r->top == NULL || r->top->next == NULL)
        tell(s, source, REFUSE);
    else
        ferry_scheduling_migrate(s, take(r), source);
}

FERRY_API const ferry_scheduler ferry_scheduler_plugin = {.size = sizeof(ferry_scheduler),
                                                          .name = "endless",
                                                          .create = create,
                                                          .destroy = destroy,
                                                          .next = next,
                                                          .activate = add,
                                                          .notify = add,
                                                          .remove = leave,
                                                          .empty = empty,
                                                          .message = message};
