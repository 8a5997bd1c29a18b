#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "balance/schedulers/schedulers.h"

static const char *given; /* the parameters, while a world is opened */

int ferry_scheduling_rank(const ferry_scheduling *s)
{
    return s->rank;
}

int ferry_scheduling_ranks(const ferry_scheduling *s)
{
    return s->w->ranks;
}

bool ferry_scheduling_accepts(const ferry_scheduling *s, int rank)
{
    return rank >= 0 && rank < s->w->ranks && rank != s->rank;
}

int ferry_scheduling_acceptor_count(const ferry_scheduling *s)
{
    return s->w->ranks - 1;
}

int ferry_scheduling_acceptor(const ferry_scheduling *s, int distance)
{
    return distance < 1 || distance >= s->w->ranks ? -1 : (s->rank + distance) % s->w->ranks;
}

uint64_t ferry_scheduling_now(const ferry_scheduling *s)
{
    return s->w->now_ns;
}

uint64_t ferry_scheduling_move_ns(const ferry_scheduling *s)
{
    return s->w->move_ns;
}

uint64_t fy_scheduling_word_ns(ferry_scheduling *s)
{
    return s->w->word_ns;
}

uint64_t fy_scheduling_taken_ns(const ferry_scheduling *s)
{
    return s->w->taken_ns;
}

uint64_t fy_scheduling_travel_ns(ferry_scheduling *s, uint64_t task_ns, uint32_t *away)
{
    (void)task_ns;
    const world *w = s->w;
    *away = 0;
    for (const mail *m = w->mail + w->delivered; m < w->mail + w->sent; m++)
        *away += m->object != NULL && m->from == s->rank;
    return w->travel_ns;
}

bool ferry_scheduling_is_on(const ferry_scheduling *s)
{
    return s->w->on;
}

bool ferry_scheduling_preempts(const ferry_scheduling *s)
{
    return s->w->preempts;
}

uint64_t ferry_scheduling_random(ferry_scheduling *s)
{
    s->w->random = s->w->random * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return s->w->random >> 33;
}

double ferry_scheduling_parameter(ferry_scheduling *s, const char *name, double otherwise,
                                  double low, double high)
{
    size_t length = strlen(name);
    double value = otherwise;
    (void)s;
    for (const char *at = given; (at = strstr(at, name)) != NULL; at += length)
        if ((at == given || at[-1] == ' ') && at[length] == '=')
            value = strtod(at + length + 1, NULL);
    assert_true(value >= low && value <= high);
    return value;
}

int ferry_scheduling_count(ferry_scheduling *s, const char *name, int otherwise, int low, int high)
{
    return (int)ferry_scheduling_parameter(s, name, otherwise, low, high);
}

static mail *post(ferry_scheduling *s, int rank)
{
    world *w = s->w;
    assert_true(ferry_scheduling_accepts(s, rank) && w->sent < WORLD_MAIL);
    mail *m = &w->mail[w->sent++];
    m->from = s->rank;
    m->to = rank;
    return m;
}

void ferry_scheduling_send(ferry_scheduling *s, int rank,
                           const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    memcpy(post(s, rank)->words, words, sizeof(uint64_t) * FERRY_SCHEDULER_WORDS);
}

void fy_scheduling_tell(ferry_scheduling *s, int rank, const uint64_t words[FERRY_SCHEDULER_WORDS],
                        bool quietly)
{
    ferry_scheduling_send(s, rank, words);
    s->w->mail[s->w->sent - 1].quiet = quietly;
}

void fy_scheduling_hurry(ferry_scheduling *s)
{
    (void)s;
}

double ferry_scheduling_priority(ferry_scheduling *s, const ferry_schedulable *item, int rank)
{
    const thing *t = (const thing *)(const void *)item;
    (void)s;
    return t->choosy ? t->priorities[rank] : item->load;
}

double ferry_scheduling_granularity(ferry_scheduling *s, const ferry_schedulable *item)
{
    (void)s, (void)item;
    return 0;
}

void ferry_scheduling_migrate(ferry_scheduling *s, ferry_schedulable *item, int rank)
{
    thing *t = (thing *)(void *)item;
    assert_true(s->w->on && t->rank == s->rank && !item->queued && item != s->running);
    t->rank = -1;
    post(s, rank)->object = t;
}

void ferry_scheduling_wake(ferry_scheduling *s, uint64_t time_ns)
{
    s->wake_ns = time_ns;
}

