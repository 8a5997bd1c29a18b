/* Prioritized multi-list (prema.txt 5.4.2.4): every rank knows which rank has the object that it
 * wants most.
 *
 * An object has a priority for each rank (ferry_scheduling_priority). So the objects that wait on a
 * rank have one *head* for each other rank: the object with the highest priority for that rank.
 *
 * - Each rank keeps one number for each other rank: the priority, for itself, of its head there; 0
 *   if that rank has nothing for it.
 * - A rank sends HEAD to another rank when the head for that rank comes, goes, or changes by a
 *   quarter.
 * - A rank without work sends REQUEST to the rank with the greatest number. Without preemption it
 *   does so when its last task begins. That rank sends its head for the asker, whatever the
 *   priority is now, or answers NONE. If several numbers are equal, different ranks begin with
 *   different ones.
 * - A rank with work also asks, if another rank has an object that is better by more than a quarter
 *   than all its own.
 *
 * Deviation: in the thesis the better object runs next, wherever it is. Here a rank runs its own
 * best object until the better one has come, so that it does not wait for a migration. The fetched
 * object runs next, before another rank can take it.
 *
 * Each choice looks at all waiting objects, because priorities change without a call. The thesis
 * keeps sorted lists. A rank tells all others, so messages grow with the number of ranks: this
 * scheduler is meant for up to a few hundred ranks. */
#include <stdlib.h>

#include "balance/schedulers/bundle/bundle.h"
#include "balance/schedulers/bundle/lists.h"
#include "base/alloc.h"

enum { HEAD, REQUEST, NONE };

static const double NEWS_FACTOR = 1.25,
                    LEAST = 1e-9; /* of an object that can be had: above 0, which means none */

typedef struct other {
    double theirs; /* priority, for this rank, of its head there; 0: none */
    double told;   /* the number that this rank has sent to it */
} other;

typedef struct multilist {
    fy_waiting_queue waiting;
    int asked; /* a rank, or -1 */
    int start;
    const ferry_schedulable *fetched; /* came because it was better, and has not run yet; or NULL */
    other others[];                   /* by rank */
} multilist;

static void multilist_tell(ferry_scheduling *s, int rank, uint64_t what, double priority)
{
    fy_policy_tell(s, rank, what, fy_word_of(priority), 0);
}

/* The waiting object with the highest priority for `rank`; NULL: there is none. A fetched object is
 * for this rank alone. */
static ferry_schedulable *head_for(ferry_scheduling *s, const multilist *m, int rank)
{
    ferry_schedulable *best = NULL;
    double highest = -1;
    bool own = rank == ferry_scheduling_rank(s);
    for (ferry_schedulable *item = m->waiting.first; item != NULL; item = item->next) {
        double priority = ferry_scheduling_priority(s, item, rank);
        if (priority > highest && (own || item != m->fetched)) {
            highest = priority;
            best = item;
        }
    }
    return best;
}

/* Whether another rank can have an object. A fetched object stays here. If no task runs, one object
 * stays for this rank. */
static bool can_give(ferry_scheduling *s, const multilist *m)
{
    bool keeps_one = m->waiting.running == NULL || m->fetched != NULL;
    return m->waiting.count > (keeps_one ? 1U : 0U) && ferry_scheduling_is_on(s);
}

static double wanted(ferry_scheduling *s, const ferry_schedulable *item, int rank)
{
    double priority = ferry_scheduling_priority(s, item, rank);
    return priority > LEAST ? priority : LEAST;
}

/* The number that `rank` should know now. `changed` has come or gone, or is NULL. If the number
 * that it knows is still about right, the search ends at the first object that shows so. */
static double head_now(ferry_scheduling *s, const multilist *m, int rank,
                       const ferry_schedulable *changed)
{
    double told = m->others[rank].told, highest = 0;
    if (told > 0 && changed != NULL && NEWS_FACTOR * wanted(s, changed, rank) < told)
        return told;
    for (const ferry_schedulable *item = m->waiting.last; item != NULL; item = item->prev) {
        double priority = item == m->fetched ? 0 : wanted(s, item, rank);
        highest = priority > highest ? priority : highest;
        if (told > 0 && NEWS_FACTOR * highest >= told)
            break;
    }
    return highest;
}

/* Tells each other rank its number, if that has changed by a quarter. `changed` may be NULL. */
static void announce(ferry_scheduling *s, multilist *m, const ferry_schedulable *changed)
{
    bool gives = can_give(s, m);
    for (int i = 1; i <= ferry_scheduling_acceptor_count(s); i++) {
        int rank = ferry_scheduling_acceptor(s, i);
        double *told = &m->others[rank].told;
        double now = gives ? head_now(s, m, rank, changed) : 0;
        if ((now > 0) == (*told > 0) && now <= NEWS_FACTOR * *told && *told <= NEWS_FACTOR * now)
            continue;
        *told = now;
        multilist_tell(s, rank, HEAD, now);
    }
}

