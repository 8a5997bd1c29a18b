#include "port/mpi/open.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "port/mpi/find.h"
#include "port/mpi/node.h"
#include "port/mpi/port_state.h"
#include "port/mpi/relay.h"
#include "port/shm/layout.h"

struct fy_mpi_job {
    const fy_mpi_binding *mpi;
    fy_mpi_comm *comm;
    bool started; /* MPI was initialised here */
    bool threads; /* a thread of Ferry's may call MPI */
    bool queries; /* SIGUSR1 asks */
    uint64_t quantum_us;
    fy_mpi_level level;
    int rank, ranks;
    fy_mpi_node node;
    fy_mpi_watch *watch;
    mpi_port *port; /* NULL when the port is port shm itself */
};

static int mpi_failed(const fy_mpi_job *job, const char *call, int error)
{
    char text[256];
    job->mpi->describe(error, text, sizeof(text));
    return fy_error_set(FERRY_ELAUNCH, "open: %s: %s", call, text);
}

/* Whether the launcher says that one node holds all ranks. */
static bool is_one_node(void)
{
    static const char *const pairs[][2] = {{"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"},
                                           {"MPI_LOCALNRANKS", "PMI_SIZE"}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        uint64_t here = 0, all = 1;
        if (fy_env_number_within(pairs[i][0], 1, INT32_MAX, &here) == 0 &&
            fy_env_number_within(pairs[i][1], 1, INT32_MAX, &all) == 0 && here == all)
            return true;
    }
    return false;
}

static int start(const fy_mpi_options *options, fy_mpi_job *job)
{
    const char *name = options->library != NULL ? options->library : fy_mpi_wanted();
    if (name == NULL && options->announced > 1)
        return fy_error_set(FERRY_ELAUNCH,
                            "the launcher offers neither PMI nor PMIx, and the program "
                            "has loaded no MPI library (srun: add --mpi=pmix)");
    job->quantum_us = 200;
    int error = fy_env_number("FERRY_QUANTUM_US", &job->quantum_us);
    if (error != 0)
        return error;
    error = fy_mpi_find(name == NULL ? fy_mpi_names[0] : name, &job->mpi);
    if (error != 0 && name == NULL)
        error = fy_mpi_find(fy_mpi_names[1], &job->mpi);
    if (error != 0)
        return error;
    bool initialized, finalized;
    job->mpi->state(&initialized, &finalized);
    if (finalized)
        return fy_error_set(FERRY_ELAUNCH,
                            "open: MPI was finalised in this process, and cannot begin again; "
                            "initialise it yourself to open more than once");
    job->queries = fy_mpi_queries_open();
    job->level = options->share && is_one_node() ? FY_MPI_FUNNELED : FY_MPI_SERIALIZED;
    error = job->mpi->start(&job->level, &job->started);
    return error != 0 ? mpi_failed(job, "MPI_Init_thread", error) : 0;
}

/* A job in which each rank is alone in a world of its own must not begin, nor one with more ranks
 * than it may ever have. */
static int check_world(const fy_mpi_options *options, const fy_mpi_job *job)
{
    int most = options->shm.ranks_max;
    if (most != 0 && most < job->ranks)
        return fy_error_set(FERRY_EINVAL,
                            "open: at most %d ranks (FERRY_RANKS_MAX): must be %d to %d", most,
                            job->ranks, FY_RANKS_MAX);
    if (options->communicator != NULL || options->announced <= (uint64_t)job->ranks)
        return 0;
    char library[128];
    job->mpi->library(library, sizeof(library));
    return fy_error_set(FERRY_ELAUNCH,
                        "the launcher announces %" PRIu64 " ranks, but %s knows of %d; the "
                        "launcher belongs to another MPI library (FERRY_MPI=openmpi or mpich names "
                        "one)",
                        options->announced, library, job->ranks);
}

static int meet(fy_mpi_job *job)
{
    int32_t one = 1;
    int32_t *all = calloc((size_t)job->ranks, sizeof(*all));
    if (all == NULL)
        return fy_error_set(FERRY_ENOMEM, "open: no memory for %d ranks", job->ranks);
    int error = job->mpi->allgather(job->comm, &one, sizeof(one), all);
    if (error != 0)
        error = mpi_failed(job, "MPI_Allgather", error);
    for (int i = 0; error == 0 && i < job->ranks; i++)
        if (all[i] != one)
            error = fy_error_set(FERRY_ELAUNCH, "open: rank %d runs on another kind of machine", i);
    free(all);
    return error;
}

