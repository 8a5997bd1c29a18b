/* Busy: one computing process for each core, for cases that run beside somebody else's work. */
#ifndef BENCH_BUSY_H
#define BENCH_BUSY_H

#include <sys/types.h>

enum { BENCH_BUSY_MAX = 256 };

typedef struct bench_busy {
    int count;
    pid_t pids[BENCH_BUSY_MAX];
} bench_busy;

/* They end with bench_busy_stop, or with the benchmark. */
void bench_busy_start(bench_busy *busy);
void bench_busy_stop(bench_busy *busy);

#endif
