#include "base/clock.h"

#include <errno.h>
#include <time.h>

#define NS_PER_S 1000000000u

static uint64_t read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t fy_clock_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t fy_clock_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void fy_clock_sleep_until(uint64_t deadline_ns)
{
    struct timespec t = {
        .tv_sec = (time_t)(deadline_ns / NS_PER_S),
        .tv_nsec = (long)(deadline_ns % NS_PER_S),
    };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
    }
}