world *world_open(const ferry_scheduler *policy, int ranks, const char *parameters)
{
    assert_in_range(ranks, 1, WORLD_RANKS);
    world *w = calloc(1, sizeof *w);
    *w = (world){.policy = policy, .ranks = ranks, .now_ns = 1000, .on = true, .preempts = true};
    given = parameters;
    for (int i = 0; i < ranks; i++) {
        w->of[i] = (ferry_scheduling){.w = w, .rank = i};
        assert_int_equal(policy->create(&w->of[i], &w->of[i].state), 0);
    }
    return w;
}

void world_close(world *w)
{
    for (int i = 0; i < w->ranks; i++)
        w->policy->destroy(&w->of[i], w->of[i].state);
    free(w);
}

static thing *enter(world *w, thing *t)
{
    assert_in_range(++w->thing_count, 1, WORLD_ITEMS);
    w->policy->activate(&w->of[t->rank], w->of[t->rank].state, &t->item);
    return t;
}

thing *world_add(world *w, int rank, double load)
{
    thing *t = &w->things[w->thing_count];
    *t = (thing){.rank = rank, .item = {.load = load, .pending = 1}};
    return enter(w, t);
}

void world_again(world *w, thing *t)
{
    ferry_scheduling *s = &w->of[t->rank];
    t->item.pending++;
    t->item.load++;
    w->policy->notify(s, s->state, &t->item);
}

thing *world_add_choosy(world *w, int rank, const double *priorities)
{
    thing *t = &w->things[w->thing_count];
    *t = (thing){.rank = rank, .item = {.load = 1, .pending = 1}, .choosy = true};
    memcpy(t->priorities, priorities, (size_t)w->ranks * sizeof *priorities);
    return enter(w, t);
}

ferry_schedulable *world_run(world *w, int rank)
{
    ferry_scheduling *s = &w->of[rank];
    assert_null(s->running);
    s->running = w->policy->next(s, s->state);
    return s->running;
}

void world_end(world *w, int rank)
{
    ferry_scheduling *s = &w->of[rank];
    ferry_schedulable *item = s->running;
    assert_non_null(item);
    item->pending = 0;
    item->load = 0;
    s->running = NULL;
    w->policy->activate(s, s->state, item);
}

void world_occupy(world *w, int rank, int count)
{
    for (int i = 1; i <= count; i++)
        world_add(w, rank, i);
    assert_non_null(world_run(w, rank));
}

void world_run_last(world *w, int rank)
{
    world_end(w, rank);
    assert_null(world_run(w, rank));
}

void world_deliver(world *w)
{
    const mail m = w->mail[w->delivered++];
    ferry_scheduling *s = &w->of[m.to];
    assert_true(w->delivered <= w->sent);
    if (m.object == NULL) {
        w->policy->message(s, s->state, m.from, m.words);
        return;
    }
    m.object->rank = m.to;
    m.object->item.arrived = true;
    m.object->item.mark = 0; /* as in each new place */
    w->policy->activate(s, s->state, &m.object->item);
    m.object->item.arrived = false;
}

void world_deliver_all(world *w)
{
    while (w->delivered < w->sent)
        world_deliver(w);
}

void world_wake(world *w, int rank)
{
    ferry_scheduling *s = &w->of[rank];
    assert_true(s->wake_ns != 0);
    w->now_ns = s->wake_ns > w->now_ns ? s->wake_ns : w->now_ns;
    s->wake_ns = 0;
    w->policy->wake(s, s->state);
}

int world_words(const world *w, int since, uint64_t what, int from, int to)
{
    int count = 0;
    for (const mail *m = &w->mail[since]; m < &w->mail[w->sent]; m++)
        count += m->object == NULL && m->words[0] == what && (from < 0 || m->from == from) &&
                 (to < 0 || m->to == to);
    return count;
}

int world_moves(const world *w, int since, int from, int to)
{
    int count = 0;
    for (const mail *m = &w->mail[since]; m < &w->mail[w->sent]; m++)
        count += m->object != NULL && (from < 0 || m->from == from) && (to < 0 || m->to == to);
    return count;
}

const uint64_t *world_said(const world *w, uint64_t what, int from, int to)
{
    for (const mail *m = &w->mail[w->sent]; m-- > w->mail;)
        if (m->object == NULL && m->words[0] == what && m->from == from && (to < 0 || m->to == to))
            return m->words;
    return NULL;
}

void world_run_for(world *w, int rank, uint64_t ns)
{
    assert_non_null(world_run(w, rank));
    w->now_ns += ns;
    world_end(w, rank);
}

void world_begin_with(world *w, int rank, int count, double load)
{
    for (int i = 0; i < count; i++)
        world_add(w, rank, load);
    assert_non_null(world_run(w, rank));
}
