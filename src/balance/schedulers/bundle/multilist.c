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

#include "balance/schedulers/bundle/bundle.h"
#include "balance/schedulers/policy.h"
#include "balance/schedulers/waiting.h"
#include "base/alloc.h"

enum { HEAD, REQUEST, NONE };
enum { LOOKED_AT_MAX = 256 };

typedef struct multilist {
    fy_waiting waiting;
    double told; /* what the others know of this rank */
    int asked;   /* a rank, or -1 */
    int start;
    double heads[]; /* by rank */
} multilist;

static void tell(ferry_scheduling *s, int rank, uint64_t what, double priority)
{
    fy_policy_tell(s, rank, what, fy_word_of(priority), 0);
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
    return m->waiting.count > (m->waiting.running == NULL ? 1u : 0u) && ferry_scheduling_on(s);
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
    for (int i = 1; i <= ferry_scheduling_takers(s); i++)
        tell(s, ferry_scheduling_taker(s, i), HEAD, now);
}

static void ask(ferry_scheduling *s, multilist *m)
{
    int ranks = ferry_scheduling_ranks(s), best = -1;
    bool ahead = !ferry_scheduling_preempts(s);
    if (m->asked >= 0 || (m->waiting.running != NULL && !ahead) || m->waiting.count != 0 ||
        !ferry_scheduling_on(s))
        return;
    for (int i = 0; i < ranks; i++) {
        int rank = (m->start + i) % ranks;
        if (m->heads[rank] > (best < 0 ? 0 : m->heads[best]))
            best = rank;
    }
    if (best < 0)
        return;
    m->asked = best;
    tell(s, best, REQUEST, 0);
}

static int create(ferry_scheduling *s, void **out)
{
    size_t ranks = (size_t)ferry_scheduling_ranks(s);
    multilist *m = fy_calloc(1, sizeof *m + ranks * sizeof *m->heads);
    if (m == NULL)
        return FERRY_ENOMEM;
    m->asked = -1;
    m->start = (int)(ferry_scheduling_random(s) % ranks);
    *out = m;
    return 0;
}

static ferry_schedulable *next(ferry_scheduling *s, void *arg)
{
    multilist *m = arg;
    m->waiting.running = head_for(s, m, ferry_scheduling_rank(s));
    if (m->waiting.running != NULL)
        fy_waiting_remove(&m->waiting, m->waiting.running);
    announce(s, m);
    ask(s, m);
    return m->waiting.running;
}

static void notify(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    multilist *m = arg;
    if (fy_waiting_add(&m->waiting, item) && m->waiting.running != NULL)
        announce(s, m);
}

static void activate(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    multilist *m = arg;
    if (item == m->waiting.running)
        m->waiting.running = NULL;
    if (item->arrived)
        m->asked = -1;
    notify(s, arg, item);
}

static void give(ferry_scheduling *s, multilist *m, int thief)
{
    bool gives = can_give(s, m) && ferry_scheduling_takes(s, thief);
    ferry_schedulable *item = gives ? head_for(s, m, thief) : NULL;
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
    if (words[0] == REQUEST) {
        give(s, m, source);
    } else if (words[0] == HEAD || words[0] == NONE) {
        double head = fy_number_of(words[1]);
        m->heads[source] = words[0] == HEAD && head > 0 ? head : 0;
        if (words[0] == NONE)
            m->asked = -1;
        ask(s, m);
    }
}

/* Nothing is to be had from those that have gone; those that have come are told with the rest. */
static void members(ferry_scheduling *s, void *arg)
{
    multilist *m = arg;
    for (int rank = 0; rank < ferry_scheduling_ranks(s); rank++)
        if (!ferry_scheduling_takes(s, rank))
            m->heads[rank] = 0;
    if (m->asked >= 0 && !ferry_scheduling_takes(s, m->asked))
        m->asked = -1;
    m->told = 0;
    announce(s, m);
    ask(s, m);
}

const ferry_scheduler fy_scheduler_multilist = {
    .size = sizeof(ferry_scheduler),
    .name = "multilist",
    .create = create,
    .destroy = fy_policy_destroy,
    .next = next,
    .activate = activate,
    .notify = notify,
    .remove = fy_policy_remove,
    .empty = fy_policy_empty,
    .message = message,
    .members = members,
};
