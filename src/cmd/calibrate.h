/* The parameters of `ferry model` that `ferry calibrate` measures besides those of the network. */
#ifndef FY_CMD_CALIBRATE_H
#define FY_CMD_CALIBRATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <ferry/ferry.h>
#include <ferry/scheduler.h>

enum { CALIBRATE_TASK_BYTES = 1024 };

/* Medians, in nanoseconds, each at least 1. docs/model.md says what they are. */
typedef struct calibrate_costs {
    uint64_t poll, change, startup, answer, decide, uninstall, pack, unpack, install;
} calibrate_costs;

/* How a rank asks the helper of the other rank. Used by the rank's application thread, in polls. */
typedef struct calibrate_asking {
    bool wanted;        /* the next task that is added on this rank asks */
    uint64_t answers;   /* how many have come */
    uint64_t answer_ns; /* from the query to the last answer */
} calibrate_asking;

calibrate_asking *calibrate_asking_here(void);

extern const ferry_scheduler calibrate_scheduler;

/* If `error` is not 0, prints `what` failed and why, and ends the process. */
void calibrate_must(int error, const char *what);

/* Sorts `count` numbers and returns their median, at least 1. Without numbers it returns 1. */
uint64_t calibrate_median(uint64_t *values, int count);

/* Measures all costs but `startup`. Collective over two ranks; rank 0 has the results. */
void calibrate_costs_measure(ferry *f, bool quick, calibrate_costs *out);
void calibrate_costs_write(FILE *out, const calibrate_costs *costs);

#endif
