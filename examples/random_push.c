/* A scheduler of one's own, in a shared object: a rank with more waiting objects than KEEP (from
 * FERRY_SCHEDULER_KEEP) sends the newest to a random rank.
 *
 *     cc -shared -fPIC random_push.c -o random_push.so $(pkg-config --cflags --libs ferry)
 *     FERRY_SCHEDULER=./random_push.so FERRY_SCHEDULER_KEEP=4 ferry run -n 4 ./program */
#include <stdlib.h>

#include <ferry/scheduler.h>

/* A stack of the objects that have tasks and rest here; the one that runs is not in it. */
typedef struct stack {
    ferry_schedulable *top;
    uint32_t count, keep;
} stack;

static int create(ferry_scheduling *s, void **state)
{
    stack *st = calloc(1, sizeof *st);
    if (st == NULL)
        return FERRY_ENOMEM;
    st->keep = (uint32_t)ferry_scheduling_count(s, "KEEP", 2, 0, 1000000);
    *state = st;
    return 0;
}

static void destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    free(state);
}

static void take_out(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    stack *st = state;
    (void)s;
    if (!item->queued)
        return;
    if (item->next != NULL)
        item->next->prev = item->prev;
    if (item->prev != NULL)
        item->prev->next = item->next;
    else
        st->top = item->next;
    item->queued = false;
    st->count--;
}

/* Called for each object that comes to rest, and for each that gets a task while it rests. */
static void add(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    stack *st = state;
    int others = ferry_scheduling_acceptor_count(s);
    if (item->queued || item->pending == 0)
        return;
    if (st->count >= st->keep && others > 0 && !item->arrived && ferry_scheduling_is_on(s)) {
        int distance = 1 + (int)(ferry_scheduling_random(s) % (uint64_t)others);
        ferry_scheduling_migrate(s, item, ferry_scheduling_acceptor(s, distance));
        return;
    }
    item->prev = NULL;
    item->next = st->top;
    if (st->top != NULL)
        st->top->prev = item;
    st->top = item;
    item->queued = true;
    st->count++;
}

static ferry_schedulable *next(ferry_scheduling *s, void *state)
{
    ferry_schedulable *item = ((stack *)state)->top;
    if (item != NULL)
        take_out(s, state, item);
    return item;
}

static bool empty(ferry_scheduling *s, void *state)
{
    (void)s;
    return ((stack *)state)->count == 0;
}

static void message(ferry_scheduling *s, void *state, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    (void)s, (void)state, (void)source, (void)words; /* ranks tell each other nothing */
}

FERRY_API const ferry_scheduler ferry_scheduler_plugin = {.size = sizeof(ferry_scheduler),
                                                          .name = "random-push",
                                                          .create = create,
                                                          .destroy = destroy,
                                                          .next = next,
                                                          .activate = add,
                                                          .notify = add,
                                                          .remove = take_out,
                                                          .empty = empty,
                                                          .message = message};
