/* Measure: what the default scheduler learns from the tasks of its rank: how long they take,
 * whether they come in steps, and how long an answer of another rank takes. */
#ifndef FY_MEASURE_H
#define FY_MEASURE_H

#include "balance/schedulers/schedulers.h"

/* Tasks that take less are tiny: a word to another rank and its answer take longer. */
enum { FY_MEASURE_TINY_NS = 10 * 1000 };

typedef struct fy_measure {
    uint64_t short_ns;   /* tasks that take less are short */
    uint64_t grace_ns;   /* a rank with new work gives none for so long, or for less */
    uint64_t started_ns; /* of the running task; 0 when it is not measured */
    uint64_t taken_ns;   /* fy_scheduling_taken_ns when that task began */
    uint64_t mean_ns;    /* of tasks; 0: none has ended yet */
    uint32_t unmeasured; /* tasks since the last that was measured */
    bool each;           /* tiny tasks are measured each */
    bool steps;          /* tasks come again and again to the same objects */
    int again; /* objects that got a task after a rest here, less the others; 0 to a limit */
    const void *latest;   /* the object that got a task last; only compared */
    double greatest;      /* load of a task; an old one counts for less */
    const void *newcomer; /* the object that came last, until it has run twice; only compared */
    uint64_t first_ns;    /* of its first task; 0: it has not run */
    uint64_t touch_ns;    /* how much longer the first task of a newcomer takes than its second */
    uint64_t reach_ns;    /* from a work request to the object that it brought; 0: unknown */
} fy_measure;

static inline bool fy_measure_is_short(const fy_measure *m)
{
    return m->mean_ns != 0 && m->mean_ns < m->short_ns;
}

static inline bool fy_measure_is_tiny(const fy_measure *m)
{
    return m->mean_ns != 0 && m->mean_ns < FY_MEASURE_TINY_NS;
}

/* The running task is measured from `now` on. */
static inline void fy_measure_from(ferry_scheduling *s, fy_measure *m, uint64_t now)
{
    m->started_ns = now;
    m->taken_ns = fy_scheduling_taken_ns(s);
}

/* A task of this load begins. Tiny tasks are measured only from time to time, and tasks without
 * load never: the time of other tasks cannot be derived from theirs. */
static inline void fy_measure_begin(ferry_scheduling *s, fy_measure *m, double load)
{
    enum { SAMPLE = 16, KEPT_TASKS = 32 };
    m->greatest -= m->greatest / KEPT_TASKS;
    if (load > m->greatest)
        m->greatest = load;
    bool known = fy_measure_is_tiny(m) && !m->each && ++m->unmeasured < SAMPLE;
    m->started_ns = 0;
    if (!known && load > 0)
        fy_measure_from(s, m, ferry_scheduling_now(s));
}

/* How long the running task has taken by now; 0: it is not measured. The helper may have taken the
 * task's processor, so its time does not count. */
uint64_t fy_measure_time(ferry_scheduling *s, const fy_measure *m);

/* Whether, in steps, the running task has taken `long_ns`. If so, that counts in `mean_ns`, as its
 * whole time will when it ends. Sets `steps`. */
bool fy_measure_lasts(ferry_scheduling *s, fy_measure *m, uint64_t long_ns);

/* The running task, of `item`, ends. It was measured. */
void fy_measure_ended(ferry_scheduling *s, fy_measure *m, const ferry_schedulable *item);

/* The running task, of `item`, ends. */
static inline void fy_measure_end(ferry_scheduling *s, fy_measure *m, const ferry_schedulable *item)
{
    if (m->started_ns != 0)
        fy_measure_ended(s, m, item);
}

/* Up to this load an object counts as one without. */
static inline double fy_measure_floor(const fy_measure *m)
{
    return m->steps ? m->greatest / 16 : 0;
}

/* `item`, an object without tasks, gets one. `again`: it has rested here after an earlier task.
 * Sets `steps`. */
void fy_measure_came(ferry_scheduling *s, fy_measure *m, const ferry_schedulable *item, bool again);

/* A rank that asks in steps has asked this one, which follows the rule from now on. */
void fy_measure_follow(ferry_scheduling *s, fy_measure *m);

/* An object has come after a work request that was sent at `requested_ns`. */
void fy_measure_reach(ferry_scheduling *s, fy_measure *m, uint64_t requested_ns);

/* The time for which a rank that had nothing gives nothing after tasks have come. */
static inline uint64_t fy_measure_grace(const fy_measure *m)
{
    uint64_t part_ns = m->mean_ns / 10;
    return m->mean_ns != 0 && part_ns < m->grace_ns ? part_ns : m->grace_ns;
}

/* The time for which no task begins after the first task has come to an idle rank. */
uint64_t fy_measure_settle(const fy_measure *m);

#endif
