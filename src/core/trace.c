/* Trace: short stretches gather in a bucket that becomes one interval, of the activity that filled
 * most of it, as soon as it is as long as the resolution; a long stretch takes the bucket before it
 * along. When the record is full the resolution doubles and the record is merged anew, so that it
 * always covers the whole run. */
#include "core/trace.h"

#include <stdlib.h>
#include <string.h>

#include "core/rank.h"

enum { RESOLUTION_MIN_NS = 1000 };

static void append(fy_trace *trace, uint64_t start_ns, uint32_t activity, uint32_t handler);

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
}

static void flush_bucket(fy_trace *trace)
{
    uint32_t most = 0;
    for (uint32_t i = 1; i <= FERRY_MAIN; i++)
        if (trace->bucket_ns[i] > trace->bucket_ns[most])
            most = i;
    if (trace->bucket_ns[most] == 0)
        return;
    empty_bucket(trace);
    append(trace, trace->bucket_start_ns, most, most == FERRY_TASK ? trace->bucket_handler : 0);
}

void fy_trace_add(fy_trace *trace, uint64_t start_ns, uint64_t end_ns, ferry_activity activity,
                  uint32_t handler)
{
    uint64_t passed = end_ns - start_ns;
    if (passed == 0)
        return;
    uint64_t waiting = bucket_total(trace);
    if (waiting == 0)
        trace->bucket_start_ns = start_ns;
    if (passed >= trace->resolution_ns) {
        empty_bucket(trace);
        append(trace, trace->bucket_start_ns, activity, handler);
        trace->bucket_start_ns = end_ns;
        return;
    }
    trace->bucket_ns[activity] += passed;
    if (activity == FERRY_TASK)
        trace->bucket_handler = handler;
    if (waiting + passed >= trace->resolution_ns) {
        flush_bucket(trace);
        trace->bucket_start_ns = end_ns;
    }
}

/* Merges the record with twice the resolution. */
static void compact(fy_trace *trace, uint64_t end_ns)
{
    size_t count = trace->count;
    uint64_t start = trace->bucket_start_ns;
    trace->resolution_ns =
        trace->resolution_ns < RESOLUTION_MIN_NS ? RESOLUTION_MIN_NS : trace->resolution_ns * 2;
    trace->count = 0;
    for (size_t i = 0; i < count; i++) {
        /* Read before the merged record, which never runs ahead of `i`, may overwrite it. */
        ferry_interval interval = trace->intervals[i];
        uint64_t end = i + 1 < count ? trace->intervals[i + 1].start_ns : end_ns;
        fy_trace_add(trace, interval.start_ns, end, (ferry_activity)interval.activity,
                     interval.handler);
    }
    flush_bucket(trace);
    trace->bucket_start_ns = start;
}

static void append(fy_trace *trace, uint64_t start_ns, uint32_t activity, uint32_t handler)
{
    if (trace->count > 0) {
        const ferry_interval *last = &trace->intervals[trace->count - 1];
        if (last->activity == activity && last->handler == handler)
            return;
    }
    for (int i = 0; trace->count == trace->capacity && i < 64; i++)
        compact(trace, start_ns);
    if (trace->count < trace->capacity)
        trace->intervals[trace->count++] =
            (ferry_interval){.start_ns = start_ns, .activity = activity, .handler = handler};
}

void fy_trace_fini(fy_trace *trace)
{
    free(trace->intervals);
    *trace = (fy_trace){0};
}

int ferry_trace_start(ferry *f, size_t interval_max, uint64_t resolution_ns)
{
    enum { INTERVALS_MIN = 16 };
    if (interval_max < INTERVALS_MIN || interval_max > SIZE_MAX / sizeof(ferry_interval))
        return fy_fail(f, FERRY_EINVAL, "trace_start: %zu intervals; expected at least %d",
                       interval_max, INTERVALS_MIN);
    ferry_interval *intervals = malloc(interval_max * sizeof(*intervals));
    if (intervals == NULL)
        return fy_fail(f, FERRY_ENOMEM, "trace_start: no memory for %zu intervals", interval_max);
    fy_account_to(f, f->account.activity, f->account.handler);
    fy_trace_fini(&f->trace);
    f->trace = (fy_trace){.intervals = intervals,
                          .capacity = interval_max - 1, /* one is kept for the end */
                          .resolution_ns = resolution_ns,
                          .on = true,
                          .bucket_start_ns = f->account.stamp_ns};
    f->account.timed = true;
    return 0;
}

int ferry_trace_stop(ferry *f, const ferry_interval **intervals, size_t *count)
{
    fy_trace *trace = &f->trace;
    if (!trace->on)
        return fy_fail(f, FERRY_ESTATE, "trace_stop: no trace was started");
    fy_account_to(f, f->account.activity, f->account.handler);
    flush_bucket(trace);
    trace->on = false;
    trace->intervals[trace->count++] =
        (ferry_interval){.start_ns = f->account.stamp_ns, .activity = FERRY_MAIN};
    *intervals = trace->intervals;
    *count = trace->count;
    return 0;
}
