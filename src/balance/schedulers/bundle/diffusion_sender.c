/* Diffusion, sender-initiated (prema.txt 5.4.2.2): a rank with much work asks a neighbourhood for
 * its loads and sends an object to the least loaded rank.
 *
 * Waiting objects are kept by load. The heaviest is the next to run and the next to be sent. A
 * round begins at a new message or at the start of a task, if the waiting load exceeds HIGH.
 *
 * - The rank sends QUERY to NEIGHBOURS ranks. Each answers LOAD.
 * - When all have answered, or after TIMEOUT_US, the rank sends OFFER of its heaviest object to the
 *   least loaded neighbour, if the object and that load together are less than its own load.
 * - That neighbour answers TAKE, with yes or no. It says yes only if it then has less load than the
 *   sender. It counts the objects that it has promised to take. Otherwise all ranks that hear of an
 *   idle rank would send to it together.
 * - If no neighbour had room, the next NEIGHBOURS ranks are asked in the next round.
 *
 * With PING_US rounds also begin by the clock. So a rank in a long task learns that other ranks
 * have become idle. The longer the task has run, the longer are the pauses between rounds. Without
 * preemption a neighbour answers when its task ends. Then the object is sent without an offer. */
#include <stdlib.h>

#include "balance/schedulers/buckets.h"
#include "balance/schedulers/bundle/bundle.h"
#include "balance/schedulers/bundle/lists.h"
#include "balance/schedulers/bundle/neighbours.h"
#include "base/alloc.h"

enum { QUERY, LOAD, OFFER, TAKE };
enum { PING_PART = 16 };

typedef enum phase { IDLE, QUERYING, OFFERING } phase;

typedef struct sender {
    fy_buckets waiting;
    ferry_schedulable *running;
    double running_load;
    double high;
    uint64_t timeout_ns, ping_ns;

    uint64_t started_ns; /* of the running task */

    phase phase;
    uint64_t round;
    fy_neighbours around;
    int awaited;
    int least; /* the least loaded neighbour so far, or -1 */
    double least_load;

    double promised; /* load that this rank has promised to take */
    uint64_t promised_ns;
} sender;

static double load_of(const sender *state)
{
    return state->waiting.load + state->running_load;
}

/* Whether this rank has an object to give away. A rank that runs no task is about to run one, and
 * keeps that object. */
static bool overloaded(const sender *state)
{
    return state->waiting.load > state->high &&
           (state->running != NULL || state->waiting.count > 1);
}

static void query(ferry_scheduling *s, sender *state)
{
    int count = fy_neighbours_count(s, &state->around);
    if (state->phase != IDLE || !overloaded(state) || !ferry_scheduling_is_on(s) || count == 0)
        return;
    state->phase = QUERYING;
    state->round++;
    state->awaited = count;
    state->least = -1;
    for (int i = 0; i < count; i++)
        fy_policy_tell(s, fy_neighbours_rank(s, &state->around, i), QUERY, state->round, 0);
    ferry_scheduling_wake(s, ferry_scheduling_now(s) + state->timeout_ns);
}

/* Sends the heaviest object to `rank`, if this rank is still overloaded, and begins the next
 * round. */
static void send_heaviest(ferry_scheduling *s, sender *state, int rank)
{
    if (!overloaded(state) || !ferry_scheduling_is_on(s) || !ferry_scheduling_accepts(s, rank))
        return;
    ferry_schedulable *item = fy_buckets_last(&state->waiting);
    fy_buckets_remove(&state->waiting, item);
    ferry_scheduling_migrate(s, item, rank);
    query(s, state);
}

/* Ends the round. With PING_US the next begins by the clock. */
static void rest(ferry_scheduling *s, sender *state)
{
    uint64_t now_ns = ferry_scheduling_now(s), pause_ns = state->ping_ns;
    if (state->running != NULL && (now_ns - state->started_ns) / PING_PART > pause_ns)
        pause_ns = (now_ns - state->started_ns) / PING_PART;
    state->phase = IDLE;
    ferry_scheduling_wake(s, state->ping_ns != 0 ? now_ns + pause_ns : 0);
}

/* All neighbours have answered, or the time has passed. */
static void decide(ferry_scheduling *s, sender *state)
{
    const ferry_schedulable *item = fy_buckets_last(&state->waiting);
    rest(s, state);
    if (state->least >= 0 && overloaded(state) && ferry_scheduling_is_on(s) &&
        state->least_load + item->mark < load_of(state)) {
        if (!ferry_scheduling_preempts(s)) {
            send_heaviest(s, state, state->least);
            return;
        }
        state->phase = OFFERING;
        fy_policy_tell(s, state->least, OFFER, fy_word_of(load_of(state)), fy_word_of(item->mark));
        ferry_scheduling_wake(s, ferry_scheduling_now(s) + state->timeout_ns);
        return;
    }
    fy_neighbours_pass(s, &state->around);
}

