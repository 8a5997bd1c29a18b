/* The objects that a rank of the default scheduler can give, and when it tells its coordinator. */
#include "balance/schedulers/ferry.h"
#include "balance/schedulers/schedulers.h"

enum { FALL = 16, LOOK_NS = 1000000 };

uint64_t fy_ferry_move_cost(const ferry_scheduling *s, const ferry_policy *p)
{
    uint64_t cost_ns = 2 * ferry_scheduling_move_ns(s) + p->measure.touch_ns;
    return cost_ns < FY_MEASURE_TINY_NS && fy_measure_is_tiny(&p->measure) ? FY_MEASURE_TINY_NS
                                                                           : cost_ns;
}

float fy_ferry_heaviest(const ferry_policy *p)
{
    if (p->measure.steps)
        return (float)p->waiting.load;
    const ferry_schedulable *item = fy_buckets_first(&p->waiting);
    return item != NULL ? (float)item->mark : 0;
}

uint64_t fy_ferry_silence(ferry_scheduling *s, const ferry_policy *p)
{
    uint64_t ns = p->measure.steps ? fy_coordinators_silence(s, &p->coordinators) : 0;
    return ns > FY_FERRY_PAUSE_NS ? ns : 0;
}

static uint64_t earlier(uint64_t at_ns, bool counts, uint64_t other_ns)
{
    return counts && (at_ns == 0 || other_ns < at_ns) ? other_ns : at_ns;
}

/* A rank with a tiny task reports when the next one begins. */
void fy_ferry_set_timer(ferry_scheduling *s, const ferry_policy *p)
{
    uint64_t at_ns = earlier(p->asked ? p->asked_ns : 0, p->fresh, p->fresh_ns);
    at_ns = earlier(at_ns, p->look_ns != 0, p->look_ns);
    bool reports = p->overdue && (p->running == NULL || !fy_measure_is_tiny(&p->measure));
    ferry_scheduling_wake(s, earlier(at_ns, reports, p->reported_ns + fy_ferry_silence(s, p)));
}

/* Nothing can be given now, but the running task may take longer than those before. */
static void look_again(ferry_scheduling *s, ferry_policy *p, uint64_t after_ns)
{
    if (p->look_ns != 0)
        return;
    uint64_t now = ferry_scheduling_now(s);
    if (p->running_load > 0 && p->measure.started_ns == 0)
        fy_measure_from(s, &p->measure, now);
    p->look_ns = now + after_ns;
    fy_ferry_set_timer(s, p);
    fy_scheduling_hurry(s);
}

/* Objects that take long to travel arrive one after the other. So many of `count` will arrive
 * before this rank has begun the others. */
static uint64_t in_time(ferry_scheduling *s, ferry_policy *p, uint32_t count)
{
    if (p->measure.steps)
        return count; /* an object travels once and runs many times */
    uint32_t away;
    uint64_t mean_ns = p->measure.mean_ns, each_ns = fy_scheduling_travel_ns(s, mean_ns, &away);
    if (each_ns == UINT64_MAX)
        return away != 0 && p->held_count == FY_FERRY_HELD_MAX ? 0 : count; /* it goes alone */
    p->measure.each = each_ns != 0;
    if (each_ns == 0)
        return count;
    uint64_t running_ns = p->running_load > 0 ? fy_measure_time(s, &p->measure) : 0;
    if (running_ns > mean_ns)
        mean_ns = running_ns;
    uint64_t left_ns = count * mean_ns + mean_ns / 2;
    if (left_ns >= away * each_ns + mean_ns + each_ns)
        return (left_ns - away * each_ns) / (mean_ns + each_ns);
    look_again(s, p, each_ns + LOOK_NS);
    return 0;
}

/* While a task runs: all that wait with some load. Otherwise: all but the next. To run an object
 * without load takes less time than to give it away. */
uint32_t fy_ferry_supply(ferry_scheduling *s, ferry_policy *p)
{
    uint32_t count = p->waiting.loaded;
    if (count == 0 && p->waiting.count != 0 && p->running_load > 0 && p->measure.steps)
        look_again(s, p, FY_FERRY_LONG_NS); /* then the steps may have ended */
    if (p->fresh || count == 0 || !ferry_scheduling_is_on(s))
        return 0;
    count -= p->running == NULL || p->running_load <= 0;
    return (uint32_t)in_time(s, p, count);
}

void fy_ferry_report(ferry_scheduling *s, ferry_policy *p, int request, bool once)
{
    fy_coordinator_note note = {.word = FY_COORDINATOR_UP,
                                .level = 1,
                                .request = request,
                                .once = once,
                                .supply = fy_ferry_supply(s, p),
                                .heaviest = fy_ferry_heaviest(p),
                                .load = fy_ferry_load_here(p)};
    p->overdue = false;
    p->reported_ns = fy_ferry_silence(s, p) == 0 ? 0 : ferry_scheduling_now(s);
    p->reported = note.supply;
    p->reported_heaviest = fy_ferry_heaviest(p);
    fy_coordinators_post(s, &p->coordinators, &note);
}

/* In steps each task changes the load. If tasks are tiny, only a change by a factor of 2 counts. */
static bool weighs_otherwise(const ferry_policy *p)
{
    float now = fy_ferry_heaviest(p), then = p->reported_heaviest;
    if (fy_measure_is_tiny(&p->measure))
        return now > 2 * then || then > 2 * now;
    return fy_coordinator_weighs_otherwise(now, then);
}

/* Whether to tell the coordinator of a change. Each message wakes a helper, as a rule. If there is
 * less left, but not nothing, the message is worth that only if there is much less. With short
 * tasks the coordinator is told only that there are many more objects. It learns that there are
 * fewer when it asks in vain. */
static bool report_is_due(ferry_scheduling *s, ferry_policy *p)
{
    uint32_t now = fy_ferry_supply(s, p);
    if (p->measure.steps)
        return (now == 0) != (p->reported == 0) || weighs_otherwise(p);
    if (fy_measure_is_short(&p->measure))
        return p->reported == 0 ? now != 0 : now / 4 >= p->reported;
    if (now < p->reported ? now <= p->reported / FALL : fy_coordinator_differs(now, p->reported))
        return true;
    return now != 0 && fy_coordinator_weighs_otherwise(fy_ferry_heaviest(p), p->reported_heaviest);
}

void fy_ferry_update(ferry_scheduling *s, ferry_policy *p)
{
    p->overdue = report_is_due(s, p);
    if (!p->overdue)
        return;
    uint64_t silence_ns = fy_ferry_silence(s, p);
    if (silence_ns == 0 || ferry_scheduling_now(s) >= p->reported_ns + silence_ns)
        fy_ferry_report(s, p, -1, p->measure.steps);
    else
        fy_ferry_set_timer(s, p);
}
