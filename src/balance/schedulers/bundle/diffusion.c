/* Diffusion, receiver-initiated (prema.txt 5.4.2.2): a rank with little work asks a neighbourhood
 * for its loads and takes an object from the most loaded rank.
 *
 * A rank begins a round when its waiting load is THRESHOLD or less and it runs no task. It begins
 * earlier, while a task runs, if THRESHOLD is above 0, with START_AHEAD=1, and without preemption.
 *
 * - The rank sends QUERY to NEIGHBOURS ranks. Each answers LOAD.
 * - When all have answered, the rank sends REQUEST to the most loaded. That rank sends an object,
 *   or answers REFUSE. Then the rank asks the next most loaded.
 * - If no neighbour had work, the next NEIGHBOURS ranks are asked immediately. So all ranks are
 *   asked in time. If no rank had work, this rank pauses. The pauses grow up to BACKOFF_US.
 *
 * Answers carry the number of their round. After TIMEOUT_US a missing LOAD counts as 0, and a
 * missing answer to REQUEST as a round without work. Without preemption a neighbour answers when
 * its task ends. Then REQUEST goes to the first neighbour that has load, because waiting for all
 * would be waiting for the longest task. */
#include <stdlib.h>

#include "balance/schedulers/bundle/bundle.h"
#include "balance/schedulers/bundle/lists.h"
#include "balance/schedulers/bundle/neighbours.h"
#include "base/alloc.h"
#include "base/pause.h"

enum { QUERY, LOAD, REQUEST, REFUSE };
enum { BACKOFF_MIN_NS = 100 * 1000 };

typedef enum phase { IDLE, QUERYING, REQUESTING, RESTING } phase;

typedef struct neighbour {
    int rank;
    double load;
} neighbour;

typedef struct diffusion {
    fy_waiting_queue waiting;
    double threshold;
    bool start_ahead;
    uint64_t timeout_ns, backoff_ns, backoff_max_ns;

    phase phase;
    uint64_t round;
    fy_neighbours around;
    int seen; /* ranks found without work since this rank last had some */
    int awaited;
    int neighbour_count; /* of this round */
    neighbour neighbours[FY_NEIGHBOURS_MAX];
} diffusion;

static void diffusion_tell(ferry_scheduling *s, int rank, uint64_t what, uint64_t round,
                           double load)
{
    fy_policy_tell(s, rank, what, round, fy_word_of(load));
}

/* How many waiting objects this rank keeps for itself. */
static uint32_t kept(const diffusion *state)
{
    return state->waiting.running != NULL ? 0 : 1;
}

static bool underloaded(const ferry_scheduling *s, const diffusion *state)
{
    bool ahead = state->start_ahead || state->threshold > 0 || !ferry_scheduling_preempts(s);
    return fy_waiting_load(&state->waiting, false) <= state->threshold &&
           (state->waiting.running == NULL || ahead);
}

/* Steering may have chosen others since. */
static void read_chosen(ferry_scheduling *s, diffusion *state)
{
    state->around.most = fy_neighbours_most(s);
    state->threshold = ferry_scheduling_parameter(s, "THRESHOLD", 0, 0, FY_LOAD_MAX);
}

static void query(ferry_scheduling *s, diffusion *state)
{
    if (state->phase != IDLE || !ferry_scheduling_is_on(s) || !underloaded(s, state) ||
        ferry_scheduling_acceptor_count(s) == 0)
        return;
    read_chosen(s, state);
    int count = fy_neighbours_count(s, &state->around);
    state->phase = QUERYING;
    state->round++;
    state->awaited = state->neighbour_count = count;
    for (int i = 0; i < count; i++) {
        state->neighbours[i] = (neighbour){.rank = fy_neighbours_rank(s, &state->around, i)};
        diffusion_tell(s, state->neighbours[i].rank, QUERY, state->round, 0);
    }
    ferry_scheduling_wake(s, ferry_scheduling_now(s) + fy_policy_timeout(s, state->timeout_ns));
}

/* No neighbour had work: asks the next ones. If all ranks have been asked, pauses. */
static void replace_neighbours(ferry_scheduling *s, diffusion *state)
{
    ferry_scheduling_wake(s, 0);
    state->phase = IDLE;
    fy_neighbours_pass(s, &state->around);
    state->seen += state->neighbour_count;
    if (state->seen < ferry_scheduling_acceptor_count(s)) {
        query(s, state);
        return;
    }
    state->phase = RESTING;
    ferry_scheduling_wake(s, ferry_scheduling_now(s) + state->backoff_ns);
    state->backoff_ns = fy_pause_longer(state->backoff_ns, state->backoff_max_ns);
}

