/* Cost: how long a program computes and how long it communicates, for the papers' figures.
 *
 * A real rank takes its time by working. A simulated rank's instructions take none, so a program
 * adds up its floating-point operations and spends them by ferry_compute, at the rate that --flops
 * gives; without it nothing is spent. Time between _begins and _ends is communication. */
#ifndef APP_COST_H
#define APP_COST_H

#include <ferry/ferry.h>

typedef struct cost {
    double flops_per_s; /* of a rank; 0: nothing is spent */
    double flops;       /* added and not yet spent */
    uint64_t began_ns, communication_ns;
} cost;

#define COST_PARAMETER(c)                                                                          \
    {                                                                                              \
        "flops", "operations per second of a simulated rank (0: they take no time)", 0, 1e18,      \
            .real = &(c)->flops_per_s                                                              \
    }

static inline void cost_add(cost *c, double flops)
{
    c->flops += flops;
}

static inline void cost_spend(cost *c, ferry *f)
{
    if (c->flops_per_s > 0)
        ferry_compute(f, c->flops / c->flops_per_s);
    c->flops = 0;
}

static inline void cost_communication_begins(cost *c, ferry *f)
{
    c->began_ns = ferry_now(f);
}

static inline void cost_communication_ends(cost *c, ferry *f)
{
    c->communication_ns += ferry_now(f) - c->began_ns;
}

/* The time in communication, the mean over all ranks. All ranks call it. Negative: no sum. */
static inline double cost_communication_s(const cost *c, ferry *f)
{
    double sum = (double)c->communication_ns * 1e-9;
    if (ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, &sum, &sum, 1) != 0)
        return -1;
    return sum / ferry_ranks(f);
}

#endif
