#include "cmd/handoff.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"

#define ROUNDS 20000
#define REPEATS 5

typedef struct line {
    _Alignas(128) _Atomic uint32_t word;
    size_t cpu;
} line;

static void pin(size_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/* Answers each odd number with the next even one. Its release and acquire pair with those in
 * measure. */
static void *handoff_answer(void *arg)
{
    line *l = arg;
    pin(l->cpu);
    for (uint32_t i = 0; i < ROUNDS * REPEATS; i++) {
        while (atomic_load_explicit(&l->word, memory_order_acquire) != 2 * i + 1) {
        }
        atomic_store_explicit(&l->word, 2 * i + 2, memory_order_release);
    }
    return NULL;
}

static double handoff_measure(line *l)
{
    double best = 1e9;
    uint32_t i = 0;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        uint64_t start = fy_clock_now_ns();
        for (int round = 0; round < ROUNDS; round++, i++) {
            atomic_store_explicit(&l->word, 2 * i + 1, memory_order_release);
            while (atomic_load_explicit(&l->word, memory_order_acquire) != 2 * i + 2) {
            }
        }
        double ns = (double)(fy_clock_now_ns() - start) / ROUNDS / 2;
        if (ns < best)
            best = ns;
    }
    return best;
}

/* The first two allowed processors. */
static bool choose_processors(cpu_set_t *allowed, size_t cpus[2])
{
    int found = 0;
    if (sched_getaffinity(0, sizeof(*allowed), allowed) != 0)
        return false;
    for (size_t cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, allowed))
            cpus[found++] = cpu;
    return found == 2;
}

bool cmd_handoff_ns(double *out)
{
    cpu_set_t allowed;
    size_t cpus[2];
    pthread_t other;
    if (!choose_processors(&allowed, cpus))
        return false;
    line l = {.cpu = cpus[1]};
    if (pthread_create(&other, NULL, handoff_answer, &l) != 0)
        return false;
    pin(cpus[0]);
    *out = handoff_measure(&l);
    pthread_join(other, NULL);
    sched_setaffinity(0, sizeof(allowed), &allowed);
    return true;
}
