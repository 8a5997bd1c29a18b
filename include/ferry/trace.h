/* Trace: when a rank computed, worked for the runtime, and had nothing to do. */
#ifndef FERRY_TRACE_H
#define FERRY_TRACE_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

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
} ferry_interval;

/* Starts recording up to `interval_max` intervals; neighbouring stretches shorter than
 * `resolution_ns` are merged into the longer of them, so that a record covers the run. Replaces an
 * earlier record. [app thread | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_trace_start(ferry *f, size_t interval_max,
                                               uint64_t resolution_ns);

/* Ends recording; the last interval is closed by one of FERRY_MAIN at the time of the call. Lends
 * `*intervals` until the next ferry_trace_start or ferry_close. [app thread | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_trace_stop(ferry *f, const ferry_interval **intervals,
                                              size_t *count);

#ifdef __cplusplus
}
#endif
#endif
