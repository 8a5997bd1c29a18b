/* Trace: records when a rank ran the program, was in the runtime, or was idle, and what each
 * operation of the runtime cost. */
#ifndef FERRY_TRACE_H
#define FERRY_TRACE_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The activity of a rank. */
typedef enum ferry_activity {
    FERRY_IDLE,    /* waiting with nothing to do */
    FERRY_RUNTIME, /* inside Ferry */
    FERRY_TASK,    /* inside a handler or task */
    FERRY_MAIN,    /* in the program, outside Ferry's calls */
} ferry_activity;

/* A stretch of time with one activity. It ends where the next begins. */
typedef struct ferry_interval {
    uint64_t start_ns; /* as ferry_now gives it */
    uint32_t activity; /* ferry_activity */
    uint32_t handler;  /* index of the handler of a FERRY_TASK, else 0 */
    uint64_t cpu_ns;   /* processor time of a task, as far as it was measured; else 0 */
} ferry_interval;

/* Starts to record up to `interval_max` intervals. Intervals shorter than `resolution_ns` are
 * merged with their neighbours, so a record covers the whole run. Replaces an earlier record.
 * FERRY_EINVAL: fewer than 16 intervals. FERRY_ENOMEM: no memory for them. [app thread | never
 * blocks] */
FERRY_API FERRY_MUST_USE int ferry_trace_start(ferry *f, size_t interval_max,
                                               uint64_t resolution_ns);

/* Ends the record. Its last entry is one of FERRY_MAIN that begins at the time of this call, so
 * each interval before it has an end. Lends `*intervals` until the next ferry_trace_start or
 * ferry_close. FERRY_ESTATE: no trace was started. [app thread | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_trace_stop(ferry *f, const ferry_interval **intervals,
                                              size_t *count);

/* Writes the costs of the run so far to the file `path`, or to standard error when it is NULL. For
 * each operation of each layer it writes calls, bytes and time, summed over all ranks. For each
 * rank it writes its calls and the runtime's part of the time. Collective; rank 0 writes. With
 * FERRY_PROFILE=1 in the environment ferry_close writes this too, with FERRY_PROFILE=PATH into that
 * file. FERRY_ESTATE: FERRY_PROFILE is not set, so nothing was counted. FERRY_ESYSTEM, on rank 0:
 * the file could not be written. [app thread, not in handlers | polls | may block] dmcs.txt 5.1,
 * prema.txt B.2.1. */
FERRY_API int ferry_profile_write(ferry *f, const char *path);

#ifdef __cplusplus
}
#endif
#endif
