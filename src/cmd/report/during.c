/* Cuts a run down to one phase: from the first task of a handler to the end of its last. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cmd/report/trace.h"

typedef struct phase {
    uint64_t from_ns, to_ns; /* of the job's clock */
} phase;

static uint64_t clamp(phase at, uint64_t ns)
{
    return ns < at.from_ns ? at.from_ns : ns > at.to_ns ? at.to_ns : ns;
}

static void phase_widen(phase *at, const trace_rank *rank, const char *handler)
{
    for (size_t i = 0; i < rank->stretch_count; i++) {
        const trace_stretch *v = &rank->stretches[i];
        const char *name = rank->handlers[v->handler];
        if (v->kind != TRACE_TASK || name == NULL || strcmp(name, handler) != 0)
            continue;
        uint64_t from = rank->open_ns + v->start_ns;
        uint64_t to = rank->open_ns + trace_stretch_end(rank, i);
        at->from_ns = from < at->from_ns ? from : at->from_ns;
        at->to_ns = to > at->to_ns ? to : at->to_ns;
    }
}

static void cut(trace_rank *rank, phase at)
{
    uint64_t open = clamp(at, rank->open_ns), close = clamp(at, rank->close_ns);
    size_t kept = 0;
    for (size_t i = 0; i < rank->stretch_count; i++) {
        trace_stretch v = rank->stretches[i]; /* a copy: `kept` may write over it */
        uint64_t begin = rank->open_ns + v.start_ns,
                 whole = trace_stretch_end(rank, i) - v.start_ns;
        uint64_t from = clamp(at, begin), to = clamp(at, begin + whole);
        if (from >= to)
            continue;
        if (to - from < whole)
            v.cpu_ns = (uint64_t)ceil((double)v.cpu_ns / (double)whole * (double)(to - from));
        v.start_ns = from - open;
        rank->stretches[kept++] = v;
    }
    rank->stretch_count = kept;
    rank->open_ns = open;
    rank->close_ns = close;
    kept = 0;
    for (size_t i = 0; i < rank->move_count; i++)
        if (rank->moves[i].time_ns == clamp(at, rank->moves[i].time_ns))
            rank->moves[kept++] = rank->moves[i];
    rank->move_count = kept;
}

bool trace_run_during(trace_run *run, const char *handler, char error[TRACE_ERROR_BYTES])
{
    phase at = {.from_ns = UINT64_MAX};
    for (int rank = 0; rank < run->ranks; rank++)
        phase_widen(&at, &run->rank[rank], handler);
    if (at.from_ns >= at.to_ns) {
        char known[512];
        trace_handlers_list(run, known, sizeof(known));
        (void)snprintf(error, TRACE_ERROR_BYTES,
                       "%s: no task of a handler \"%s\" is in this run; handlers with tasks: %s",
                       run->folder, handler, known);
        return false;
    }
    for (int rank = 0; rank < run->ranks; rank++)
        if (run->rank[rank].present)
            cut(&run->rank[rank], at);
    run->start_ns = at.from_ns;
    run->end_ns = at.to_ns;
    run->during = handler;
    return true;
}
