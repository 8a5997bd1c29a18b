#include "balance/schedulers/measure.h"

enum { SETTLE_PART = 1000, SETTLE_NS = 100 * 1000, REACHES = 3, REACH_PART = 100 };
enum { AGAIN = 4, STEP = 4, TOUCHED = 4 };

/* Memory that another rank has used is slow when this rank uses it for the first time. A task that
 * takes several times as long as the next of its object has paid for that. */
static void learn_touch(fy_measure *m, uint64_t took_ns)
{
    if (m->first_ns == 0) {
        m->first_ns = took_ns;
        return;
    }
    m->touch_ns /= 2;
    if (m->first_ns / TOUCHED > took_ns)
        m->touch_ns += (m->first_ns - took_ns) / 2;
    m->newcomer = NULL;
}

uint64_t fy_measure_time(ferry_scheduling *s, const fy_measure *m)
{
    uint64_t now = ferry_scheduling_now(s);
    if (m->started_ns == 0 || now < m->started_ns)
        return 0;
    uint64_t took_ns = now - m->started_ns + 1, taken_ns = fy_scheduling_taken_ns(s) - m->taken_ns;
    return taken_ns < took_ns ? took_ns - taken_ns : 1;
}

void fy_measure_ended(ferry_scheduling *s, fy_measure *m, const ferry_schedulable *item)
{
    uint64_t took_ns = fy_measure_time(s, m);
    m->unmeasured = 0;
    if (item == m->newcomer && took_ns > m->mean_ns / TOUCHED)
        learn_touch(m, took_ns);
    m->mean_ns = m->mean_ns == 0 ? took_ns : (7 * m->mean_ns + took_ns) / 8;
}

static void choose_rule(ferry_scheduling *s, fy_measure *m)
{
    m->steps = m->again >= (m->steps ? 1 : AGAIN) && m->mean_ns != 0 &&
               m->mean_ns / STEP < m->short_ns && ferry_scheduling_preempts(s);
}

bool fy_measure_lasts(ferry_scheduling *s, fy_measure *m, uint64_t long_ns)
{
    uint64_t took_ns = m->steps ? fy_measure_time(s, m) : 0;
    if (took_ns < long_ns)
        return false;
    m->mean_ns += took_ns / 8;
    choose_rule(s, m);
    return true;
}

/* An object that gets one task after the other, to collect results, does not count. */
void fy_measure_came(ferry_scheduling *s, fy_measure *m, const ferry_schedulable *item, bool again)
{
    if (!again)
        m->again -= m->again > 0;
    else if (item != m->latest)
        m->again += m->again < 2 * AGAIN;
    m->latest = item;
    choose_rule(s, m);
}

void fy_measure_follow(ferry_scheduling *s, fy_measure *m)
{
    if (m->again >= AGAIN)
        return;
    m->again = AGAIN;
    choose_rule(s, m);
}

/* A rank that has just got work gives none for `grace_ns`. A work request that took nearly as long
 * has waited for that, and tells nothing about the network. */
void fy_measure_reach(ferry_scheduling *s, fy_measure *m, uint64_t requested_ns)
{
    uint64_t took_ns = ferry_scheduling_now(s) - requested_ns + 1;
    if (took_ns > m->grace_ns / 4 * 3)
        return;
    if (m->reach_ns == 0)
        m->reach_ns = took_ns;
    else if (took_ns < m->reach_ns)
        m->reach_ns = (m->reach_ns + took_ns) / 2;
    else
        m->reach_ns += m->reach_ns / 16; /* most requests that take longer have waited for work */
}

uint64_t fy_measure_settle(const fy_measure *m)
{
    uint64_t least_ns = m->mean_ns / SETTLE_PART, most_ns = m->mean_ns / REACH_PART;
    if (least_ns > SETTLE_NS)
        least_ns = SETTLE_NS;
    if (most_ns > REACHES * m->reach_ns)
        most_ns = REACHES * m->reach_ns;
    return least_ns > most_ns ? least_ns : most_ns;
}
