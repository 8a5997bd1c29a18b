/* The default scheduler, inside: what a rank knows, and what its files share. ferry.c says what it
 * does; supply.c, what a rank can give, and when it tells. */
#ifndef FY_FERRY_H
#define FY_FERRY_H

#include "balance/schedulers/buckets.h"
#include "balance/schedulers/coordinator.h"
#include "balance/schedulers/measure.h"
#include "balance/schedulers/schedulers.h"

enum { FY_FERRY_HELD_MAX = 64, FY_FERRY_PAUSE_NS = 4000, FY_FERRY_LONG_NS = 8000000 };

typedef struct ferry_policy {
    fy_buckets waiting;
    ferry_schedulable *running;
    double running_load; /* of all tasks of `running` when its task began */
    fy_coordinators coordinators;
    fy_measure measure;
    uint64_t slice_ns, timeout_ns;

    bool paused;         /* a patient rank has paused before it asks */
    uint64_t idle_ns;    /* of such pauses that were not long enough to ask */
    uint64_t backoff_ns; /* the next pause between work requests in steps */
    bool fresh;          /* work has come to a rank that had none: give nothing until fresh_ns */
    uint64_t fresh_ns;
    uint64_t settled_ns; /* no task begins before; 0: any may */
    bool asked;          /* a work request is out, or will be; it is repeated at asked_ns */
    bool sent;           /* it is out */
    bool once;           /* it is not kept */
    uint64_t asked_ns;
    uint64_t requested_ns; /* when it was sent */

    uint64_t look_ns;     /* when to look again whether something can be given; or 0 */
    uint64_t reported_ns; /* when it last told its coordinator what it can give */
    bool overdue;         /* that has changed, and is told at the end of the silence */
    uint32_t reported;    /* what the coordinator believes this rank can give */
    float reported_heaviest;

    fy_coordinator_note held[FY_FERRY_HELD_MAX]; /* came while the first object was on its way */
    int held_count;
} ferry_policy;

/* The cost of a move, in ns. To unpack an object takes about as long as to pack it. Then it uses
 * its memory. The request and its answer count only where they take longer than a task. */
uint64_t fy_ferry_move_cost(const ferry_scheduling *s, const ferry_policy *p);

/* Whether an idle rank waits for its own work before it asks: that is in flight, or a move takes
 * longer than a task. */
static inline bool fy_ferry_is_patient(const ferry_scheduling *s, const ferry_policy *p)
{
    return p->measure.steps ||
           (p->measure.mean_ns != 0 && p->measure.mean_ns < fy_ferry_move_cost(s, p));
}

/* The number of objects that may be given away. */
uint32_t fy_ferry_supply(ferry_scheduling *s, ferry_policy *p);

/* The load of the heaviest waiting object; in steps, when coordinators find the rank with the most,
 * that of all. */
float fy_ferry_heaviest(const ferry_policy *p);

static inline float fy_ferry_load_here(const ferry_policy *p)
{
    return (float)(p->waiting.load + p->running_load);
}

/* In steps each task changes the load, so a rank is silent for so long between two reports. 0: the
 * coordinator has time for them. */
uint64_t fy_ferry_silence(ferry_scheduling *s, const ferry_policy *p);

/* Names the time of the next call of `wake`. */
void fy_ferry_set_timer(ferry_scheduling *s, const ferry_policy *p);

/* The task that runs may have made others, which need not wait for its end. In steps it is short.
 */
static inline void fy_ferry_hurry(ferry_scheduling *s, const ferry_policy *p)
{
    if (!p->measure.steps)
        fy_scheduling_hurry(s);
}

/* Tells the coordinator what can be given, with the work request of `request`, or -1. `once`: it is
 * not kept. */
void fy_ferry_report(ferry_scheduling *s, ferry_policy *p, int request, bool once);

/* Tells the coordinator of a change, if it is large enough and may be told now. */
void fy_ferry_update(ferry_scheduling *s, ferry_policy *p);

#endif