/* This rank asks another only for a number above this one. Below 0: it needs nothing. */
static double least_wanted(ferry_scheduling *s, const multilist *m)
{
    if (m->waiting.count == 0)
        return m->waiting.running == NULL || !ferry_scheduling_preempts(s) ? 0 : -1;
    if (m->fetched != NULL)
        return -1;
    const ferry_schedulable *own = head_for(s, m, ferry_scheduling_rank(s));
    return NEWS_FACTOR * wanted(s, own, ferry_scheduling_rank(s));
}

static void multilist_ask(ferry_scheduling *s, multilist *m)
{
    int ranks = ferry_scheduling_ranks(s), best = -1;
    if (m->asked >= 0 || !ferry_scheduling_is_on(s))
        return;
    double highest = 0;
    for (int i = 0; i < ranks; i++) {
        int rank = (m->start + i) % ranks;
        if (m->others[rank].theirs > highest) {
            highest = m->others[rank].theirs;
            best = rank;
        }
    }
    if (best < 0)
        return;
    double least = least_wanted(s, m);
    if (least < 0 || highest <= least)
        return;
    m->asked = best;
    multilist_tell(s, best, REQUEST, 0);
}

static int multilist_create(ferry_scheduling *s, void **out)
{
    size_t ranks = (size_t)ferry_scheduling_ranks(s);
    multilist *m = fy_calloc(1, sizeof *m + ranks * sizeof *m->others);
    if (m == NULL)
        return FERRY_ENOMEM;
    m->asked = -1;
    m->start = (int)(ferry_scheduling_random(s) % ranks);
    *out = m;
    return 0;
}

static ferry_schedulable *multilist_next(ferry_scheduling *s, void *arg)
{
    multilist *m = arg;
    m->waiting.running = head_for(s, m, ferry_scheduling_rank(s));
    if (m->waiting.running != NULL)
        fy_waiting_remove(&m->waiting, m->waiting.running);
    if (m->waiting.running == m->fetched)
        m->fetched = NULL;
    announce(s, m, m->waiting.running);
    multilist_ask(s, m);
    return m->waiting.running;
}

static void multilist_notify(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    multilist *m = arg;
    if (fy_waiting_add(&m->waiting, item) && m->waiting.running != NULL)
        announce(s, m, item);
}

static void multilist_activate(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    multilist *m = arg;
    if (item == m->waiting.running)
        m->waiting.running = NULL;
    if (item->arrived) {
        if (m->asked >= 0 && m->waiting.count != 0 && item->pending != 0)
            m->fetched = item;
        m->asked = -1;
    }
    multilist_notify(s, arg, item);
}

static void multilist_take_out(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    multilist *m = arg;
    if (item == m->fetched)
        m->fetched = NULL;
    fy_policy_remove(s, arg, item);
}

static void multilist_give(ferry_scheduling *s, multilist *m, int thief)
{
    bool gives = can_give(s, m) && ferry_scheduling_accepts(s, thief);
    ferry_schedulable *item = gives ? head_for(s, m, thief) : NULL;
    if (item == NULL) {
        multilist_tell(s, thief, NONE, 0);
        return;
    }
    fy_waiting_remove(&m->waiting, item);
    announce(s, m, item);
    ferry_scheduling_migrate(s, item, thief);
}

static void multilist_message(ferry_scheduling *s, void *arg, int source,
                              const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    multilist *m = arg;
    if (words[0] == REQUEST) {
        multilist_give(s, m, source);
    } else if (words[0] == HEAD || words[0] == NONE) {
        double head = fy_number_of(words[1]);
        m->others[source].theirs = words[0] == HEAD && head > 0 ? head : 0;
        if (words[0] == NONE)
            m->asked = -1;
        multilist_ask(s, m);
    }
}

/* Ranks have come or gone. Those that have gone have nothing any more. All others are told anew. */
static void multilist_members(ferry_scheduling *s, void *arg)
{
    multilist *m = arg;
    for (int rank = 0; rank < ferry_scheduling_ranks(s); rank++) {
        m->others[rank].told = 0;
        if (!ferry_scheduling_accepts(s, rank))
            m->others[rank].theirs = 0;
    }
    if (m->asked >= 0 && !ferry_scheduling_accepts(s, m->asked))
        m->asked = -1;
    announce(s, m, NULL);
    multilist_ask(s, m);
}

const ferry_scheduler fy_scheduler_multilist = {
    .size = sizeof(ferry_scheduler),
    .name = "multilist",
    .create = multilist_create,
    .destroy = fy_policy_destroy,
    .next = multilist_next,
    .activate = multilist_activate,
    .notify = multilist_notify,
    .remove = multilist_take_out,
    .empty = fy_policy_empty,
    .ahead = fy_policy_ahead,
    .message = multilist_message,
    .members = multilist_members,
};
