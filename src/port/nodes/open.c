#include "port/nodes/open.h"

#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "port/nodes/node.h"
#include "port/nodes/port_state.h"
#include "port/nodes/relay.h"
#include "port/shm/layout.h"

struct fy_nodes_job {
    const fy_nodes_binding *binding;
    fy_nodes_net *net;
    bool owned, threads, queries; /* as in fy_nodes_options */
    uint64_t quantum_us;
    int rank, ranks;
    fy_node node;
    fy_nodes_watch *watch;
    nodes_port *port; /* NULL: the port is port shm itself */
};

int fy_nodes_begin(fy_nodes_options *options)
{
    options->quantum_us = 200;
    int error = fy_env_number("FERRY_QUANTUM_US", &options->quantum_us);
    if (error == 0)
        options->queries = fy_nodes_queries_open();
    return error;
}

void fy_nodes_end(const fy_nodes_options *options)
{
    if (options->queries)
        fy_nodes_queries_close();
}

/* A job must not begin with more ranks than it may ever have. */
static int check_ranks(const fy_nodes_options *options, const fy_nodes_job *job)
{
    int most = options->shm.ranks_max;
    if (most == 0 || most >= job->ranks)
        return 0;
    return fy_error_set(FERRY_EINVAL, "open: at most %d ranks (FERRY_RANKS_MAX): must be %d to %d",
                        most, job->ranks, FY_RANKS_MAX);
}

static int meet(fy_nodes_job *job)
{
    int32_t one = 1;
    int32_t *all = calloc((size_t)job->ranks, sizeof(*all));
    if (all == NULL)
        return fy_error_set(FERRY_ENOMEM, "open: no memory for %d ranks", job->ranks);
    int error = job->binding->allgather(job->net, &one, sizeof(one), all);
    if (error != 0)
        error = fy_nodes_failed(job->binding, "gathering a number of each rank", error);
    for (int i = 0; error == 0 && i < job->ranks; i++)
        if (all[i] != one)
            error = fy_error_set(FERRY_ELAUNCH, "open: rank %d runs on another kind of machine", i);
    free(all);
    return error;
}

/* Joins the node's segment. If there are other nodes, makes the port over both. */
static int job_join(const fy_nodes_options *options, fy_nodes_job *job, fy_port **port)
{
    fy_port *near;
    int place = fy_node_place(&job->node, job->node.self);
    shm_rank *self = rank_at(job->node.segment->base, (uint32_t)place);
    if (job->node.count < job->ranks && job->node.numbers == 0)
        /* relaxed: nobody asks a rank that has not joined */
        atomic_store_explicit(&self->in_job, (uint64_t)job->ranks << 32 | (uint32_t)(job->rank + 1),
                              memory_order_relaxed);
    int error = fy_shm_join(job->node.segment, place, &near);
    if (error != 0)
        return error;
    fy_shm_compute_set(near, options->compute);
    /* If a rank fails from here on, the others wait for it until the launcher ends them. */
    error = meet(job);
    if (error == 0 && job->node.count < job->ranks)
        error = fy_nodes_port_create(job->binding, job->net, &job->node, near, job->threads,
                                     job->owned, &job->port);
    if (error == 0 && fy_node_is_relay(&job->node))
        error = fy_nodes_relay_start(job->port);
    if (error != 0) {
        near->ops->transport.close(near);
        if (job->port != NULL) {
            job->port->closed = true;
            (void)fy_nodes_port_destroy(job->port);
        }
        return error;
    }
    if (job->port != NULL)
        (void)job->port->port.ops->host.quantum(&job->port->port, job->quantum_us * 1000);
    *port = job->port != NULL ? &job->port->port : near;
    job->watch = fy_nodes_watch_start(&job->node, &options->launcher, job->queries);
    return 0;
}

int fy_nodes_open(const fy_nodes_options *options, fy_nodes_job **out, fy_port **port)
{
    fy_nodes_job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return fy_error_set(FERRY_ENOMEM, "open: no memory for a job");
    job->binding = options->binding;
    job->net = options->net;
    job->owned = options->owned;
    job->threads = options->threads;
    job->queries = options->queries;
    job->quantum_us = options->quantum_us;
    job->binding->place(job->net, &job->rank, &job->ranks);
    const fy_nodes_growth growth = {.ranks_max = options->shm.ranks_max, .threads = job->threads};
    int error = check_ranks(options, job);
    if (error == 0)
        error = fy_node_form(job->binding, job->net, &options->shm, options->share, &growth,
                             &job->node);
    if (error != 0)
        goto free_job;
    error = job_join(options, job, port);
    if (error != 0)
        goto free_node;
    *out = job;
    return 0;

free_node:
    fy_node_free(&job->node);
free_job:
    free(job);
    return error;
}

/* Whether a rank of this node that the binding connects has died. */
static bool saw_death(const fy_nodes_job *job)
{
    bool dead = false;
    for (int i = 0; i < job->node.count; i++) {
        uint32_t place = (uint32_t)fy_node_place(&job->node, i);
        dead = dead || fy_shm_state(job->node.segment, place) == SHM_DEAD;
    }
    return dead;
}

/* Whether other ranks of this node have not left yet. */
static bool waits_near(const fy_nodes_job *job)
{
    if (job->node.numbers != 0)
        return !fy_node_is_empty(&job->node, job->ranks) ||
               (job->port->relay != NULL && !fy_nodes_relay_is_done(job->port->relay));
    bool waits = false;
    for (uint32_t place = 0; place < job->node.segment->ranks; place++)
        waits = waits || fy_shm_state(job->node.segment, place) == SHM_JOINED;
    return waits;
}

/* Waits, without a line, until the ranks that go on have left: the binding ends for all ranks
 * together. Returns false if a rank has died. */
static bool linger(fy_nodes_job *job)
{
    enum { YIELDS = 200, PAUSE_FIRST_NS = 50000 };
    uint64_t pause_ns = PAUSE_FIRST_NS;
    int yields = 0;
    for (;;) {
        bool dead = saw_death(job);
        bool near = waits_near(job);
        bool far = job->port != NULL && fy_nodes_port_linger(job->port);
        if (dead || (!near && !far))
            return !dead;
        if (yields < YIELDS) {
            yields++;
            sched_yield();
        } else {
            fy_clock_sleep_until(fy_clock_now_ns() + pause_ns);
            pause_ns = fy_pause_longer(pause_ns, PAUSE_MAX_NS);
        }
    }
}

void fy_nodes_leave(void *arg)
{
    fy_nodes_job *job = arg;
    /* The watch goes on meanwhile: this rank may be the only one that sees a death. */
    bool whole = linger(job);
    whole = !fy_nodes_watch_stop(job->watch, whole) && whole;
    if (job->queries)
        fy_nodes_queries_close();
    if (job->port != NULL && job->port->relay != NULL)
        fy_nodes_relay_stop(job->port->relay);
    if (job->port != NULL && whole && !fy_nodes_port_destroy(job->port)) {
        fy_log_line(job->rank, "a message is lost, and others would wait for it forever: "
                               "the job ends here with status 1");
        job->binding->abort_closing(EXIT_FAILURE);
        whole = false;
    }
    fy_node_free(&job->node);
    /* With a dead rank these calls would wait forever: the launcher ends the rest of the job. */
    if (whole && job->owned)
        job->binding->leave(job->net);
    else if (whole)
        job->binding->close(job->net);
    free(job);
}

void fy_nodes_abort(void *arg, int status)
{
    const fy_nodes_job *job = arg;
    job->binding->abort(status);
}
