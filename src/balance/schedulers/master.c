/* Master and workers (prema.txt 5.4.2.5): what waits anywhere is collected on one rank, which hands
 * it out.
 *
 * Masters form a tree: the first of every GROUP ranks is the master of these, the first of every
 * GROUP * GROUP the master of those masters, and so on up to rank 0; with GROUP at 0 there is rank
 * 0 alone. Every rank sends what it has beyond the next task to rank 0. A rank without work sends
 * REQUEST to its master, which sends CHUNK objects; with FACTORING=1 its share of half of what is
 * left, if that is more, so that chunks shrink towards the end. A master that has nothing remembers
 * who asked it and asks the one above for as many; at the root requests wait for work. With
 * DISTRIBUTED=1 nothing is collected: ranks begin with what they have, and only what is on masters
 * is handed out.
 *
 * Without preemption a master that runs a task lets all its workers wait for it, so it runs none
 * while they ask: one only when it has heard no request for IDLE_US (its workers may be gone). */
#include <stdlib.h>

#include "balance/schedulers/schedulers.h"
#include "balance/schedulers/waiting.h"

enum { REQUEST };
enum { CROWD = 4 }; /* workers: fewer would lack the one that is their master */

typedef struct asker {
    int rank;
    uint32_t want; /* chunks */
} asker;

typedef struct master {
    fy_waiting waiting;
    ferry_schedulable *running;
    int parent;   /* -1: the root */
    int children; /* ranks that ask here; 0: a worker only */
    uint32_t chunk;
    bool factoring, distributed;
    uint64_t idle_ns, heard_ns; /* when a request came last */

    bool asked;
    asker *askers; /* ring of `children`, oldest first */
    uint32_t asker_first, asker_count;
} master;

/* Whether this rank leaves all tasks to the others. */
static bool abstains(const ferry_scheduling *s, const master *m)
{
    return m->children >= CROWD && ferry_scheduling_on(s) && !ferry_scheduling_preempts(s) &&
           ferry_scheduling_now(s) - m->heard_ns < m->idle_ns;
}

static uint32_t surplus(const ferry_scheduling *s, const master *m)
{
    uint32_t kept = m->running == NULL && !abstains(s, m) ? 1 : 0;
    return m->waiting.count > kept ? m->waiting.count - kept : 0;
}

static void send_one(ferry_scheduling *s, master *m, ferry_schedulable *item, int rank)
{
    fy_waiting_remove(&m->waiting, item);
    ferry_scheduling_migrate(s, item, rank);
}

static void ask(ferry_scheduling *s, master *m)
{
    bool wanted =
        (m->waiting.count == 0 && m->running == NULL) || (m->asker_count > 0 && surplus(s, m) == 0);
    if (m->parent < 0 || m->asked || !wanted || !ferry_scheduling_on(s))
        return;
    uint64_t want = m->waiting.count == 0 && m->running == NULL ? 1 : 0;
    for (uint32_t i = 0; i < m->asker_count; i++)
        want += m->askers[(m->asker_first + i) % (uint32_t)m->children].want;
    const uint64_t words[FERRY_SCHEDULER_WORDS] = {REQUEST, want, 0};
    m->asked = true;
    ferry_scheduling_send(s, m->parent, words);
}

static uint32_t chunk_of(const ferry_scheduling *s, const master *m)
{
    uint32_t share = surplus(s, m) / (2 * (uint32_t)(m->children + 1));
    return m->factoring && share > m->chunk ? share : m->chunk;
}

/* Hands out to who asked, oldest first. */
static void serve(ferry_scheduling *s, master *m)
{
    while (m->asker_count > 0 && surplus(s, m) > 0 && ferry_scheduling_on(s)) {
        const asker a = m->askers[m->asker_first];
        m->asker_first = (m->asker_first + 1) % (uint32_t)m->children;
        m->asker_count--;
        for (uint32_t count = a.want * chunk_of(s, m); count > 0 && surplus(s, m) > 0; count--)
            send_one(s, m, m->waiting.first, a.rank);
    }
    ask(s, m);
}

