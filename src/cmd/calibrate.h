/* Measured by `ferry calibrate` beside the network: the parameters of `ferry model`. */
#ifndef FY_CMD_CALIBRATE_H
#define FY_CMD_CALIBRATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <ferry/ferry.h>
#include <ferry/scheduler.h>

enum { CALIBRATE_TASK_BYTES = 1024 };

/* Medians, in nanoseconds; none is 0. */
typedef struct calibrate_costs {
    uint64_t poll, change, startup, answer, decide, uninstall, pack, unpack, install;
} calibrate_costs;

/* A rank that waits for an answer of the other's helper. Touched while that rank polls. */
typedef struct calibrate_asking {
    bool wanted; /* the next task that is added here asks */
    uint64_t answers, answer_ns;
} calibrate_asking;

calibrate_asking *calibrate_asking_here(void);

extern const ferry_scheduler calibrate_scheduler;

/* Says what failed and ends the process; nothing if `error` is 0. */
void calibrate_must(int error, const char *what);

/* The median of `count` numbers, which it sorts; 1 if there are none, or if it is 0. */
uint64_t calibrate_median(uint64_t *values, int count);

/* Collective over two ranks; all but `startup`. Rank 0 gets the costs. */
void calibrate_costs_measure(ferry *f, bool quick, calibrate_costs *out);
void calibrate_costs_write(FILE *out, const calibrate_costs *costs);

#endif
