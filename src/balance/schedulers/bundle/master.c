/* Master and workers (prema.txt 5.4.2.5): the waiting objects of all ranks are collected on one
 * rank, which hands them out.
 *
 * Masters form a tree over the ranks that take objects, in the order of these ranks. The first of
 * every GROUP ranks is the master of that group. The first of every GROUP * GROUP ranks is the
 * master of the masters among them, and so on up to the first rank, the root. With GROUP=0 the root
 * is the only master.
 *
 * - Every rank sends what it has beyond its next task to the root. With DISTRIBUTED=1 it keeps
 *   that: masters hand out only objects that are on masters.
 * - A rank without work sends REQUEST to its master. The master sends CHUNK objects. With
 *   FACTORING=1 it sends the rank's share of half of what is left, if that is more. So chunks
 *   shrink towards the end.
 * - A master without objects passes the request on to its own master, with the rank that asked. The
 *   master that has objects sends them to that rank: on a master that runs a task they would wait
 * for its end. At the root requests wait for work.
 *
 * Without preemption all workers wait for a master that runs a task. So a master of CROWD workers
 * or more runs no task while they ask. It runs one only after IDLE_US without a request, because
 * its workers may be gone.
 *
 * When ranks join or leave, all ranks ask anew. For a while some ranks know more of the change than
 * others. So a master remembers every rank that asks, even one that it does not know as its worker,
 * and serves those that take objects. No request is forgotten. */
#include <stdlib.h>
#include <string.h>

#include "balance/schedulers/bundle/bundle.h"
#include "balance/schedulers/bundle/lists.h"
#include "base/alloc.h"

enum { REQUEST };
enum { CROWD = 4 }; /* with fewer workers the master runs tasks too: a job cannot spare it */

typedef struct master {
    fy_waiting_queue waiting;
    int root;
    int parent;   /* -1: this is the root */
    int children; /* ranks that ask this rank for work; 0: it is a worker only */
    int group;
    uint32_t chunk;
    bool factoring, distributed;
    uint64_t idle_ns, heard_ns; /* when the last request came */

    bool asked;
    int *askers; /* ranks, oldest first, from `asker_first` on */
    uint32_t asker_first, asker_count, asker_capacity;
} master;

/* Whether this rank leaves all tasks to the others. */
static bool abstains(const ferry_scheduling *s, const master *m)
{
    return m->children >= CROWD && ferry_scheduling_is_on(s) && !ferry_scheduling_preempts(s) &&
           ferry_scheduling_now(s) - m->heard_ns < m->idle_ns;
}

static uint32_t surplus(const ferry_scheduling *s, const master *m)
{
    uint32_t kept = m->waiting.running == NULL && !abstains(s, m) ? 1 : 0;
    return m->waiting.count > kept ? m->waiting.count - kept : 0;
}

static void send_one(ferry_scheduling *s, master *m, ferry_schedulable *item, int rank)
{
    fy_waiting_remove(&m->waiting, item);
    ferry_scheduling_migrate(s, item, rank);
}

static int *asker_at(const master *m, uint32_t index)
{
    return &m->askers[m->asker_first + index];
}

static uint32_t chunk_of(const ferry_scheduling *s, const master *m)
{
    uint32_t share = surplus(s, m) / (2 * (uint32_t)(m->children + 1));
    return m->factoring && share > m->chunk ? share : m->chunk;
}

/* Removes the oldest asker whose rank takes objects. Returns false if there is none. */
static bool pop_asker(const ferry_scheduling *s, master *m, int *out)
{
    uint32_t i = 0;
    while (i < m->asker_count && !ferry_scheduling_accepts(s, *asker_at(m, i)))
        i++;
    if (i == m->asker_count)
        return false;
    *out = *asker_at(m, i);
    m->asker_count--;
    if (i == 0)
        m->asker_first = m->asker_count == 0 ? 0 : m->asker_first + 1;
    else
        memmove(asker_at(m, i), asker_at(m, i + 1), (m->asker_count - i) * sizeof *m->askers);
    return true;
}

static void request(ferry_scheduling *s, const master *m, int rank)
{
    const uint64_t words[FERRY_SCHEDULER_WORDS] = {REQUEST, (uint64_t)rank, 0};
    ferry_scheduling_send(s, m->parent, words);
}

/* Asks the parent for work, if there is none, and passes on what others have asked for. */
static void master_ask(ferry_scheduling *s, master *m)
{
    int rank;
    if (m->parent < 0 || !ferry_scheduling_is_on(s))
        return;
    if (!m->asked && m->waiting.count == 0 && m->waiting.running == NULL) {
        m->asked = true;
        request(s, m, ferry_scheduling_rank(s));
    }
    while (surplus(s, m) == 0 && pop_asker(s, m, &rank))
        request(s, m, rank);
}

/* Hands out objects to the ranks that have asked, the oldest request first. */
static void serve(ferry_scheduling *s, master *m)
{
    int rank;
    while (surplus(s, m) > 0 && ferry_scheduling_is_on(s) && pop_asker(s, m, &rank))
        for (uint32_t count = chunk_of(s, m); count > 0 && surplus(s, m) > 0; count--)
            send_one(s, m, m->waiting.first, rank);
    master_ask(s, m);
}

