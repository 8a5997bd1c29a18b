/* Prioritized multi-list (prema.txt 5.4.2.4): every rank knows whose next object is most wanted.
 *
 * An object has a priority for each rank (ferry_scheduling_priority). Each rank keeps one number
 * per rank: the priority of the object it could get there, 0 for none. Ranks tell all others by
 * HEAD when theirs comes, goes, or changes by a quarter. A rank without work (or, without
 * preemption, with its last task) sends REQUEST to the one with the greatest number, which sends
 * the object that is best for the asker, whatever its priority has become, or NONE. Of equal ones
 * each rank begins with another. Telling all others costs messages in proportion to the ranks:
 * meant for up to a few hundred. */
#include <stdlib.h>

#include "balance/schedulers/schedulers.h"
#include "balance/schedulers/waiting.h"

enum { HEAD, REQUEST, NONE };
enum { LOOKED_AT_MAX = 256 };

typedef struct multilist {
    fy_waiting waiting;
    ferry_schedulable *running;
    double told; /* what the others know of this rank */
    bool asked;
    int start;
    double heads[]; /* by rank */
} multilist;

static void tell(ferry_scheduling *s, int rank, uint64_t what, double priority)
{
    union {
        double number;
        uint64_t word;
    } as = {.number = priority};
    const uint64_t words[FERRY_SCHEDULER_WORDS] = {what, as.word, 0};
    ferry_scheduling_send(s, rank, words);
}

/* The head of the list of `rank`; NULL when nothing waits. Looks at a bounded number. */
static ferry_schedulable *head_for(ferry_scheduling *s, const multilist *m, int rank)
{
    ferry_schedulable *best = NULL;
    double highest = -1;
    int looked_at = 0;
    for (ferry_schedulable *item = m->waiting.first; item != NULL && looked_at < LOOKED_AT_MAX;
         item = item->next, looked_at++) {
        double priority = ferry_scheduling_priority(s, item, rank);
        if (priority > highest) {
            highest = priority;
            best = item;
        }
    }
    return best;
}

static bool can_give(ferry_scheduling *s, const multilist *m)
{
    return m->waiting.count > (m->running == NULL ? 1u : 0u) && ferry_scheduling_on(s);
}

/* Tells everybody what is to be had here, when that is news. */
static void announce(ferry_scheduling *s, multilist *m)
{
    const ferry_schedulable *head = m->waiting.last;
    double now = can_give(s, m) ? head->load + 1e-9 : 0;
    bool news = (now > 0) != (m->told > 0) || now > 1.25 * m->told || m->told > 1.25 * now;
    if (!news)
        return;
    m->told = now;
    for (int rank = 0; rank < ferry_scheduling_ranks(s); rank++)
        if (rank != ferry_scheduling_rank(s))
            tell(s, rank, HEAD, now);
}

static void ask(ferry_scheduling *s, multilist *m)
{
    int ranks = ferry_scheduling_ranks(s), best = -1;
    bool ahead = !ferry_scheduling_preempts(s);
    if (m->asked || (m->running != NULL && !ahead) || m->waiting.count != 0 ||
        !ferry_scheduling_on(s))
        return;
    for (int i = 0; i < ranks; i++) {
        int rank = (m->start + i) % ranks;
        if (m->heads[rank] > (best < 0 ? 0 : m->heads[best]))
            best = rank;
    }
    if (best < 0)
        return;
    m->asked = true;
    tell(s, best, REQUEST, 0);
}

static int create(ferry_scheduling *s, void **out)
{
    size_t ranks = (size_t)ferry_scheduling_ranks(s);
    multilist *m = calloc(1, sizeof *m + ranks * sizeof *m->heads);
    if (m == NULL)
        return FERRY_ENOMEM;
    m->start = (int)(ferry_scheduling_random(s) % ranks);
    *out = m;
    return 0;
}

static void destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    free(state);
}

static ferry_schedulable *next(ferry_scheduling *s, void *arg)
{
    multilist *m = arg;
    m->running = head_for(s, m, ferry_scheduling_rank(s));
    if (m->running != NULL)
        fy_waiting_remove(&m->waiting, m->running);
    announce(s, m);
    ask(s, m);
    return m->running;
}

static void notify(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    multilist *m = arg;
    if (fy_waiting_add(&m->waiting, item) && m->running != NULL)
        announce(s, m);
}

static void activate(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    multilist *m = arg;
    if (item == m->running)
        m->running = NULL;
    if (item->arrived)
        m->asked = false;
    notify(s, arg, item);
}

static void take_out(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    multilist *m = arg;
    (void)s;
    fy_waiting_remove(&m->waiting, item);
}

static bool empty(ferry_scheduling *s, void *arg)
{
    const multilist *m = arg;
    (void)s;
    return m->waiting.count == 0;
}

static void give(ferry_scheduling *s, multilist *m, int thief)
{
    ferry_schedulable *item = can_give(s, m) ? head_for(s, m, thief) : NULL;
    if (item == NULL) {
        tell(s, thief, NONE, 0);
        return;
    }
    fy_waiting_remove(&m->waiting, item);
    ferry_scheduling_migrate(s, item, thief);
    announce(s, m);
}

static void message(ferry_scheduling *s, void *arg, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    multilist *m = arg;
    union {
        uint64_t word;
        double number;
    } as = {.word = words[1]};
    if (words[0] == REQUEST) {
        give(s, m, source);
    } else if (words[0] == HEAD || words[0] == NONE) {
        m->heads[source] = words[0] == HEAD && as.number > 0 ? as.number : 0;
        m->asked = m->asked && words[0] == HEAD;
        ask(s, m);
    }
}

const ferry_scheduler fy_scheduler_multilist = {
    .size = sizeof(ferry_scheduler),
    .name = "multilist",
    .create = create,
    .destroy = destroy,
    .next = next,
    .activate = activate,
    .notify = notify,
    .remove = take_out,
    .empty = empty,
    .message = message,
};
