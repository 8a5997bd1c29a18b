/* Trace: the record behind ferry_trace_start.
 *
 * Invariant: the recorded intervals are in order of time and follow each other without gaps up to
 * `bucket_start_ns`; what comes after is still being merged in the bucket. */
#ifndef FY_TRACE_H
#define FY_TRACE_H

#include <stdbool.h>

#include <ferry/trace.h>

typedef struct fy_trace {
    ferry_interval *intervals;
    size_t count, capacity;
    uint64_t resolution_ns;
    bool on;
    /* Stretches shorter than the resolution, gathered until they are not. */
    uint64_t bucket_start_ns;
    uint64_t bucket_ns[FERRY_MAIN + 1];
    uint32_t bucket_handler; /* of its last task */
} fy_trace;

/* Adds a stretch that starts where the last one ended. */
void fy_trace_add(fy_trace *trace, uint64_t start_ns, uint64_t end_ns, ferry_activity activity,
                  uint32_t handler);
void fy_trace_fini(fy_trace *trace);

#endif