/* Sends an object to the root that this rank does not need. Objects that have come from another
 * rank stay: a master has sent them. */
static void collect(ferry_scheduling *s, master *m, ferry_schedulable *item)
{
    if (m->parent >= 0 && !m->distributed && !item->arrived && surplus(s, m) > 0 &&
        ferry_scheduling_is_on(s))
        send_one(s, m, item, m->root);
    else if (m->asker_count > 0)
        serve(s, m);
}

/* The place of the master of `place` in a tree of groups over `places`, or -1 for the root. */
static int parent_of(int place, int group, int places)
{
    if (place == 0)
        return -1;
    for (int64_t span = group; span < places; span *= group)
        if (place % span != 0)
            return (int)(place / span * span);
    return 0;
}

/* Finds this rank's master and workers among the ranks that take objects. */
static void find_masters(ferry_scheduling *s, master *m)
{
    int places = ferry_scheduling_acceptor_count(s) + 1, place = 0;
    for (int i = places - 1; i > 0 && ferry_scheduling_acceptor(s, i) < ferry_scheduling_rank(s);
         i--)
        place++;
    int group = m->group >= 2 && m->group < places ? m->group : places;
    int parent = parent_of(place, group, places);
    m->root = place == 0 ? ferry_scheduling_rank(s) : ferry_scheduling_acceptor(s, places - place);
    m->parent = parent < 0 ? -1 : ferry_scheduling_acceptor(s, places - place + parent);
    m->children = 0;
    for (int other = 0; other < places; other++)
        m->children += other != place && parent_of(other, group, places) == place;
}

/* Makes room for one more. */
static bool askers_reserve(master *m)
{
    if (m->asker_first + m->asker_count < m->asker_capacity)
        return true;
    if (m->asker_first > 0) {
        memmove(m->askers, m->askers + m->asker_first, m->asker_count * sizeof *m->askers);
        m->asker_first = 0;
        return true;
    }
    uint32_t capacity = m->asker_capacity * 2 + 16;
    int *larger = fy_realloc(m->askers, capacity * sizeof *larger);
    if (larger == NULL)
        return false;
    m->askers = larger;
    m->asker_capacity = capacity;
    return true;
}

static int master_create(ferry_scheduling *s, void **out)
{
    master *m = fy_calloc(1, sizeof *m);
    if (m == NULL)
        return FERRY_ENOMEM;
    m->chunk = (uint32_t)ferry_scheduling_count(s, "CHUNK", 1, 1, FY_OBJECTS_MAX);
    m->factoring = ferry_scheduling_count(s, "FACTORING", 0, 0, 1) != 0;
    m->idle_ns = fy_policy_ns(s, "IDLE_US", 1e6, 0);
    m->heard_ns = ferry_scheduling_now(s);
    m->distributed = ferry_scheduling_count(s, "DISTRIBUTED", 0, 0, 1) != 0;
    m->group = ferry_scheduling_count(s, "GROUP", 64, 0, 1000000);
    find_masters(s, m);
    *out = m;
    return 0;
}

static void master_destroy(ferry_scheduling *s, void *arg)
{
    master *m = arg;
    (void)s;
    free(m->askers);
    free(m);
}

static ferry_schedulable *master_next(ferry_scheduling *s, void *arg)
{
    master *m = arg;
    if (m->asker_count > 0 && abstains(s, m))
        serve(s, m);
    if (abstains(s, m)) {
        m->waiting.running = NULL;
        ferry_scheduling_wake(s, m->waiting.count > 0 ? m->heard_ns + m->idle_ns : 0);
    } else {
        m->waiting.running = fy_waiting_pop(&m->waiting);
    }
    if (m->asker_count > 0)
        serve(s, m);
    master_ask(s, m);
    return m->waiting.running;
}

static void master_notify(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    master *m = arg;
    if (item->arrived)
        m->asked = false;
    if (fy_waiting_add(&m->waiting, item))
        collect(s, m, item);
}

static void master_activate(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    master *m = arg;
    if (item == m->waiting.running)
        m->waiting.running = NULL;
    master_notify(s, arg, item);
}

static void master_message(ferry_scheduling *s, void *arg, int source,
                           const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    master *m = arg;
    if (words[0] != REQUEST)
        return;
    (void)source; /* a master may have passed it on */
    if (words[1] >= (uint64_t)ferry_scheduling_ranks(s))
        return;
    int rank = (int)words[1];
    m->heard_ns = ferry_scheduling_now(s);
    for (uint32_t i = 0; i < m->asker_count; i++)
        if (*asker_at(m, i) == rank)
            return;
    if (rank == ferry_scheduling_rank(s) || !askers_reserve(m))
        return;
    *asker_at(m, m->asker_count++) = rank;
    serve(s, m);
}

static void master_members(ferry_scheduling *s, void *arg)
{
    master *m = arg;
    find_masters(s, m);
    m->asked = false;
    serve(s, m);
}

const ferry_scheduler fy_scheduler_master = {
    .size = sizeof(ferry_scheduler),
    .name = "master",
    .create = master_create,
    .destroy = master_destroy,
    .next = master_next,
    .activate = master_activate,
    .notify = master_notify,
    .remove = fy_policy_remove,
    .empty = fy_policy_empty,
    .ahead = fy_policy_ahead,
    .message = master_message,
    .members = master_members,
};
