/* Diffusion, receiver-initiated (prema.txt 5.4.2.2): a rank with little work asks the loads of a
 * neighbourhood and takes an object from the most loaded.
 *
 * Load that waits at or below THRESHOLD starts it (0: nothing waits; START_AHEAD=1: also while the
 * last task runs; so it is without preemption). It sends QUERY to NEIGHBOURS ranks; when all have
 * sent LOAD, it sends REQUEST to the most loaded, which answers with an object, or with REFUSE;
 * then the next loaded is asked. A neighbourhood that had nothing is replaced by the next ranks at
 * once, so that all ranks are reached in time; when all had nothing, pauses grow up to BACKOFF_US.
 * Replies carry the number of their round; what is lost counts as nothing after TIMEOUT_US. Without
 * preemption the first that has load is asked: to wait for all would be to wait for the longest of
 * their tasks. */
#include <stdlib.h>

#include "balance/schedulers/schedulers.h"
#include "balance/schedulers/waiting.h"

enum { QUERY, LOAD, REQUEST, REFUSE };
enum { NEIGHBOURS_MAX = 64, BACKOFF_MIN_NS = 100 * 1000 };

typedef enum phase { IDLE, QUERYING, REQUESTING, RESTING } phase;

typedef struct neighbour {
    int rank;
    double load;
} neighbour;

typedef struct diffusion {
    fy_waiting waiting;
    ferry_schedulable *running;
    double threshold;
    bool start_ahead;
    uint64_t timeout_ns, backoff_ns, backoff_max_ns;

    phase phase;
    uint64_t round;
    int offset; /* the neighbourhood begins at this distance from the rank */
    int seen;   /* ranks that had nothing since there was work */
    int awaited;
    int neighbour_count;
    neighbour neighbours[NEIGHBOURS_MAX];
} diffusion;

static void tell(ferry_scheduling *s, int rank, uint64_t what, uint64_t round, double load)
{
    union {
        double number;
        uint64_t word;
    } as = {.number = load};
    const uint64_t words[FERRY_SCHEDULER_WORDS] = {what, round, as.word};
    ferry_scheduling_send(s, rank, words);
}

/* What could be given away. */
static uint32_t kept(const diffusion *state)
{
    return state->running != NULL ? 0 : 1;
}

static bool underloaded(const ferry_scheduling *s, const diffusion *state)
{
    bool ahead = state->start_ahead || state->threshold > 0 || !ferry_scheduling_preempts(s);
    return fy_waiting_load(&state->waiting, 0) <= state->threshold &&
           (state->running == NULL || ahead);
}

static void query(ferry_scheduling *s, diffusion *state)
{
    int ranks = ferry_scheduling_ranks(s);
    if (state->phase != IDLE || !ferry_scheduling_on(s) || ranks == 1 || !underloaded(s, state))
        return;
    state->phase = QUERYING;
    state->round++;
    state->awaited = state->neighbour_count;
    for (int i = 0; i < state->neighbour_count; i++) {
        int distance = 1 + (state->offset + i) % (ranks - 1);
        state->neighbours[i].rank = (ferry_scheduling_rank(s) + distance) % ranks;
        state->neighbours[i].load = 0;
        tell(s, state->neighbours[i].rank, QUERY, state->round, 0);
    }
    ferry_scheduling_wake(s, ferry_scheduling_now(s) + fy_patience(s, state->timeout_ns));
}

/* No neighbour had work: on to the next, or to rest when none was left out. */
static void replace_neighbours(ferry_scheduling *s, diffusion *state)
{
    int others = ferry_scheduling_ranks(s) - 1;
    ferry_scheduling_wake(s, 0);
    state->phase = IDLE;
    state->offset = (state->offset + state->neighbour_count) % others;
    state->seen += state->neighbour_count;
    if (state->seen < others) {
        query(s, state);
        return;
    }
    state->phase = RESTING;
    ferry_scheduling_wake(s, ferry_scheduling_now(s) + state->backoff_ns);
    state->backoff_ns *= 2;
    if (state->backoff_ns > state->backoff_max_ns)
        state->backoff_ns = state->backoff_max_ns;
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
    tell(s, best->rank, REQUEST, state->round, 0);
    ferry_scheduling_wake(s, ferry_scheduling_now(s) + fy_patience(s, state->timeout_ns));
}

static void add(ferry_scheduling *s, diffusion *state, ferry_schedulable *item)
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

static int create(ferry_scheduling *s, void **out)
{
    diffusion *state = calloc(1, sizeof *state);
    if (state == NULL)
        return FERRY_ENOMEM;
    int others = ferry_scheduling_ranks(s) - 1;
    double count = ferry_scheduling_parameter(s, "NEIGHBOURS", 4);
    count = count < 1 ? 1 : count > NEIGHBOURS_MAX ? NEIGHBOURS_MAX : count;
    state->neighbour_count = (int)count < others ? (int)count : others;
    state->threshold = ferry_scheduling_parameter(s, "THRESHOLD", 0);
    state->start_ahead = ferry_scheduling_parameter(s, "START_AHEAD", 0) != 0;
    state->timeout_ns = (uint64_t)(ferry_scheduling_parameter(s, "TIMEOUT_US", 100e3) * 1e3);
    state->backoff_max_ns = (uint64_t)(ferry_scheduling_parameter(s, "BACKOFF_US", 4e3) * 1e3);
    state->backoff_ns = BACKOFF_MIN_NS;
    if (others > 0)
        state->offset = (int)(ferry_scheduling_random(s) % (uint64_t)others);
    *out = state;
    return 0;
}

static void destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    free(state);
}

static ferry_schedulable *next(ferry_scheduling *s, void *arg)
{
    diffusion *state = arg;
    state->running = fy_waiting_pop(&state->waiting);
    query(s, state);
    return state->running;
}

static void activate(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    diffusion *state = arg;
    if (item == state->running)
        state->running = NULL;
    if (item->arrived && state->phase == REQUESTING) {
        state->phase = IDLE;
        ferry_scheduling_wake(s, 0);
    }
    add(s, state, item);
}

static void notify(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    add(s, arg, item);
}

static void take_out(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    diffusion *state = arg;
    (void)s;
    fy_waiting_remove(&state->waiting, item);
}

static bool empty(ferry_scheduling *s, void *arg)
{
    const diffusion *state = arg;
    (void)s;
    return state->waiting.count == 0;
}

static void give(ferry_scheduling *s, diffusion *state, int source, uint64_t round)
{
    if (state->waiting.count <= kept(state) || !ferry_scheduling_on(s)) {
        tell(s, source, REFUSE, round, 0);
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

static void message(ferry_scheduling *s, void *arg, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    diffusion *state = arg;
    union {
        uint64_t word;
        double number;
    } as = {.word = words[2]};
    switch (words[0]) {
    case QUERY:
        tell(s, source, LOAD, words[1], fy_waiting_load(&state->waiting, kept(state)));
        break;
    case LOAD:
        if (state->phase == QUERYING && words[1] == state->round)
            hear_load(s, state, source, as.number);
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

static void wake(ferry_scheduling *s, void *arg)
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

const ferry_scheduler fy_scheduler_diffusion = {
    .size = sizeof(ferry_scheduler),
    .name = "diffusion",
    .create = create,
    .destroy = destroy,
    .next = next,
    .activate = activate,
    .notify = notify,
    .remove = take_out,
    .empty = empty,
    .message = message,
    .wake = wake,
};
