/* Trace: when a rank computed, worked for the runtime, and had nothing to do; and what each
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

/* One stretch of one activity; it ends where the next begins. */
typedef struct ferry_interval {
    uint64_t start_ns; /* of ferry_now */
    uint32_t activity; /* ferry_activity */
    uint32_t handler;  /* index of the handler of a FERRY_TASK, else 0 */
    uint64_t cpu_ns;   /* processor time of a task, as far as it was measured; else 0 */
} ferry_interval;

/* Starts recording up to `interval_max` intervals; neighbouring stretches shorter than
 * `resolution_ns` are merged into the longer of them, so that a record covers the run. Replaces an
 * earlier record. FERRY_EINVAL: fewer than 16 intervals. FERRY_ENOMEM: no memory for them. [app
 * thread | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_trace_start(ferry *f, size_t interval_max,
                                               uint64_t resolution_ns);

/* Ends recording; the last interval is closed by one of FERRY_MAIN at the time of the call. Lends
 * `*intervals` until the next ferry_trace_start or ferry_close. FERRY_ESTATE: no trace was started.
 * [app thread | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_trace_stop(ferry *f, const ferry_interval **intervals,
                                              size_t *count);

/* Writes the costs of the run so far to the file `path`, or to standard error when it is NULL. For
 * each operation of each layer it writes calls, bytes and time, summed over all ranks. For each
 * rank it writes its calls and which part of the time the runtime took. Collective; rank 0 writes.
 * With FERRY_PROFILE=1 in the environment this happens at ferry_close too, with FERRY_PROFILE=PATH
 * into that file. FERRY_ESTATE: without FERRY_PROFILE nothing is counted. FERRY_ESYSTEM, on rank 0:
 * the file could not be written. [app thread, not in handlers | polls | may block] dmcs.txt 5.1,
 * prema.txt B.2.1. */
FERRY_API int ferry_profile_write(ferry *f, const char *path);

#ifdef __cplusplus
}
#endif
#endif
