/* Gradient (prema.txt 5.4.2.3): an idle rank makes itself known from neighbour to neighbour, and a
 * rank with too much work offers it objects. The thesis calls the distance from the idle rank its
 * proximity.
 *
 * A rank is overloaded if more than HIGH objects wait (HIGH is at least LOW). It is underloaded if
 * LOW or fewer wait. If LOW is 0, it must also run no task; without preemption it may run its last.
 *
 * - An underloaded rank sends STATUS (its number, a count, distance 0) to its neighbours: the
 *   NEIGHBOURS / 2 ranks before it and as many after it. With FAR=1 neighbours are also the ranks
 *   at distances of growing powers of two. Then all ranks hear of it in logarithmic time.
 * - A rank keeps a STATUS if it is nearer than the one that it knows. If the rank is not
 *   overloaded, it passes the STATUS on with distance + 1. It passes on the STATUS of each count
 *   once, and again only if it comes from nearer.
 * - An overloaded rank commits first: it sends OFFER (how many objects) to the nearest underloaded
 *   rank that it knows.
 * - That rank answers TAKE: how many of them it wants, BATCH at most. 0 means none. The objects
 *   then travel together.
 *
 * A known STATUS that is older than EXPIRE_US gives way to any other. A rank that stays underloaded
 * sends STATUS again after growing pauses. */
#include <stdlib.h>

#include "balance/schedulers/bundle/bundle.h"
#include "balance/schedulers/bundle/lists.h"
#include "balance/schedulers/bundle/neighbours.h"
#include "base/alloc.h"
#include "base/pause.h"

enum { STATUS, OFFER, TAKE };
enum { DISTANCE_MAX = 1 << 20, PAUSES_MAX = 32 };

/* The last STATUS of a rank that this rank has passed on. */
typedef struct passed {
    uint32_t count, distance;
} passed;

typedef struct gradient {
    fy_waiting_queue waiting;
    uint32_t low, high, batch;
    uint64_t expire_ns;
    int each_side; /* neighbours */
    bool far;
    int neighbours[FY_NEIGHBOURS_MAX];
    int neighbour_count;

    int nearest;       /* underloaded rank, or -1 */
    uint32_t distance; /* of `nearest`, in steps from neighbour to neighbour */
    uint64_t heard_ns;
    bool offered;      /* an offer is out */
    uint32_t promised; /* objects that others have promised and not sent yet */
    uint64_t promised_ns;
    bool announced;
    uint32_t count;    /* STATUS sent by this rank */
    uint64_t pause_ns; /* until the next STATUS; grows */
    passed *passed;    /* per rank */
} gradient;

static bool underloaded(const ferry_scheduling *s, const gradient *g)
{
    bool ahead = g->low > 0 || !ferry_scheduling_preempts(s);
    return (g->waiting.running == NULL || ahead) && g->waiting.count + g->promised <= g->low;
}

static uint32_t surplus(const gradient *g)
{
    uint32_t kept = g->high + (g->waiting.running == NULL ? 1 : 0);
    return g->waiting.count > kept ? g->waiting.count - kept : 0;
}

static void spread(ferry_scheduling *s, const gradient *g, int source, int rank, passed status)
{
    for (int i = 0; i < g->neighbour_count; i++)
        if (g->neighbours[i] != source && g->neighbours[i] != rank)
            fy_policy_tell(s, g->neighbours[i], STATUS, (uint64_t)rank,
                           (uint64_t)status.count << 32 | status.distance);
}

/* If messages take longer than EXPIRE_US, what a rank knows is always old when the next STATUS
 * comes. Then a rank that passed on each STATUS that it keeps would pass on the same one without
 * end. */
static void pass(ferry_scheduling *s, gradient *g, int source, int rank, passed status)
{
    passed *before = &g->passed[rank];
    bool newer = (int32_t)(status.count - before->count) > 0;
    if (!newer && (status.count != before->count || status.distance >= before->distance))
        return;
    *before = status;
    spread(s, g, source, rank, status);
}

