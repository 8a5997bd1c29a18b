/* Steer: a scheduler around another one, which chooses the quantum, parameters of that scheduler,
 * and the scheduler, while the program runs (FERRY_STEER; docs/model.md, "Steering").
 *
 * The other scheduler gets every call and decides everything. Steering looks on. It times the tasks
 * of this rank, counts the words of other ranks that came while a task ran, and reads what the
 * helper thread has cost. Each rank chooses the quantum and the parameters (tune.c) for itself.
 * Rank 0 chooses the scheduler between phases (phase.c).
 *
 * With a quantum q, a task of length t is interrupted t / q times, and each look of the helper
 * takes c from it. Each word waits q / 2, and so does the idle rank behind it. So a words during
 * the time t cost least with q = sqrt(2 c t / a). A rank that gets no words cannot tell when one
 * comes. So its quantum grows to 1/200 of a task of the heavy class of the model, and the first
 * word waits for 1/400 of such a task. The quantum is never less than at the start: words that
 * nobody waits for count too, so the formula errs towards less. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balance/steer/inside.h"
#include "balance/steer/root.h"
#include "balance/steer/steer.h"
#include "base/alloc.h"
#include "base/env.h"
#include "core/fail.h"

enum { LOOKS_MIN = 128, PART_OF_TASK = 200, GROWTH = 8 };
enum { SAMPLED_BELOW_NS = 10 * 1000, SAMPLE = 16 };

void fy_steer_tell(ferry_scheduling *s, fy_steer_state *t, const char *format, ...)
{
    size_t room = FY_STEER_TOLD_BYTES - t->told_bytes;
    char text[FY_STEER_TOLD_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    int length = snprintf(t->told + t->told_bytes, room, "steer %llu %s\n",
                          (unsigned long long)ferry_scheduling_now(s), text);
    if (length > 0 && (size_t)length < room)
        t->told_bytes += (size_t)length;
    else
        t->told[t->told_bytes] = '\0';
}

/* Keeps at most FY_STEER_TIMES_MAX: when they are full, every other one goes. */
static void times_add(fy_steer_times *t, uint64_t ns)
{
    t->mean_ns = t->mean_ns == 0 ? ns : (7 * t->mean_ns + ns) / 8;
    if (++t->skipped < t->stride)
        return;
    t->skipped = 0;
    if (t->count == FY_STEER_TIMES_MAX) {
        for (uint32_t i = 0; i < FY_STEER_TIMES_MAX / 2; i++)
            t->seconds[i] = t->seconds[2 * i + 1];
        t->count = FY_STEER_TIMES_MAX / 2;
        t->stride *= 2;
    }
    t->seconds[t->count++] = (double)ns * 1e-9;
}

int fy_steer_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

fy_fit fy_steer_fit(const fy_steer_times *t)
{
    double sorted[FY_STEER_TIMES_MAX], total = 0;
    memcpy(sorted, t->seconds, t->count * sizeof *sorted);
    qsort(sorted, t->count, sizeof *sorted, fy_steer_compare);
    for (uint32_t i = 0; i < t->count; i++)
        total += sorted[i];
    return fy_fit_classes(sorted, t->count, total);
}

static double less_of(double a, double b)
{
    return a < b ? a : b;
}

/* The quantum that costs least, by what was seen since the last choice. */
static double best_quantum(const fy_steer_state *t, double look_ns, const fy_fit *fit)
{
    double usual = (double)t->usual_ns, best = fit->alpha * 1e9 / PART_OF_TASK;
    if (t->words >= 1)
        best = less_of(best, fy_root_of(2 * look_ns * t->busy_ns / t->words));
    best = less_of(best, GROWTH * (double)t->quantum_ns);
    return best > usual ? best : usual;
}