/* Joins the node's segment, and makes the port over it when there are other nodes. */
static int join(const fy_mpi_options *options, fy_mpi_job *job, fy_port **port)
{
    fy_port *near;
    int place = fy_mpi_place(&job->node, job->node.self);
    shm_rank *self = rank_at(job->node.segment->base, (uint32_t)place);
    if (job->node.count < job->ranks && job->node.numbers == 0)
        /* relaxed: nobody asks a rank that has not joined */
        atomic_store_explicit(&self->in_job, (uint64_t)job->ranks << 32 | (uint32_t)(job->rank + 1),
                              memory_order_relaxed);
    int error = fy_shm_join(job->node.segment, place, &near);
    if (error != 0)
        return error;
    fy_shm_compute_set(near, options->compute);
    /* A rank that fails from here on leaves the others waiting, and the launcher ends them. */
    error = meet(job);
    if (error == 0 && job->node.count < job->ranks)
        error = fy_mpi_port_create(job->mpi, job->comm, &job->node, near, job->threads,
                                   job->started, &job->port);
    if (error == 0 && fy_mpi_is_relay(&job->node))
        error = fy_mpi_relay_start(job->port);
    if (error != 0) {
        near->ops->transport.close(near);
        if (job->port != NULL) {
            job->port->closed = true;
            (void)fy_mpi_port_destroy(job->port);
        }
        return error;
    }
    if (job->port != NULL)
        job->port->quantum_ns = job->quantum_us * 1000;
    *port = job->port != NULL ? &job->port->port : near;
    job->watch = fy_mpi_watch_start(&job->node, job->queries);
    return 0;
}

int fy_mpi_open(const fy_mpi_options *options, fy_mpi_job **out, fy_port **port)
{
    fy_mpi_job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return fy_error_set(FERRY_ENOMEM, "open: no memory for a job");
    int error = start(options, job);
    if (error != 0)
        goto free_job;
    error = job->mpi->comm_open(options->communicator, &job->comm);
    if (error != 0) {
        error = mpi_failed(job, "MPI_Comm_dup", error);
        goto finish_mpi;
    }
    job->mpi->comm_place(job->comm, &job->rank, &job->ranks);
    job->threads =
        job->level == FY_MPI_MULTIPLE || (job->started && job->level >= FY_MPI_SERIALIZED);
    const fy_mpi_growth growth = {.ranks_max = options->shm.ranks_max, .threads = job->threads};
    error = check_world(options, job);
    if (error == 0)
        error = fy_mpi_node_form(job->mpi, job->comm, &options->shm, options->share, &growth,
                                 &job->node);
    if (error != 0)
        goto close_comm;
    error = join(options, job, port);
    if (error != 0)
        goto free_node;
    *out = job;
    return 0;

free_node:
    fy_mpi_node_free(&job->node);
close_comm:
    job->mpi->comm_close(job->comm);
finish_mpi:
    if (job->started)
        job->mpi->finish();
free_job:
    if (job->queries)
        fy_mpi_queries_close();
    free(job);
    return error;
}

/* Whether one that MPI knows has died on this node. */
static bool saw_death(const fy_mpi_job *job)
{
    bool dead = false;
    for (int i = 0; i < job->node.count; i++) {
        uint32_t place = (uint32_t)fy_mpi_place(&job->node, i);
        dead = dead || fy_shm_state(job->node.segment, place) == SHM_DEAD;
    }
    return dead;
}

/* Whether ranks of this node are there still. */
static bool waits_near(const fy_mpi_job *job)
{
    if (job->node.numbers != 0)
        return !fy_mpi_node_is_empty(&job->node, job->ranks) ||
               (job->port->relay != NULL && !fy_mpi_relay_is_done(job->port->relay));
    bool waits = false;
    for (uint32_t place = 0; place < job->node.segment->ranks; place++)
        waits = waits || fy_shm_state(job->node.segment, place) == SHM_JOINED;
    return waits;
}

/* Waits for those that go on, silently: MPI ends for all at once. False: a rank has died. */
static bool linger(fy_mpi_job *job)
{
    enum { YIELDS = 200, PAUSE_MIN_NS = 50000, PAUSE_MAX_NS = 1000000 };
    uint64_t pause_ns = PAUSE_MIN_NS;
    int yields = 0;
    for (;;) {
        bool dead = saw_death(job);
        bool near = waits_near(job);
        bool far = job->port != NULL && fy_mpi_port_linger(job->port);
        if (dead || (!near && !far))
            return !dead;
        if (yields < YIELDS) {
            yields++;
            sched_yield();
        } else {
            fy_clock_sleep_until(fy_clock_now_ns() + pause_ns);
            pause_ns = pause_ns * 2 < PAUSE_MAX_NS ? pause_ns * 2 : PAUSE_MAX_NS;
        }
    }
}

void fy_mpi_leave(void *arg)
{
    fy_mpi_job *job = arg;
    /* The watch goes on meanwhile: others may be seen by it alone. */
    bool whole = linger(job);
    whole = !fy_mpi_watch_stop(job->watch, whole) && whole;
    if (job->queries)
        fy_mpi_queries_close();
    if (job->port != NULL && job->port->relay != NULL)
        fy_mpi_relay_stop(job->port->relay);
    if (job->port != NULL && whole && !fy_mpi_port_destroy(job->port)) {
        fy_log_line(job->rank, "a message is lost, and MPI_Finalize would wait for it forever: "
                               "the job ends here with status 1");
        job->mpi->abort_closing(EXIT_FAILURE);
        whole = false;
    }
    fy_mpi_node_free(&job->node);
    /* With a dead rank these would wait for ever: the launcher ends what is left of the job. */
    if (whole) {
        job->mpi->comm_close(job->comm);
        if (job->started)
            job->mpi->finish();
    }
    free(job);
}

void fy_mpi_abort(void *arg, int status)
{
    const fy_mpi_job *job = arg;
    job->mpi->abort(status);
}