/* Sends STATUS, if this rank is underloaded and has not sent it lately. */
static void announce(ferry_scheduling *s, gradient *g)
{
    if (!underloaded(s, g) || !ferry_scheduling_is_on(s) || g->neighbour_count == 0)
        return;
    if (g->announced)
        return;
    g->announced = true;
    ferry_scheduling_wake(s, ferry_scheduling_now(s) + fy_policy_timeout(s, g->pause_ns));
    g->pause_ns = fy_pause_longer(g->pause_ns, PAUSES_MAX * g->expire_ns);
    spread(s, g, -1, ferry_scheduling_rank(s), (passed){.count = ++g->count});
}

/* Commits: tells the nearest underloaded rank what could be sent to it. */
static void offer(ferry_scheduling *s, gradient *g)
{
    if (g->offered || g->nearest < 0 || surplus(g) == 0 || !ferry_scheduling_is_on(s))
        return;
    g->offered = true;
    fy_policy_tell(s, g->nearest, OFFER, surplus(g), 0);
    g->nearest = -1;
}

static void hear_status(ferry_scheduling *s, gradient *g, int source, int rank, passed status)
{
    uint64_t now = ferry_scheduling_now(s);
    bool old = g->nearest < 0 || now - g->heard_ns > fy_policy_timeout(s, g->expire_ns);
    if (!old && status.distance >= g->distance)
        return;
    g->nearest = rank;
    g->distance = status.distance;
    g->heard_ns = now;
    if (surplus(g) > 0)
        offer(s, g);
    else
        pass(s, g, source, rank, (passed){.count = status.count, .distance = status.distance + 1});
}

static void hear_offer(ferry_scheduling *s, gradient *g, int source, uint32_t count)
{
    uint32_t want = underloaded(s, g) ? g->batch : 0;
    if (want > count)
        want = count;
    g->promised += want;
    g->promised_ns = ferry_scheduling_now(s);
    fy_policy_tell(s, source, TAKE, want, 0);
}

static void hear_take(ferry_scheduling *s, gradient *g, int source, uint32_t count)
{
    g->offered = false;
    for (; count > 0 && surplus(g) > 0 && ferry_scheduling_is_on(s); count--) {
        ferry_schedulable *item = g->waiting.last;
        fy_waiting_remove(&g->waiting, item);
        ferry_scheduling_migrate(s, item, source);
    }
    /* Some promised objects are no longer here: tells the other rank how many do not come. */
    if (count > 0)
        fy_policy_tell(s, source, TAKE, 0, count);
    offer(s, g);
}

static void add_neighbour(ferry_scheduling *s, gradient *g, int distance)
{
    int places = ferry_scheduling_acceptor_count(s) + 1;
    int rank = ferry_scheduling_acceptor(s, (distance % places + places) % places);
    bool known = rank < 0;
    for (int i = 0; i < g->neighbour_count; i++)
        known = known || g->neighbours[i] == rank;
    if (!known && g->neighbour_count < FY_NEIGHBOURS_MAX)
        g->neighbours[g->neighbour_count++] = rank;
}

static void choose_neighbours(ferry_scheduling *s, gradient *g)
{
    g->neighbour_count = 0;
    for (int i = 1; i <= g->each_side; i++) {
        add_neighbour(s, g, i);
        add_neighbour(s, g, -i);
    }
    for (int distance = 4; g->far && distance <= ferry_scheduling_acceptor_count(s); distance *= 2)
        add_neighbour(s, g, distance);
}

static int gradient_create(ferry_scheduling *s, void **out)
{
    gradient *g = fy_calloc(1, sizeof *g);
    if (g == NULL)
        return FERRY_ENOMEM;
    g->passed = fy_calloc((size_t)ferry_scheduling_ranks(s), sizeof *g->passed);
    if (g->passed == NULL) {
        free(g);
        return FERRY_ENOMEM;
    }
    g->low = (uint32_t)ferry_scheduling_count(s, "LOW", 0, 0, FY_OBJECTS_MAX);
    g->high = (uint32_t)ferry_scheduling_count(s, "HIGH", 0, 0, FY_OBJECTS_MAX);
    g->high = g->high < g->low ? g->low : g->high;
    g->batch = (uint32_t)ferry_scheduling_count(s, "BATCH", 1, 1, FY_OBJECTS_MAX);
    g->expire_ns = fy_policy_ns(s, "EXPIRE_US", 2e3, 1);
    g->pause_ns = g->expire_ns;
    g->nearest = -1;
    g->each_side = ferry_scheduling_count(s, "NEIGHBOURS", 4, 2, FY_NEIGHBOURS_MAX) / 2;
    g->far = ferry_scheduling_count(s, "FAR", 1, 0, 1) != 0;
    choose_neighbours(s, g);
    *out = g;
    return 0;
}

