/* Trace: the record of ferry_trace_start, and the one that FERRY_TRACE writes at the end.
 *
 * Invariant: the recorded intervals are in order of time, without gaps, up to `bucket_start_ns`.
 * The bucket has what came after. */
#ifndef FY_TRACE_H
#define FY_TRACE_H

#include <stdbool.h>

#include <ferry/trace.h>

typedef struct fy_trace {
    ferry_interval *intervals;
    size_t count, capacity;
    uint64_t resolution_ns;
    bool on;
    /* The bucket: stretches that are together shorter than the resolution. */
    uint64_t bucket_start_ns;
    uint64_t bucket_ns[FERRY_MAIN + 1];
    uint64_t bucket_cpu_ns;
    uint32_t bucket_handler; /* handler of the last task in it */
} fy_trace;

/* The record of FERRY_TRACE. */
typedef struct fy_trace_file {
    fy_trace trace;
    const char *folder;
    uint64_t opened_ns;
} fy_trace_file;

/* Adds a stretch that starts where the last one ended, up to `end_ns`. */
void fy_trace_add(fy_trace *trace, const ferry_interval *stretch, uint64_t end_ns);
void fy_trace_fini(fy_trace *trace);

/* Starts recording, if the environment has FERRY_TRACE. FERRY_ENOMEM. */
int fy_trace_file_init(ferry *f);

/* Writes FOLDER/rank-N.trace. Layers write their lines by fy_layer_ops.trace. FERRY_ESYSTEM: it
 * could not be written whole, which was logged. */
int fy_trace_file_write(ferry *f);
void fy_trace_file_fini(ferry *f);

#endif
