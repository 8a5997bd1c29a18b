/* Bringing everything to rank 0: sub-domains by migration, accounts and timelines by requests. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INTERVALS_PER_REQUEST = 1024 };

static void on_account(ferry *f, int source, const ferry_message *message)
{
    mesh_program *p = ferry_user_data(f);
    if (message->size_bytes != sizeof *p->accounts)
        return;
    memcpy(&p->accounts[source], message->data, sizeof *p->accounts);
    p->account_count++;
}

static bool keep_interval(mesh_program *p, const mesh_interval *interval)
{
    if (p->interval_count == p->interval_room) {
        int64_t room = p->interval_room == 0 ? 4096 : 2 * p->interval_room;
        mesh_interval *more = realloc(p->intervals, (size_t)room * sizeof *more);
        if (more == NULL)
            return false;
        p->intervals = more;
        p->interval_room = room;
    }
    p->intervals[p->interval_count++] = *interval;
    return true;
}

/* The picture does without what there is no memory for. */
static void on_interval(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    mesh_program *p = ferry_user_data(f);
    const mesh_interval *interval = message->data;
    for (size_t i = 0; i < message->size_bytes / sizeof *interval; i++)
        if (!keep_interval(p, &interval[i]))
            return;
}

int mesh_register_collect(ferry *f, mesh_program *p)
{
    int error = ferry_handler_register(f, "account", on_account, &p->account);
    return error != 0 ? error : ferry_handler_register(f, "timeline", on_interval, &p->interval);
}

static mesh_load_kind kind_of(uint32_t activity)
{
    switch ((ferry_activity)activity) {
    case FERRY_TASK:
        return MESH_LOAD_BUSY;
    case FERRY_IDLE:
        return MESH_LOAD_IDLE;
    case FERRY_RUNTIME:
    case FERRY_MAIN:
        break;
    }
    return MESH_LOAD_RUNTIME;
}

/* What of an interval lies within the refinement, in seconds since it began. */
static bool clip(const mesh_program *p, int rank, const ferry_interval *at, mesh_interval *out)
{
    uint64_t start = at[0].start_ns > p->begin_ns ? at[0].start_ns : p->begin_ns;
    uint64_t end = at[1].start_ns < p->end_ns ? at[1].start_ns : p->end_ns;
    if (start >= end)
        return false;
    *out = (mesh_interval){.rank = rank,
                           .kind = kind_of(at[0].activity),
                           .start = (double)(start - p->begin_ns) / 1e9,
                           .end = (double)(end - p->begin_ns) / 1e9};
    return true;
}

static int send_timeline(ferry *f, mesh_program *p)
{
    const ferry_interval *intervals;
    size_t count;
    mesh_interval *part = malloc(INTERVALS_PER_REQUEST * sizeof *part);
    int error = part == NULL ? FERRY_ENOMEM : ferry_trace_stop(f, &intervals, &count);
    size_t filled = 0;
    for (size_t i = 0; error == 0 && i + 1 < count; i++) {
        filled += clip(p, ferry_rank(f), &intervals[i], &part[filled]);
        if (filled < INTERVALS_PER_REQUEST && i + 2 < count)
            continue;
        const ferry_message message = {
            .handler = p->interval, .data = part, .size_bytes = filled * sizeof *part};
        error = ferry_request_send(f, 0, &message, NULL);
        filled = 0;
    }
    free(part);
    return error;
}

static int send_account(ferry *f, mesh_program *p)
{
    const ferry_message message = {.handler = p->account,
                                   .data = &p->accounts[ferry_rank(f)],
                                   .size_bytes = sizeof *p->accounts};
    return ferry_request_send(f, 0, &message, NULL);
}

static int send_home(ferry *f, mesh_program *p)
{
    int error = 0;
    for (int32_t i = 0; ferry_rank(f) != 0 && i < p->start.subdomains && error == 0; i++)
        if (ferry_object_data(f, p->objects[i]) != NULL)
            error = ferry_object_move(f, p->objects[i], 0);
    return error;
}

int mesh_collect(ferry *f, mesh_program *p)
{
    int64_t times[2] = {-(int64_t)p->begin_ns, (int64_t)p->end_ns};
    int error = ferry_allreduce(f, FERRY_INT64, FERRY_MAX, times, times, 2);
    if (error != 0)
        return error;
    p->begin_ns = (uint64_t)-times[0];
    p->end_ns = (uint64_t)times[1];
    error = send_timeline(f, p);
    if (error == 0)
        error = send_account(f, p);
    if (error == 0)
        error = send_home(f, p);
    size_t expected = ferry_rank(f) == 0 ? (size_t)p->start.subdomains : 0;
    bool all = false;
    while (error == 0 && !all) {
        all = ferry_object_count(f) == expected &&
              (ferry_rank(f) != 0 || p->account_count == ferry_ranks(f));
        int handled = all ? 0 : ferry_wait(f, FERRY_FOREVER);
        error = handled < 0 ? handled : 0;
    }
    return error != 0 ? error : ferry_barrier(f);
}
