#include "broken.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"

enum { RANKS_MAX = 64 };

static const fy_port_ops *right;
static fy_port_ops broken;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool woken[RANKS_MAX][FY_THREADS];

static int poll_returns_nothing(fy_port *port, fy_lane lane, int budget, fy_deliver *deliver,
                                void *context)
{
    (void)right->transport.poll(port, lane, budget, deliver, context);
    return 0;
}

/* The function and the context that a poll was given. */
typedef struct given {
    fy_deliver *deliver;
    void *context;
} given;

/* Delivers the next frame of a source though this one was left. */
static fy_verdict deliver_next_too(void *context, int source, const fy_frame *frame)
{
    const given *g = context;
    fy_verdict verdict = g->deliver(g->context, source, frame);
    if (verdict == FY_LEAVE && frame->kind != KIND_LAST && frame->words[0] % 3 == 0) {
        const fy_frame next = fy_tally_frame(frame->words[0] + 1, (fy_lane)frame->words[1]);
        (void)g->deliver(g->context, source, &next);
    }
    return verdict;
}

static int poll_passes_what_is_left(fy_port *port, fy_lane lane, int budget, fy_deliver *deliver,
                                    void *context)
{
    given g = {deliver, context};
    return right->transport.poll(port, lane, budget, deliver_next_too, &g);
}

static void wait_late(fy_port *port, fy_thread thread, uint64_t deadline_ns)
{
    const uint64_t late_ns = 350000000;
    right->transport.wait(port, thread,
                          deadline_ns > UINT64_MAX - late_ns ? deadline_ns : deadline_ns + late_ns);
}

static void wake(fy_port *port, fy_thread thread)
{
    woken[fy_info_of(port).rank % RANKS_MAX][thread] = true;
    right->transport.wake(port, thread);
}

static void wait_for_frames(fy_port *port, fy_thread thread, uint64_t deadline_ns)
{
    _Atomic bool *is_woken = &woken[fy_info_of(port).rank % RANKS_MAX][thread];
    do
        right->transport.wait(port, thread, deadline_ns);
    while (!*is_woken && right->host.now(port) < deadline_ns &&
           !right->transport.pending(port, FY_DATA) && !right->transport.pending(port, FY_CONTROL));
    *is_woken = false;
}

static void join_no_one(fy_port *port)
{
    (void)port;
}

static void rouse_no_one(fy_port *port, int rank)
{
    (void)port;
    (void)rank;
}

static void query_leaves(const fy_port *port, fy_port_info *info)
{
    right->transport.query(port, info);
    info->leaves = true;
}

static bool is(const char *how, const char *name)
{
    return strcmp(how, name) == 0;
}

static void break_tables(const char *how)
{
    broken = *right;
    if (is(how, "poll"))
        broken.transport.poll = poll_returns_nothing;
    else if (is(how, "left"))
        broken.transport.poll = poll_passes_what_is_left;
    else if (is(how, "late"))
        broken.transport.wait = wait_late;
    else if (is(how, "unseen"))
        broken.transport.wait = wait_for_frames, broken.transport.wake = wake;
    else if (is(how, "join"))
        broken.host.join = join_no_one;
    else if (is(how, "rouse"))
        broken.heap.rouse = rouse_no_one;
    else if (is(how, "leaves"))
        broken.transport.query = query_leaves;
    else if (is(how, "name"))
        broken.name = NULL;
    else if (is(how, "version"))
        broken.heap.version++;
    else if (is(how, "serve"))
        broken.transport.serve = NULL;
    else
        fprintf(stderr, "no mistake \"%s\"\n", how);
}

void fy_break(fy_port *port, const char *how)
{
    pthread_mutex_lock(&lock);
    if (right == NULL) {
        right = port->ops;
        break_tables(how);
    }
    port->ops = &broken;
    pthread_mutex_unlock(&lock);
}

void fy_mend(fy_port *port)
{
    port->ops = right;
}