static void gradient_destroy(ferry_scheduling *s, void *arg)
{
    gradient *g = arg;
    free(g->passed);
    fy_policy_destroy(s, g);
}

static ferry_schedulable *gradient_next(ferry_scheduling *s, void *arg)
{
    gradient *g = arg;
    g->waiting.running = fy_waiting_pop(&g->waiting);
    announce(s, g);
    offer(s, g);
    return g->waiting.running;
}

static void gradient_notify(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    gradient *g = arg;
    if (!fy_waiting_add(&g->waiting, item))
        return;
    g->pause_ns = g->expire_ns;
    if (g->announced) {
        g->announced = false;
        ferry_scheduling_wake(s, 0);
    }
    offer(s, g);
}

static void gradient_activate(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    gradient *g = arg;
    if (item == g->waiting.running)
        g->waiting.running = NULL;
    if (item->arrived && g->promised > 0)
        g->promised--;
    gradient_notify(s, arg, item);
}

static void gradient_message(ferry_scheduling *s, void *arg, int source,
                             const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    gradient *g = arg;
    switch (words[0]) {
    case STATUS:
        if (words[1] < (uint64_t)ferry_scheduling_ranks(s) &&
            ferry_scheduling_accepts(s, (int)words[1]) && (uint32_t)words[2] < DISTANCE_MAX)
            hear_status(
                s, g, source, (int)words[1],
                (passed){.count = (uint32_t)(words[2] >> 32), .distance = (uint32_t)words[2]});
        break;
    case OFFER:
        hear_offer(s, g, source, (uint32_t)words[1]);
        break;
    case TAKE:
        if (words[2] != 0)
            g->promised -= words[2] < g->promised ? (uint32_t)words[2] : g->promised;
        else
            hear_take(s, g, source, (uint32_t)words[1]);
        break;
    default:
        break;
    }
}

/* This rank is still idle, and its last STATUS has expired on the other ranks: sends STATUS again.
 * A promise as old as this was not kept. */
static void gradient_wake(ferry_scheduling *s, void *arg)
{
    gradient *g = arg;
    if (g->promised > 0 &&
        ferry_scheduling_now(s) - g->promised_ns > fy_policy_timeout(s, 50 * g->expire_ns))
        g->promised = 0;
    g->announced = false;
    announce(s, g);
    if (!g->announced && g->waiting.running == NULL)
        ferry_scheduling_wake(s, ferry_scheduling_now(s) + fy_policy_timeout(s, g->expire_ns));
}

/* Ranks have come or gone. A rank that has gone does not answer an offer, and one that has come has
 * heard nothing of this rank. */
static void gradient_members(ferry_scheduling *s, void *arg)
{
    gradient *g = arg;
    choose_neighbours(s, g);
    g->nearest = g->nearest >= 0 && ferry_scheduling_accepts(s, g->nearest) ? g->nearest : -1;
    g->offered = g->announced = false;
    g->pause_ns = g->expire_ns;
    announce(s, g);
    offer(s, g);
}

const ferry_scheduler fy_scheduler_gradient = {
    .size = sizeof(ferry_scheduler),
    .name = "gradient",
    .create = gradient_create,
    .destroy = gradient_destroy,
    .next = gradient_next,
    .activate = gradient_activate,
    .notify = gradient_notify,
    .remove = fy_policy_remove,
    .empty = fy_policy_empty,
    .ahead = fy_policy_ahead,
    .message = gradient_message,
    .wake = gradient_wake,
    .members = gradient_members,
};