/* Sends to the root what is not for here; what comes to a worker or a master comes from above. */
static void collect(ferry_scheduling *s, master *m, ferry_schedulable *item)
{
    if (m->parent >= 0 && !m->distributed && !item->arrived && surplus(s, m) > 0 &&
        ferry_scheduling_on(s))
        send_one(s, m, item, 0);
    else if (m->asker_count > 0)
        serve(s, m);
}

/* The master of `rank` in a tree of groups, or -1 for the root. */
static int parent_of(int rank, int group, int ranks)
{
    if (rank == 0)
        return -1;
    for (int64_t span = group; span < ranks; span *= group)
        if (rank % span != 0)
            return (int)(rank / span * span);
    return 0;
}

static int create(ferry_scheduling *s, void **out)
{
    int ranks = ferry_scheduling_ranks(s), rank = ferry_scheduling_rank(s);
    double group = ferry_scheduling_parameter(s, "GROUP", 64);
    int size = group >= 2 && group < ranks ? (int)group : ranks;
    master *m = calloc(1, sizeof *m);
    if (m == NULL)
        return FERRY_ENOMEM;
    m->chunk = (uint32_t)ferry_scheduling_parameter(s, "CHUNK", 1);
    m->chunk = m->chunk == 0 ? 1 : m->chunk;
    m->factoring = ferry_scheduling_parameter(s, "FACTORING", 0) != 0;
    m->idle_ns = (uint64_t)(ferry_scheduling_parameter(s, "IDLE_US", 1e6) * 1e3);
    m->heard_ns = ferry_scheduling_now(s);
    m->distributed = ferry_scheduling_parameter(s, "DISTRIBUTED", 0) != 0;
    m->parent = parent_of(rank, size, ranks);
    for (int other = 0; other < ranks; other++)
        m->children += other != rank && parent_of(other, size, ranks) == rank;
    if (m->children > 0)
        m->askers = calloc((size_t)m->children, sizeof *m->askers);
    if (m->children > 0 && m->askers == NULL) {
        free(m);
        return FERRY_ENOMEM;
    }
    *out = m;
    return 0;
}

static void destroy(ferry_scheduling *s, void *arg)
{
    master *m = arg;
    (void)s;
    free(m->askers);
    free(m);
}

static ferry_schedulable *next(ferry_scheduling *s, void *arg)
{
    master *m = arg;
    if (m->asker_count > 0 && abstains(s, m))
        serve(s, m);
    if (abstains(s, m)) {
        m->running = NULL;
        ferry_scheduling_wake(s, m->waiting.count > 0 ? m->heard_ns + m->idle_ns : 0);
    } else {
        m->running = fy_waiting_pop(&m->waiting);
    }
    if (m->asker_count > 0)
        serve(s, m);
    ask(s, m);
    return m->running;
}

static void notify(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    master *m = arg;
    if (item->arrived)
        m->asked = false;
    if (fy_waiting_add(&m->waiting, item))
        collect(s, m, item);
}

static void activate(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    master *m = arg;
    if (item == m->running)
        m->running = NULL;
    notify(s, arg, item);
}

static void take_out(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    master *m = arg;
    (void)s;
    fy_waiting_remove(&m->waiting, item);
}

static bool empty(ferry_scheduling *s, void *arg)
{
    const master *m = arg;
    (void)s;
    return m->waiting.count == 0;
}

static void message(ferry_scheduling *s, void *arg, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    master *m = arg;
    if (words[0] != REQUEST || m->children == 0)
        return;
    m->heard_ns = ferry_scheduling_now(s);
    for (uint32_t i = 0; i < m->asker_count; i++)
        if (m->askers[(m->asker_first + i) % (uint32_t)m->children].rank == source)
            return;
    if (m->asker_count == (uint32_t)m->children)
        return;
    uint32_t want = words[1] < (uint64_t)ferry_scheduling_ranks(s) ? (uint32_t)words[1] : 1;
    m->askers[(m->asker_first + m->asker_count++) % (uint32_t)m->children] =
        (asker){.rank = source, .want = want == 0 ? 1 : want};
    serve(s, m);
}

const ferry_scheduler fy_scheduler_master = {
    .size = sizeof(ferry_scheduler),
    .name = "master",
    .create = create,
    .destroy = destroy,
    .next = next,
    .activate = activate,
    .notify = notify,
    .remove = take_out,
    .empty = empty,
    .message = message,
};
