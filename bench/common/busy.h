/* Busy: the programs of somebody else, for cases that run beside them. */
#ifndef BENCH_BUSY_H
#define BENCH_BUSY_H

#include "common/compare.h"

#include <sys/types.h>

enum { BENCH_BUSY_MAX = 256 };

typedef struct bench_busy {
    int count;
    pid_t pids[BENCH_BUSY_MAX];
} bench_busy;

/* They end with bench_busy_stop, or with the benchmark. */
void bench_busy_start(bench_busy *busy, bench_beside beside);
void bench_busy_stop(bench_busy *busy);

#endif
