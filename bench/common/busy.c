#include "common/busy.h"

#include "common/board.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BURST_NS 1000000u
#define PERIOD_NS 20000000u

static uint64_t used_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Processor time: who shares the core does not shorten it. */
static void compute_until(uint64_t end_ns)
{
    volatile uint64_t x = 1;
    do
        for (int i = 0; i < 10000; i++)
            x = x * 6364136223846793005u + 1442695040888963407u;
    while (used_ns() < end_ns);
}

/* The cores' bursts come one after the other. */
static void compute_bursts(int core, int cores)
{
    uint64_t next_ns = bench_now() + PERIOD_NS * (uint64_t)core / (uint64_t)cores;
    for (;; next_ns += PERIOD_NS) {
        struct timespec until = {.tv_sec = (time_t)(next_ns / 1000000000u),
                                 .tv_nsec = (long)(next_ns % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        compute_until(used_ns() + BURST_NS);
    }
}

static void compute(int core, int cores, bench_beside beside)
{
    bench_pin(core);
    if (beside == BENCH_BURSTS)
        compute_bursts(core, cores);
    else
        compute_until(UINT64_MAX);
}

void bench_busy_start(bench_busy *busy, bench_beside beside)
{
    pid_t parent = getpid();
    int cores = bench_cores();
    int count = beside == BENCH_ALONE ? 0 : beside == BENCH_ONE_COMPUTES ? 1 : cores;
    for (int i = 0; i < count && i < BENCH_BUSY_MAX; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() == parent)
                compute(i, cores, beside);
            _exit(1);
        }
        if (pid > 0)
            busy->pids[busy->count++] = pid;
    }
}

void bench_busy_stop(bench_busy *busy)
{
    for (int i = 0; i < busy->count; i++)
        kill(busy->pids[i], SIGKILL);
    for (int i = 0; i < busy->count; i++)
        waitpid(busy->pids[i], NULL, 0);
    busy->count = 0;
}