static void request(ferry_scheduling *s, diffusion *state)
{
    neighbour *best = &state->neighbours[0];
    for (int i = 1; i < state->neighbour_count; i++)
        if (state->neighbours[i].load > best->load)
            best = &state->neighbours[i];
    if (!(best->load > 0) || !underloaded(s, state)) {
        replace_neighbours(s, state);
        return;
    }
    state->phase = REQUESTING;
    best->load = 0;
    diffusion_tell(s, best->rank, REQUEST, state->round, 0);
    ferry_scheduling_wake(s, ferry_scheduling_now(s) + fy_policy_timeout(s, state->timeout_ns));
}

static void diffusion_add(ferry_scheduling *s, diffusion *state, ferry_schedulable *item)
{
    if (!fy_waiting_add(&state->waiting, item))
        return;
    state->seen = 0;
    state->backoff_ns = BACKOFF_MIN_NS;
    if (state->phase == RESTING) {
        state->phase = IDLE;
        ferry_scheduling_wake(s, 0);
    }
}

static int diffusion_create(ferry_scheduling *s, void **out)
{
    diffusion *state = fy_calloc(1, sizeof *state);
    if (state == NULL)
        return FERRY_ENOMEM;
    state->waiting.ordered = true;
    fy_neighbours_init(s, &state->around);
    read_chosen(s, state);
    state->start_ahead = ferry_scheduling_count(s, "START_AHEAD", 0, 0, 1) != 0;
    state->timeout_ns = fy_policy_ns(s, "TIMEOUT_US", 100e3, 1);
    state->backoff_max_ns = fy_policy_ns(s, "BACKOFF_US", 4e3, 1);
    state->backoff_ns = BACKOFF_MIN_NS;
    *out = state;
    return 0;
}

static ferry_schedulable *diffusion_next(ferry_scheduling *s, void *arg)
{
    diffusion *state = arg;
    state->waiting.running = fy_waiting_pop(&state->waiting);
    query(s, state);
    return state->waiting.running;
}

static void diffusion_activate(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    diffusion *state = arg;
    if (item == state->waiting.running)
        state->waiting.running = NULL;
    if (item->arrived && state->phase == REQUESTING) {
        state->phase = IDLE;
        ferry_scheduling_wake(s, 0);
    }
    diffusion_add(s, state, item);
}

static void diffusion_notify(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    diffusion_add(s, arg, item);
}

static void give(ferry_scheduling *s, diffusion *state, int source, uint64_t round)
{
    if (state->waiting.count <= kept(state) || !ferry_scheduling_is_on(s) ||
        !ferry_scheduling_accepts(s, source)) {
        diffusion_tell(s, source, REFUSE, round, 0);
        return;
    }
    ferry_schedulable *item = fy_waiting_heaviest(&state->waiting);
    fy_waiting_remove(&state->waiting, item);
    ferry_scheduling_migrate(s, item, source);
}

static void hear_load(ferry_scheduling *s, diffusion *state, int source, double load)
{
    for (int i = 0; i < state->neighbour_count; i++)
        if (state->neighbours[i].rank == source)
            state->neighbours[i].load = load;
    if (--state->awaited == 0 || (load > 0 && !ferry_scheduling_preempts(s)))
        request(s, state);
}

static void diffusion_message(ferry_scheduling *s, void *arg, int source,
                              const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    diffusion *state = arg;
    switch (words[0]) {
    case QUERY:
        diffusion_tell(s, source, LOAD, words[1],
                       fy_waiting_load(&state->waiting, kept(state) != 0));
        break;
    case LOAD:
        if (state->phase == QUERYING && words[1] == state->round)
            hear_load(s, state, source, fy_number_of(words[2]));
        break;
    case REQUEST:
        give(s, state, source, words[1]);
        break;
    case REFUSE:
        if (state->phase == REQUESTING && words[1] == state->round)
            request(s, state);
        break;
    default:
        break;
    }
}

static void diffusion_wake(ferry_scheduling *s, void *arg)
{
    diffusion *state = arg;
    if (state->phase == QUERYING) {
        request(s, state);
    } else if (state->phase == REQUESTING) {
        replace_neighbours(s, state);
    } else {
        state->phase = IDLE;
        query(s, state);
    }
}

/* Ranks have come or gone: starts anew. A rank that has gone answers no more, and one that has come
 * may have work. */
static void diffusion_members(ferry_scheduling *s, void *arg)
{
    diffusion *state = arg;
    state->phase = IDLE;
    state->seen = 0;
    state->backoff_ns = BACKOFF_MIN_NS;
    ferry_scheduling_wake(s, 0);
    query(s, state);
}

const ferry_scheduler fy_scheduler_diffusion = {
    .size = sizeof(ferry_scheduler),
    .name = "diffusion",
    .create = diffusion_create,
    .destroy = fy_policy_destroy,
    .next = diffusion_next,
    .activate = diffusion_activate,
    .notify = diffusion_notify,
    .remove = fy_policy_remove,
    .empty = fy_policy_empty,
    .ahead = fy_policy_ahead,
    .message = diffusion_message,
    .wake = diffusion_wake,
    .members = diffusion_members,
};