/* Load that this rank has, or has promised to take. Promised objects that should have arrived by
 * now will not come. If messages came during a task, the time counts from its end. */
static double load_to_be(sender *state, uint64_t now_ns)
{
    bool since = state->started_ns > state->promised_ns;
    uint64_t since_ns = since ? state->started_ns : state->promised_ns;
    if ((state->running == NULL || since) && now_ns - since_ns > state->timeout_ns)
        state->promised = 0;
    return load_of(state) + state->promised;
}

/* `source`, which has `their_load`, offers an object of `load`. */
static void hear_offer(ferry_scheduling *s, sender *state, int source, double their_load,
                       double load)
{
    uint64_t now_ns = ferry_scheduling_now(s);
    bool take = load > 0 && load_to_be(state, now_ns) + load < their_load;
    if (take) {
        state->promised += load;
        state->promised_ns = now_ns;
    }
    fy_policy_tell(s, source, TAKE, take, 0);
}

/* The answer to an offer. A late answer counts too. */
static void hear_take(ferry_scheduling *s, sender *state, int source, bool take)
{
    if (state->phase == OFFERING && source == state->least)
        rest(s, state);
    if (take)
        send_heaviest(s, state, source);
}

static void hear_load(ferry_scheduling *s, sender *state, int source, double load)
{
    if (state->least < 0 || load < state->least_load) {
        state->least = source;
        state->least_load = load;
    }
    if (--state->awaited == 0)
        decide(s, state);
}

static void sender_destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    free(state);
}

static int sender_create(ferry_scheduling *s, void **out)
{
    sender *state = fy_calloc(1, sizeof *state);
    if (state == NULL)
        return FERRY_ENOMEM;
    fy_neighbours_init(s, &state->around);
    state->high = ferry_scheduling_parameter(s, "HIGH", 0, 0, FY_LOAD_MAX);
    state->timeout_ns = fy_policy_ns(s, "TIMEOUT_US", 100e3, 1);
    state->ping_ns = fy_policy_ns(s, "PING_US", 1e3, 0);
    *out = state;
    return 0;
}

static ferry_schedulable *sender_next(ferry_scheduling *s, void *arg)
{
    sender *state = arg;
    ferry_schedulable *item = fy_buckets_pop(&state->waiting);
    state->running = item;
    state->running_load = item != NULL ? item->load / item->pending : 0;
    if (item != NULL) {
        state->started_ns = ferry_scheduling_now(s);
        query(s, state);
    }
    return item;
}

static void sender_notify(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    sender *state = arg;
    if (fy_buckets_add(&state->waiting, item))
        query(s, state);
}

static void sender_activate(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    sender *state = arg;
    if (item == state->running) {
        state->running = NULL;
        state->running_load = 0;
    }
    if (item->arrived)
        state->promised = state->promised > item->load ? state->promised - item->load : 0;
    sender_notify(s, arg, item);
}

static void take_out(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    sender *state = arg;
    (void)s;
    fy_buckets_remove(&state->waiting, item);
    if (item == state->running) {
        state->running = NULL;
        state->running_load = 0;
    }
}

static bool empty(ferry_scheduling *s, void *arg)
{
    const sender *state = arg;
    (void)s;
    return state->waiting.count == 0;
}

static void sender_message(ferry_scheduling *s, void *arg, int source,
                           const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    sender *state = arg;
    switch (words[0]) {
    case QUERY:
        fy_policy_tell(s, source, LOAD, words[1],
                       fy_word_of(load_to_be(state, ferry_scheduling_now(s))));
        break;
    case LOAD:
        if (state->phase == QUERYING && words[1] == state->round)
            hear_load(s, state, source, fy_number_of(words[2]));
        break;
    case OFFER:
        hear_offer(s, state, source, fy_number_of(words[1]), fy_number_of(words[2]));
        break;
    case TAKE:
        hear_take(s, state, source, words[1] != 0);
        break;
    default:
        break;
    }
}

static void sender_wake(ferry_scheduling *s, void *arg)
{
    sender *state = arg;
    if (state->phase == QUERYING) {
        decide(s, state);
        return;
    }
    state->phase = IDLE; /* an offer without an answer has lapsed */
    query(s, state);
}

/* Ranks have come or gone: starts anew. A rank that has gone answers no more, and one that has come
 * may be idle. */
static void sender_members(ferry_scheduling *s, void *arg)
{
    sender *state = arg;
    state->phase = IDLE;
    ferry_scheduling_wake(s, 0);
    query(s, state);
}

const ferry_scheduler fy_scheduler_diffusion_sender = {
    .size = sizeof(ferry_scheduler),
    .name = "diffusion-sender",
    .create = sender_create,
    .destroy = sender_destroy,
    .next = sender_next,
    .activate = sender_activate,
    .notify = sender_notify,
    .remove = take_out,
    .empty = empty,
    .message = sender_message,
    .wake = sender_wake,
    .members = sender_members,
};