static void choose(ferry_scheduling *s, fy_steer_state *t)
{
    /* relaxed: a count */
    double helper_ns = (double)atomic_load_explicit(&s->helper_ns, memory_order_relaxed);
    if (t->busy_ns < LOOKS_MIN * (double)t->quantum_ns || helper_ns <= 0 || t->times.count == 0)
        return;
    fy_fit fit = fy_steer_fit(&t->times);
    double look_ns = helper_ns / t->looks, best = best_quantum(t, look_ns, &fit);
    double change = best / (double)t->quantum_ns;
    if (change > 1.25 || change < 0.8) {
        t->quantum_ns = (uint64_t)best;
        (void)s->port->ops->host.quantum(s->port, t->quantum_ns);
        fy_steer_tell(
            s, t,
            "quantum %.0f us: a look takes %.2f us, %.1f words in %.0f ms of tasks, heavy ones of "
            "%.3g ms",
            best * 1e-3, look_ns * 1e-3, t->words, t->busy_ns * 1e-6, fit.alpha * 1e3);
    }
    t->busy_ns /= 2;
    t->words /= 2;
}

static void start_clock(ferry_scheduling *s, fy_steer_state *t, const ferry_schedulable *item)
{
    uint64_t mean_ns = t->times.mean_ns;
    bool known = mean_ns != 0 && mean_ns < SAMPLED_BELOW_NS && ++t->unmeasured < SAMPLE;
    double load = item->load / (item->pending > 0 ? item->pending : 1);
    t->choice.load = t->times.mean_ns == 0 ? load : (7 * t->choice.load + load) / 8;
    t->running = item;
    t->started_ns = known ? 0 : ferry_scheduling_now(s);
}

static void stop_clock(ferry_scheduling *s, fy_steer_state *t)
{
    uint64_t took_ns = t->times.mean_ns;
    t->running = NULL;
    if (t->started_ns != 0) {
        took_ns = ferry_scheduling_now(s) - t->started_ns + 1;
        t->unmeasured = 0;
        times_add(&t->times, took_ns);
    }
    t->phases.tasks++;
    t->phases.busy_s += (double)took_ns * 1e-9;
    fy_steer_choose(s, t);
    if (t->usual_ns == 0)
        return;
    t->busy_ns += (double)took_ns;
    t->looks += (double)took_ns / (double)t->quantum_ns;
    choose(s, t);
}

static void look_at_port(const ferry_scheduling *s, fy_steer_state *t)
{
    const fy_port_ops *ops = s->port->ops;
    t->usual_ns = ops->host.quantum == NULL ? 0 : ops->host.quantum(s->port, 0);
    t->quantum_ns = t->usual_ns;
    t->why_not = "messages wake the helper thread here";
    if (t->usual_ns == 0 || fy_env_get("FERRY_QUANTUM_US") == NULL)
        return;
    t->why_not = "FERRY_QUANTUM_US is set";
    t->usual_ns = 0;
}

static int steer_create(ferry_scheduling *s, void **out)
{
    fy_steer_state *t = fy_calloc(1, sizeof *t);
    if (t == NULL)
        return FERRY_ENOMEM;
    int error = s->steered.create(s, &t->state);
    if (error != 0)
        goto free_state;
    error = fy_phases_open(s, t);
    if (error != 0)
        goto destroy_steered;
    t->times.stride = 1;
    t->answers.rank = -1;
    t->choice.neighbours = t->choice.threshold = t->choice.short_us = -1;
    t->choice.ahead_us = 0; /* until tasks are known to be short */
    look_at_port(s, t);
    s->told = t->told;
    s->tuned = fy_steer_chosen;
    *out = t;
    return 0;
destroy_steered:
    s->steered.destroy(s, t->state);
free_state:
    free(t);
    return error;
}

/* Logs a line of what rank 0 has seen and chosen. */
static void sum_up(const ferry_scheduling *s, const fy_steer_state *t)
{
    char quantum[128];
    fy_fit fit = {0};
    if (t->times.count != 0)
        fit = fy_steer_fit(&t->times);
    if (t->usual_ns == 0)
        (void)snprintf(quantum, sizeof quantum, "no quantum to choose: %s", t->why_not);
    else
        (void)snprintf(quantum, sizeof quantum, "quantum %.0f us, %.0f us at the start",
                       (double)t->quantum_ns * 1e-3, (double)t->usual_ns * 1e-3);
    fy_log(
        s->f,
        "steering: scheduler %s; %u tasks here, light ones of %.3g ms, heavy ones of %.3g ms; %s",
        s->steered.name, t->times.count, fit.beta * 1e3, fit.alpha * 1e3, quantum);
}

