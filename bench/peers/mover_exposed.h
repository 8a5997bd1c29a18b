/* Mover exposed: how much of a movement computing for twice its length does not hide, for every
 * side of the movers benchmark. */
#ifndef BENCH_MOVER_EXPOSED_H
#define BENCH_MOVER_EXPOSED_H

#include "common/team.h"

#include <time.h>

/* A movement in two halves, between which the program computes. */
typedef struct exposed {
    void (*begin)(void *arg);
    void (*end)(void *arg);
    void *arg;
    uint64_t count; /* movements to measure */
    bool sleeps;    /* sleeping stands for computing: it leaves the processor to the movement */
} exposed;

/* So many steps of work that touch no memory to speak of; returns how long they took. */
static inline double exposed_compute(uint64_t steps)
{
    const uint64_t start = bench_now();
    volatile double x = 1;
    for (uint64_t i = 0; i < steps; i++)
        x = x * 0.999 + 0.001;
    return (double)(bench_now() - start);
}

static inline double exposed_work(const exposed *e, double ns, double step_ns)
{
    const uint64_t start = bench_now();
    const struct timespec time = {.tv_sec = (time_t)(ns / 1e9),
                                  .tv_nsec = (long)(ns - 1e9 * (double)(time_t)(ns / 1e9))};
    if (!e->sleeps)
        return exposed_compute((uint64_t)(ns / step_ns));
    (void)nanosleep(&time, NULL);
    return (double)(bench_now() - start);
}

/* Percent of a movement of `halo_ns` that the program's time grows by. */
static inline double exposed_percent(const exposed *e, double halo_ns)
{
    const uint64_t count = e->count;
    double step_ns = exposed_compute(1000000) / 1e6, alone = 0;
    for (uint64_t i = 0; i < count; i++)
        alone += exposed_work(e, 2 * halo_ns, step_ns) / (double)count;
    const uint64_t start = bench_now();
    for (uint64_t i = 0; i < count; i++) {
        e->begin(e->arg);
        (void)exposed_work(e, 2 * halo_ns, step_ns);
        e->end(e->arg);
    }
    double percent = 100 * ((double)(bench_now() - start) / (double)count - alone) / halo_ns;
    return percent > 0 ? percent : 0;
}

#endif
