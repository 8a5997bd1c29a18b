/* Trace: stretches of time shorter than the resolution are collected in a bucket. When the bucket
 * is as long as the resolution, it becomes one interval, of the activity that took most of it. A
 * stretch that is longer becomes an interval itself, together with what is in the bucket before it.
 * When the record is full, the resolution doubles and the record is merged anew. So it always
 * covers the whole run. */
#include "core/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "core/fail.h"
#include "core/rank.h"
#include "core/report/report.h"

enum { RESOLUTION_MIN_NS = 1000 };

static void trace_append(fy_trace *trace, const ferry_interval *interval);

static uint64_t bucket_total(const fy_trace *trace)
{
    uint64_t total = 0;
    for (int i = 0; i <= FERRY_MAIN; i++)
        total += trace->bucket_ns[i];
    return total;
}

static void empty_bucket(fy_trace *trace)
{
    memset(trace->bucket_ns, 0, sizeof(trace->bucket_ns));
    trace->bucket_cpu_ns = 0;
}

static void flush_bucket(fy_trace *trace)
{
    uint32_t most = 0;
    for (uint32_t i = 1; i <= FERRY_MAIN; i++)
        if (trace->bucket_ns[i] > trace->bucket_ns[most])
            most = i;
    if (trace->bucket_ns[most] == 0)
        return;
    const ferry_interval interval = {.start_ns = trace->bucket_start_ns,
                                     .activity = most,
                                     .handler = most == FERRY_TASK ? trace->bucket_handler : 0,
                                     .cpu_ns = most == FERRY_TASK ? trace->bucket_cpu_ns : 0};
    empty_bucket(trace);
    trace_append(trace, &interval);
}

void fy_trace_add(fy_trace *trace, const ferry_interval *stretch, uint64_t end_ns)
{
    uint64_t passed = end_ns - stretch->start_ns;
    if (passed == 0)
        return;
    uint64_t waiting = bucket_total(trace);
    if (waiting == 0)
        trace->bucket_start_ns = stretch->start_ns;
    if (passed >= trace->resolution_ns) {
        ferry_interval interval = *stretch;
        interval.start_ns = trace->bucket_start_ns;
        empty_bucket(trace);
        trace_append(trace, &interval);
        trace->bucket_start_ns = end_ns;
        return;
    }
    trace->bucket_ns[stretch->activity] += passed;
    trace->bucket_cpu_ns += stretch->cpu_ns;
    if (stretch->activity == FERRY_TASK)
        trace->bucket_handler = stretch->handler;
    if (waiting + passed >= trace->resolution_ns) {
        flush_bucket(trace);
        trace->bucket_start_ns = end_ns;
    }
}

/* Doubles the resolution and merges the record. */
static void compact(fy_trace *trace, uint64_t end_ns)
{
    size_t count = trace->count;
    uint64_t start = trace->bucket_start_ns;
    trace->resolution_ns =
        trace->resolution_ns < RESOLUTION_MIN_NS ? RESOLUTION_MIN_NS : trace->resolution_ns * 2;
    trace->count = 0;
    for (size_t i = 0; i < count; i++) {
        /* A copy: the merged record is written over the same array, never beyond `i`. */
        ferry_interval interval = trace->intervals[i];
        uint64_t end = i + 1 < count ? trace->intervals[i + 1].start_ns : end_ns;
        fy_trace_add(trace, &interval, end);
    }
    flush_bucket(trace);
    trace->bucket_start_ns = start;
}

static void trace_append(fy_trace *trace, const ferry_interval *interval)
{
    if (trace->count > 0) {
        ferry_interval *last = &trace->intervals[trace->count - 1];
        if (last->activity == interval->activity && last->handler == interval->handler) {
            last->cpu_ns += interval->cpu_ns;
            return;
        }
    }
    for (int i = 0; trace->count == trace->capacity && i < 64; i++)
        compact(trace, interval->start_ns);
    if (trace->count < trace->capacity)
        trace->intervals[trace->count++] = *interval;
}

void fy_trace_fini(fy_trace *trace)
{
    free(trace->intervals);
    *trace = (fy_trace){0};
}

/* Begins a record at the time up to which the account has counted. FERRY_ENOMEM. */
static int trace_begin(ferry *f, fy_trace *trace, size_t interval_max, uint64_t resolution_ns)
{
    ferry_interval *intervals = fy_malloc(interval_max * sizeof(*intervals));
    if (intervals == NULL)
        return fy_fail(f, FERRY_ENOMEM, "trace_start: no memory for %zu intervals", interval_max);
    fy_account_to(f, f->head.account.activity, f->head.account.handler);
    fy_trace_fini(trace);
    *trace = (fy_trace){.intervals = intervals,
                        .capacity = interval_max - 1, /* `trace_end` writes one more */
                        .resolution_ns = resolution_ns,
                        .on = true,
                        .bucket_start_ns = f->head.account.stamp_ns};
    f->head.account.timed = true;
    f->head.due |= FY_DUE_ALWAYS;
    return 0;
}

/* Ends a record at the present time of the account. */
static void trace_end(ferry *f, fy_trace *trace)
{
    fy_account_to(f, f->head.account.activity, f->head.account.handler);
    flush_bucket(trace);
    trace->on = false;
    trace->intervals[trace->count++] =
        (ferry_interval){.start_ns = f->head.account.stamp_ns, .activity = FERRY_MAIN};
}

int ferry_trace_start(ferry *f, size_t interval_max, uint64_t resolution_ns)
{
    enum { INTERVALS_MIN = 16 };
    if (interval_max < INTERVALS_MIN || interval_max > SIZE_MAX / sizeof(ferry_interval))
        return fy_fail(f, FERRY_EINVAL, "trace_start: %zu intervals; expected at least %d",
                       interval_max, INTERVALS_MIN);
    return trace_begin(f, &f->trace, interval_max, resolution_ns);
}

int ferry_trace_stop(ferry *f, const ferry_interval **intervals, size_t *count)
{
    fy_trace *trace = &f->trace;
    if (!trace->on)
        return fy_fail(f, FERRY_ESTATE, "trace_stop: no trace was started");
    if (intervals == NULL || count == NULL)
        return fy_fail(f, FERRY_EINVAL, "trace_stop: a result is missing");
    trace_end(f, trace);
    *intervals = trace->intervals;
    *count = trace->count;
    return 0;
}

int fy_trace_file_init(ferry *f)
{
    enum { INTERVALS = 16384 };
    const char *folder = fy_env_get("FERRY_TRACE");
    if (folder == NULL)
        return 0;
    f->file = fy_calloc(1, sizeof(*f->file));
    if (f->file == NULL)
        return FERRY_ENOMEM;
    f->file->folder = folder;
    f->file->opened_ns = f->head.account.stamp_ns;
    return trace_begin(f, &f->file->trace, INTERVALS, 0);
}

void fy_trace_file_fini(ferry *f)
{
    if (f->file != NULL)
        fy_trace_fini(&f->file->trace);
    free(f->file);
    f->file = NULL;
}

int fy_trace_file_write(ferry *f)
{
    if (f->file == NULL)
        return 0;
    trace_end(f, &f->file->trace);
    return f->head.profile->printer->trace(f);
}
