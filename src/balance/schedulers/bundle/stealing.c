/* Stealing: a rank without work asks one other rank at a time (prema.txt 5.4.2.2).
 *
 * - The thief sends REQUEST to its victim. The victim sends an object or answers REFUSE. Then the
 *   thief asks the next victim, in an order that differs from rank to rank.
 * - A victim gives the heaviest of its waiting objects. If it runs a task, it gives its only
 *   waiting object too. If it runs none, it keeps one, which it is about to run.
 * - While tasks are short (below AHEAD_US) a thief asks already when its last task begins. A victim
 *   then gives several objects together, up to half of the waiting ones.
 * - A victim remembers the ranks that it refused. When it has more work than it runs, it sends HINT
 *   to as many of them. A rank that still has no work asks then. Another answers DECLINE, and the
 *   victim sends the HINT to the next. So new work reaches idle ranks immediately.
 *
 * Idle ranks that all others have refused need not ask again, since they get a HINT. They still
 * ask, one victim at a time, after pauses that grow up to BACKOFF_US. The reasons: a victim
 * remembers at most BEGGARS_MAX ranks, and a HINT may reach a thief that still waits for a slow
 * answer.
 *
 * If a victim cannot send the object, no answer comes. So a request without an answer counts as
 * refused after TIMEOUT_US. Requests carry a number, so a late refusal does not end a later
 * request. */
#include <stdlib.h>

#include "balance/schedulers/bundle/bundle.h"
#include "balance/schedulers/bundle/lists.h"
#include "base/alloc.h"
#include "base/pause.h"

enum { REQUEST, REFUSE, HINT, DECLINE };
enum { BEGGARS_MAX = 64, GIVE_MAX = 32 };

typedef struct stealing {
    fy_waiting_queue waiting;
    uint64_t started_ns; /* of the running task */
    uint64_t ahead_ns;
    uint64_t task_ns; /* how long the last task took */
    uint64_t timeout_ns;

    bool asked;
    bool resting; /* refused by all: a wake is due before the next request */
    uint64_t asked_ns;
    uint64_t request;
    uint64_t backoff_ns, backoff_max_ns;
    int victim;
    int stride; /* from victim to victim; has no common divisor with the number of ranks */
    int refusals;

    int beggars[BEGGARS_MAX]; /* ring of the ranks refused, oldest first */
    uint32_t beggar_first, beggar_count;
} stealing;

enum { BACKOFF_MIN_NS = 100 * 1000 };

static void stealing_tell(ferry_scheduling *s, int rank, uint64_t what, uint64_t request)
{
    fy_policy_tell(s, rank, what, request, 0);
}

static bool tasks_are_short(const stealing *state)
{
    return state->task_ns < state->ahead_ns;
}

/* Objects that may be given away: all that wait while a task runs, else all but the next. */
static uint32_t surplus(const stealing *state)
{
    uint32_t count = state->waiting.count;
    return state->waiting.running != NULL || count == 0 ? count : count - 1;
}

static bool hungry(const stealing *state)
{
    return state->waiting.count == 0 && (state->waiting.running == NULL || tasks_are_short(state));
}

static void next_victim(ferry_scheduling *s, stealing *state)
{
    int ranks = ferry_scheduling_ranks(s), left = ranks;
    do
        state->victim = (state->victim + state->stride) % ranks;
    while (!ferry_scheduling_accepts(s, state->victim) && --left > 0);
}

/* Steering may have chosen another one since. */
static uint64_t read_ahead(ferry_scheduling *s)
{
    return fy_policy_ns(s, "AHEAD_US", 200, 0);
}

static void stealing_ask(ferry_scheduling *s, stealing *state)
{
    if (state->asked || state->resting || !hungry(state) || !ferry_scheduling_is_on(s) ||
        ferry_scheduling_acceptor_count(s) == 0)
        return;
    if (!ferry_scheduling_accepts(s, state->victim))
        next_victim(s, state); /* it has gone since */
    state->ahead_ns = read_ahead(s);
    state->asked = true;
    state->asked_ns = ferry_scheduling_now(s);
    stealing_tell(s, state->victim, REQUEST, ++state->request);
    ferry_scheduling_wake(s, state->asked_ns + state->timeout_ns);
}

/* The victim has refused, or has not answered in time: asks the next. */
static void refused(ferry_scheduling *s, stealing *state)
{
    state->asked = false;
    ferry_scheduling_wake(s, 0);
    next_victim(s, state);
    if (++state->refusals < ferry_scheduling_acceptor_count(s)) {
        stealing_ask(s, state);
        return;
    }
    if (!hungry(state))
        return;
    state->resting = true;
    ferry_scheduling_wake(s, ferry_scheduling_now(s) + state->backoff_ns);
    state->backoff_ns = fy_pause_longer(state->backoff_ns, state->backoff_max_ns);
}

/* There is work again. When it has ended, this rank asks all others anew. */
static void fed(ferry_scheduling *s, stealing *state)
{
    state->refusals = 0;
    state->backoff_ns = BACKOFF_MIN_NS;
    if (state->resting) {
        state->resting = false;
        ferry_scheduling_wake(s, 0);
    }
}

static void remember(stealing *state, int rank)
{
    for (uint32_t i = 0; i < state->beggar_count; i++)
        if (state->beggars[(state->beggar_first + i) % BEGGARS_MAX] == rank)
            return;
    if (state->beggar_count == BEGGARS_MAX) {
        state->beggar_first = (state->beggar_first + 1) % BEGGARS_MAX;
        state->beggar_count--;
    }
    state->beggars[(state->beggar_first + state->beggar_count++) % BEGGARS_MAX] = rank;
}

