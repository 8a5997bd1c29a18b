#include "contract.h"

#include <stdio.h>

enum { TAG = 77, WAKES = 3, PAUSE_NS = 1000 * 1000 };

contract contracts[CONTRACT_RANKS];

static void expect_at(contract *c, bool is, const char *text, int line)
{
    c->wrong += !is;
    if (!is)
        fprintf(stderr, "contract.c:%d: broken: %s\n", line, text);
}
#define expect(is) expect_at(c, (is), #is, __LINE__)

static int create(ferry_scheduling *s, void **state)
{
    int rank = ferry_scheduling_rank(s), ranks = ferry_scheduling_ranks(s);
    contract *c = &contracts[rank % CONTRACT_RANKS];
    *c = (contract){.wrong = 0};
    expect(rank >= 0 && rank < ranks && ferry_scheduling_acceptor_count(s) == ranks - 1);
    for (int distance = 1; distance < ranks; distance++)
        expect(ferry_scheduling_acceptor(s, distance) == (rank + distance) % ranks);
    expect(ferry_scheduling_acceptor(s, 0) == -1 && ferry_scheduling_acceptor(s, ranks) == -1);
    for (int other = -1; other <= ranks; other++)
        expect(ferry_scheduling_accepts(s, other) ==
               (other >= 0 && other < ranks && other != rank));
    expect(ferry_scheduling_count(s, "GIVEN", 1, 0, 9) == CONTRACT_GIVEN);
    expect(ferry_scheduling_parameter(s, "ABSENT", 1.5, 0, 9) == 1.5);
    expect(ferry_scheduling_random(s) != ferry_scheduling_random(s));
    *state = c;
    return 0;
}

static void destroy(ferry_scheduling *s, void *state)
{
    contract *c = state;
    (void)s;
    expect(c->running == NULL && c->first == NULL);
}

static void append(contract *c, ferry_schedulable *item)
{
    item->queued = true;
    item->next = NULL;
    item->prev = c->last;
    if (c->last == NULL)
        c->first = item;
    else
        c->last->next = item;
    c->last = item;
}

static void take_out(contract *c, ferry_schedulable *item)
{
    if (item->prev == NULL)
        c->first = item->next;
    else
        item->prev->next = item->next;
    if (item->next == NULL)
        c->last = item->prev;
    else
        item->next->prev = item->prev;
    item->queued = false;
}

static void say(ferry_scheduling *s, contract *c)
{
    const uint64_t words[FERRY_SCHEDULER_WORDS] = {TAG, (uint64_t)ferry_scheduling_rank(s),
                                                   UINT64_MAX};
    ferry_scheduling_send(s, ferry_scheduling_acceptor(s, 1), words);
    c->words_sent++;
}

static ferry_schedulable *next(ferry_scheduling *s, void *state)
{
    contract *c = state;
    uint64_t now = ferry_scheduling_now(s);
    expect(c->running == NULL && now > 0 && ferry_scheduling_now(s) >= now);
    if (c->wake_ns == 0 && c->wakes < WAKES) {
        ferry_scheduling_wake(s, now + 1); /* the later call counts */
        c->wake_ns = now + PAUSE_NS;
        ferry_scheduling_wake(s, c->wake_ns);
    }
    c->running = c->first;
    if (c->running != NULL) {
        take_out(c, c->running);
        c->ran++;
    }
    return c->running;
}

static void check(ferry_scheduling *s, contract *c, const ferry_schedulable *item)
{
    expect(item->load == CONTRACT_LOAD * (double)item->pending);
    expect(ferry_scheduling_priority(s, item, 0) == item->load);
    expect(ferry_scheduling_granularity(s, item) == 0);
}

/* Objects with several that wait before them go to the next rank, once: `mark` is the scheduler's
 * own, and 0 on each rank that an object comes to. */
static void add(ferry_scheduling *s, contract *c, ferry_schedulable *item)
{
    if (item->pending == 0)
        return;
    if (c->first != NULL && item->mark == 0 && !item->arrived && ferry_scheduling_is_on(s) &&
        ferry_scheduling_acceptor_count(s) > 0) {
        say(s, c);
        c->sent++;
        item->mark = 9;
        ferry_scheduling_migrate(s, item, ferry_scheduling_acceptor(s, 1));
        return;
    }
    item->mark = 1;
    append(c, item);
}

static void activate(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    contract *c = state;
    expect(!item->queued && (item->mark == 0 || !item->arrived));
    expect(item != c->running || !item->arrived);
    check(s, c, item);
    c->arrived += item->arrived;
    if (item == c->running)
        c->running = NULL;
    add(s, c, item);
}

static void notify(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    contract *c = state;
    expect(item != c->running && item->pending > 0 && !item->arrived);
    check(s, c, item);
    if (!item->queued)
        add(s, c, item);
}

static void leave(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    contract *c = state;
    (void)s;
    if (item->queued)
        take_out(c, item);
    if (item == c->running)
        c->running = NULL;
}

static bool empty(ferry_scheduling *s, void *state)
{
    (void)s;
    return ((contract *)state)->first == NULL;
}

static void message(ferry_scheduling *s, void *state, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    contract *c = state;
    expect(ferry_scheduling_accepts(s, source) && words[0] == TAG);
    expect(words[1] == (uint64_t)source && words[2] == UINT64_MAX);
    c->words_heard++;
}

static void wake(ferry_scheduling *s, void *state)
{
    contract *c = state;
    expect(c->wake_ns != 0 && ferry_scheduling_now(s) >= c->wake_ns);
    c->wake_ns = 0;
    c->wakes++;
}

const ferry_scheduler contract_scheduler = {.size = sizeof(ferry_scheduler),
                                            .name = "contract",
                                            .create = create,
                                            .destroy = destroy,
                                            .next = next,
                                            .activate = activate,
                                            .notify = notify,
                                            .remove = leave,
                                            .empty = empty,
                                            .message = message,
                                            .wake = wake};
