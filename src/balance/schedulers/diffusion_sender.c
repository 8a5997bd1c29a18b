/* Diffusion, sender-initiated (prema.txt 5.4.2.2): a rank with much work asks the loads of a
 * neighbourhood and sends an object to the least loaded.
 *
 * Objects are kept by load, the heaviest first, to run as to be sent. When what waits exceeds HIGH,
 * at a new message or at the start of a task, QUERY goes to NEIGHBOURS ranks; when all have sent
 * LOAD, or TIMEOUT_US have passed, the heaviest object goes to the least loaded, if that then still
 * has less than this rank; and the next round begins. A neighbourhood in which none had room is
 * replaced by the next ranks. With PING_US the rounds also begin by the clock, so that a rank in a
 * long task hears that others have become idle. */
#include <stdlib.h>

#include "balance/schedulers/ladder.h"
#include "balance/schedulers/schedulers.h"

enum { QUERY, LOAD };
enum { NEIGHBOURS_MAX = 64 };

typedef struct sender {
    fy_ladder waiting;
    ferry_schedulable *running;
    double running_load;
    double high;
    uint64_t timeout_ns, ping_ns;

    bool querying;
    uint64_t round;
    int offset; /* the neighbourhood begins at this distance from the rank */
    int neighbour_count, awaited;
    int least; /* the least loaded that has answered, or -1 */
    double least_load;
} sender;

static void tell(ferry_scheduling *s, int rank, uint64_t what, uint64_t round, double load)
{
    union {
        double number;
        uint64_t word;
    } as = {.number = load};
    const uint64_t words[FERRY_SCHEDULER_WORDS] = {what, round, as.word};
    ferry_scheduling_send(s, rank, words);
}

static double load_of(const sender *state)
{
    return state->waiting.load + state->running_load;
}

/* What may leave is what waits; a rank that runs nothing is about to run one. */
static bool overloaded(const sender *state)
{
    return state->waiting.load > state->high &&
           (state->running != NULL || state->waiting.count > 1);
}

static void query(ferry_scheduling *s, sender *state)
{
    int ranks = ferry_scheduling_ranks(s);
    if (state->querying || !overloaded(state) || !ferry_scheduling_on(s) || ranks == 1)
        return;
    state->querying = true;
    state->round++;
    state->awaited = state->neighbour_count;
    state->least = -1;
    for (int i = 0; i < state->neighbour_count; i++) {
        int distance = 1 + (state->offset + i) % (ranks - 1);
        tell(s, (ferry_scheduling_rank(s) + distance) % ranks, QUERY, state->round, 0);
    }
    ferry_scheduling_wake(s, ferry_scheduling_now(s) + state->timeout_ns);
}

/* All answers are there, or will not come. */
static void decide(ferry_scheduling *s, sender *state)
{
    ferry_schedulable *item = fy_ladder_last(&state->waiting);
    state->querying = false;
    ferry_scheduling_wake(s, state->ping_ns != 0 ? ferry_scheduling_now(s) + state->ping_ns : 0);
    if (state->least >= 0 && overloaded(state) && ferry_scheduling_on(s) &&
        state->least_load + item->mark < load_of(state)) {
        fy_ladder_remove(&state->waiting, item);
        ferry_scheduling_migrate(s, item, state->least);
        query(s, state);
        return;
    }
    int others = ferry_scheduling_ranks(s) - 1;
    state->offset = (state->offset + state->neighbour_count) % others;
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

static int create(ferry_scheduling *s, void **out)
{
    sender *state = calloc(1, sizeof *state);
    if (state == NULL)
        return FERRY_ENOMEM;
    int others = ferry_scheduling_ranks(s) - 1;
    double count = ferry_scheduling_parameter(s, "NEIGHBOURS", 4);
    count = count < 1 ? 1 : count > NEIGHBOURS_MAX ? NEIGHBOURS_MAX : count;
    state->neighbour_count = (int)count < others ? (int)count : others;
    state->high = ferry_scheduling_parameter(s, "HIGH", 0);
    state->timeout_ns = (uint64_t)(ferry_scheduling_parameter(s, "TIMEOUT_US", 100e3) * 1e3);
    state->ping_ns = (uint64_t)(ferry_scheduling_parameter(s, "PING_US", 1e3) * 1e3);
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
    sender *state = arg;
    ferry_schedulable *item = fy_ladder_pop(&state->waiting);
    state->running = item;
    state->running_load = item != NULL ? item->load / item->pending : 0;
    if (item != NULL)
        query(s, state);
    return item;
}

static void notify(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    sender *state = arg;
    if (fy_ladder_add(&state->waiting, item))
        query(s, state);
}

static void activate(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    sender *state = arg;
    if (item == state->running) {
        state->running = NULL;
        state->running_load = 0;
    }
    notify(s, arg, item);
}

static void take_out(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    sender *state = arg;
    (void)s;
    fy_ladder_remove(&state->waiting, item);
}

static bool empty(ferry_scheduling *s, void *arg)
{
    const sender *state = arg;
    (void)s;
    return state->waiting.count == 0;
}

static void message(ferry_scheduling *s, void *arg, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    sender *state = arg;
    union {
        uint64_t word;
        double number;
    } as = {.word = words[2]};
    if (words[0] == QUERY)
        tell(s, source, LOAD, words[1], load_of(state));
    else if (words[0] == LOAD && state->querying && words[1] == state->round)
        hear_load(s, state, source, as.number);
}

static void wake(ferry_scheduling *s, void *arg)
{
    sender *state = arg;
    if (state->querying)
        decide(s, state);
    else
        query(s, state);
}

const ferry_scheduler fy_scheduler_diffusion_sender = {
    .size = sizeof(ferry_scheduler),
    .name = "diffusion-sender",
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