/* Tells up to `count` beggars that there is work here. */
static void hint(ferry_scheduling *s, stealing *state, uint32_t count)
{
    for (; count > 0 && state->beggar_count > 0; count--, state->beggar_count--) {
        stealing_tell(s, state->beggars[state->beggar_first], HINT, 0);
        state->beggar_first = (state->beggar_first + 1) % BEGGARS_MAX;
    }
}

static void stealing_add(ferry_scheduling *s, stealing *state, ferry_schedulable *item)
{
    if (!fy_waiting_add(&state->waiting, item))
        return;
    fed(s, state);
    if (surplus(state) > 0)
        hint(s, state, 1);
}

static void give(ferry_scheduling *s, stealing *state, int thief, uint64_t request)
{
    uint32_t count = surplus(state);
    if (count == 0 || !ferry_scheduling_is_on(s) || !ferry_scheduling_accepts(s, thief)) {
        stealing_tell(s, thief, REFUSE, request);
        remember(state, thief);
        return;
    }
    count = tasks_are_short(state) ? (count + 1) / 2 : 1;
    if (count > GIVE_MAX)
        count = GIVE_MAX;
    for (; count > 0; count--) {
        ferry_schedulable *item = fy_waiting_heaviest(&state->waiting);
        fy_waiting_remove(&state->waiting, item);
        ferry_scheduling_migrate(s, item, thief);
    }
}

static void hinted(ferry_scheduling *s, stealing *state, int source)
{
    if (!hungry(state)) {
        stealing_tell(s, source, DECLINE, 0);
        return;
    }
    state->victim = source;
    state->refusals = 0;
    if (state->asked)
        return;
    state->resting = false;
    stealing_ask(s, state);
}

static int stealing_create(ferry_scheduling *s, void **out)
{
    stealing *state = fy_calloc(1, sizeof *state);
    if (state == NULL)
        return FERRY_ENOMEM;
    int ranks = ferry_scheduling_ranks(s);
    state->waiting.ordered = true;
    state->ahead_ns = read_ahead(s);
    state->timeout_ns = fy_policy_ns(s, "TIMEOUT_US", 100e3, 1);
    state->backoff_max_ns = fy_policy_ns(s, "BACKOFF_US", 10e3, 1);
    state->backoff_ns = BACKOFF_MIN_NS;
    state->task_ns = UINT64_MAX;
    state->stride = 1;
    state->victim = ferry_scheduling_rank(s);
    if (ranks > 1) {
        int a = 0;
        do {
            state->stride = 1 + (int)(ferry_scheduling_random(s) % (uint64_t)(ranks - 1));
            a = state->stride;
            for (int b = ranks; b != 0;) {
                int rest = a % b;
                a = b;
                b = rest;
            }
        } while (a != 1);
        next_victim(s, state);
    }
    *out = state;
    return 0;
}

static ferry_schedulable *stealing_next(ferry_scheduling *s, void *arg)
{
    stealing *state = arg;
    state->waiting.running = fy_waiting_pop(&state->waiting);
    if (state->waiting.running != NULL) {
        if (state->ahead_ns != 0)
            state->started_ns = ferry_scheduling_now(s);
        if (state->waiting.count > 0)
            hint(s, state, state->waiting.count);
    }
    stealing_ask(s, state);
    return state->waiting.running;
}

static void stealing_activate(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    stealing *state = arg;
    if (item == state->waiting.running) {
        state->waiting.running = NULL;
        if (state->ahead_ns != 0)
            state->task_ns = ferry_scheduling_now(s) - state->started_ns;
    }
    if (item->arrived && state->asked) {
        state->asked = false;
        ferry_scheduling_wake(s, 0);
    }
    stealing_add(s, state, item);
}

static void stealing_notify(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    stealing_add(s, arg, item);
}

static void stealing_message(ferry_scheduling *s, void *arg, int source,
                             const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    stealing *state = arg;
    switch (words[0]) {
    case REQUEST:
        give(s, state, source, words[1]);
        break;
    case REFUSE:
        if (state->asked && words[1] == state->request)
            refused(s, state);
        break;
    case HINT:
        hinted(s, state, source);
        break;
    case DECLINE:
        if (surplus(state) > 0)
            hint(s, state, 1);
        break;
    default:
        break;
    }
}

static void stealing_wake(ferry_scheduling *s, void *arg)
{
    stealing *state = arg;
    if (state->asked) {
        refused(s, state);
        return;
    }
    state->resting = false;
    stealing_ask(s, state);
}

/* Ranks have come or gone: starts anew. A rank that has gone answers no more, and one that has come
 * may have work. */
static void stealing_members(ferry_scheduling *s, void *arg)
{
    stealing *state = arg;
    state->refusals = 0;
    state->backoff_ns = BACKOFF_MIN_NS;
    state->resting = false;
    if (state->asked && !ferry_scheduling_accepts(s, state->victim))
        state->asked = false;
    if (!state->asked)
        ferry_scheduling_wake(s, 0);
    stealing_ask(s, state);
}

const ferry_scheduler fy_scheduler_stealing = {
    .size = sizeof(ferry_scheduler),
    .name = "stealing",
    .create = stealing_create,
    .destroy = fy_policy_destroy,
    .next = stealing_next,
    .activate = stealing_activate,
    .notify = stealing_notify,
    .remove = fy_policy_remove,
    .empty = fy_policy_empty,
    .ahead = fy_policy_ahead,
    .message = stealing_message,
    .wake = stealing_wake,
    .members = stealing_members,
};