static void steer_destroy(ferry_scheduling *s, void *state)
{
    fy_steer_state *t = state;
    if (s->rank == 0)
        sum_up(s, t);
    s->told = "";
    s->tuned = NULL;
    s->steered.destroy(s, t->state);
    fy_phases_close(t);
    free(t);
}

/* The scheduler, which had nothing to answer, may have asked a rank. */
static void look_for_question(ferry_scheduling *s, fy_steer_state *t, uint32_t before)
{
    fy_steer_answers *a = &t->answers;
    if (a->rank >= 0 || t->running != NULL || s->note_count <= before)
        return;
    a->rank = s->notes[s->note_first + before].rank;
    a->asked_ns = ferry_scheduling_now(s);
}

static void answered(ferry_scheduling *s, fy_steer_answers *a)
{
    a->rank = -1;
    a->seconds[a->count++ % FY_STEER_ANSWERS_MAX] =
        (double)(ferry_scheduling_now(s) - a->asked_ns) * 1e-9;
}

static ferry_schedulable *steer_next(ferry_scheduling *s, void *state)
{
    fy_steer_state *t = state;
    fy_phases_look(s, t);
    uint32_t before = s->note_count;
    ferry_schedulable *item = s->steered.next(s, t->state);
    fy_phases_stamp(s, t, before);
    look_for_question(s, t, before);
    if (item != NULL)
        start_clock(s, t, item);
    return item;
}

static void steer_activate(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    fy_steer_state *t = state;
    if (item == t->running)
        stop_clock(s, t);
    if (item->arrived) {
        t->choice.taken++;
        if (t->answers.rank >= 0)
            answered(s, &t->answers); /* by an object */
    }
    uint32_t before = s->note_count;
    s->steered.activate(s, t->state, item);
    fy_phases_stamp(s, t, before);
}

static void steer_notify(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    fy_steer_state *t = state;
    uint32_t before = s->note_count;
    s->steered.notify(s, t->state, item);
    fy_phases_stamp(s, t, before);
}

static void take_out(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    fy_steer_state *t = state;
    if (item == t->running)
        stop_clock(s, t);
    uint32_t before = s->note_count;
    s->steered.remove(s, t->state, item);
    fy_phases_stamp(s, t, before);
}

static bool empty(ferry_scheduling *s, void *state)
{
    fy_steer_state *t = state;
    return s->steered.empty(s, t->state);
}

static void steer_message(ferry_scheduling *s, void *state, int source,
                          const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    fy_steer_state *t = state;
    if (!fy_phases_hear(s, t, source, words))
        return;
    if (source == t->answers.rank)
        answered(s, &t->answers);
    t->words += t->running != NULL;
    uint32_t before = s->note_count;
    s->steered.message(s, t->state, source, words);
    fy_phases_stamp(s, t, before);
}

static void steer_wake(ferry_scheduling *s, void *state)
{
    fy_steer_state *t = state;
    uint32_t before = s->note_count;
    if (s->steered.wake != NULL)
        s->steered.wake(s, t->state);
    fy_phases_stamp(s, t, before);
    look_for_question(s, t, before);
}

static void steer_members(ferry_scheduling *s, void *state)
{
    fy_steer_state *t = state;
    uint32_t before = s->note_count;
    if (s->steered.members != NULL)
        s->steered.members(s, t->state);
    fy_phases_stamp(s, t, before);
}

static ferry_schedulable *ahead(ferry_scheduling *s, void *state, const ferry_schedulable *after)
{
    fy_steer_state *t = state;
    return s->steered.ahead != NULL ? s->steered.ahead(s, t->state, after) : NULL;
}

const fy_steer fy_steering = {
    .version = FY_STEER_VERSION,
    .scheduler =
        {
            .size = sizeof(ferry_scheduler),
            .name = "steer",
            .create = steer_create,
            .destroy = steer_destroy,
            .next = steer_next,
            .activate = steer_activate,
            .notify = steer_notify,
            .remove = take_out,
            .empty = empty,
            .message = steer_message,
            .wake = steer_wake,
            .members = steer_members,
            .ahead = ahead,
        },
};
