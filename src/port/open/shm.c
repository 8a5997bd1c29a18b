/* Opens the rank that this process is in a job of one machine, or starts the ranks that it is to
 * start. It takes the first of these that there is:
 * - a place given by Ferry's launcher,
 * - ranks as threads of this process,
 * - a place in a running job, which this process asks for,
 * - a number of ranks to start here,
 * - one rank. */
#include <stdlib.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "launch/launch.h"
#include "port/nodes/table.h"
#include "port/open/list.h"

enum { ADDRESS_TRIES = 8 };

/* The place that the environment gives this process. */
typedef struct place {
    bool launched;           /* rank `rank` of the segment `fd`, of a job of `ranks` */
    bool threads;            /* `ranks` threads of this process */
    int ranks;               /* wished for, when it is none of these */
    int ranks_max;           /* with those that may join later; 0: no more than `ranks` */
    const char *join;        /* the folder of a running job to join; NULL: none */
    const char *join_socket; /* the folder by which others may join those `ranks`; NULL: none */
    int socket;              /* where this rank asks for more; -1: nowhere */
    int rank;
    int fd;
} place;

static bool is_launched(void)
{
    return fy_env_get(FY_ENV_JOB_FD) != NULL;
}

static bool is_threads(void)
{
    return fy_env_number_or(FY_ENV_THREADS, 0) == 1;
}

static bool detect(const fy_port_settings *settings)
{
    return is_launched() || is_threads() ||
           (settings->communicator == NULL && fy_env_get(FY_ENV_JOIN) != NULL);
}

static int read_place(place *out)
{
    uint64_t rank = 0, ranks = 1, ranks_max = 0;
    int error = fy_env_number_within(FY_ENV_RANKS, 1, FY_RANKS_MAX, &ranks);
    if (error == 0)
        error = fy_env_number_within(FY_ENV_RANK, 0, ranks - 1, &rank);
    if (error == 0)
        error = fy_env_number_within(FY_ENV_RANKS_MAX, 1, FY_RANKS_MAX, &ranks_max);
    out->fd = (int)fy_env_number_or(FY_ENV_JOB_FD, UINT64_MAX); /* no number: -1 */
    out->launched = out->fd >= 0;
    out->threads = !out->launched && is_threads();
    out->ranks = (int)ranks;
    out->ranks_max = (int)ranks_max;
    out->join = out->launched ? NULL : fy_env_get(FY_ENV_JOIN);
    out->join_socket = fy_env_get(FY_ENV_RANKS_JOIN);
    out->socket = (int)fy_env_number_or(FY_ENV_JOB_SOCKET, UINT64_MAX);
    out->rank = (int)rank;
    return error;
}

static int find_place(place *out)
{
    int error = read_place(out);
    if (error != 0 || out->launched)
        return error;
    if (fy_env_number_or(FY_ENV_JOB_PROCESS, 0) == (uint64_t)getpid())
        return fy_error_set(FERRY_ESTATE,
                            "open: this process was a rank before; expected one ferry_open");
    if (out->join != NULL && (out->threads || out->ranks > 1 || fy_port_is_named("mpi")))
        return fy_error_set(FERRY_ELAUNCH,
                            "%s is set: one process joins a job of port shm; it makes no ranks",
                            FY_ENV_JOIN);
    return out->threads ? fy_env_refuse_join() : 0;
}

static void unmap(void *arg)
{
    fy_segment_unmap(arg);
}

/* Joins a mapped segment, which stays the caller's. */
static int join_segment(fy_segment *segment, int rank, fy_compute compute, fy_port **out)
{
    const fy_nodes_table *table;
    fy_port *port;
    int error = fy_shm_join(segment, rank, &port);
    if (error != 0)
        return error;
    if (fy_segment_is_relayed(segment)) {
        error = fy_nodes_port_find(&table);
        if (error == 0)
            error = table->joiner(segment, port);
        if (error != 0) {
            port->ops->transport.close(port);
            return error;
        }
    }
    fy_shm_compute_set(port, compute);
    *out = port;
    return 0;
}

static fy_shm_options segment_options(const fy_port_settings *settings, const place *where)
{
    return (fy_shm_options){.ranks = where->ranks,
                            .ranks_max = where->ranks_max,
                            .heap_bytes = settings->heap_bytes,
                            .ring_slots = settings->ring_slots,
                            .ring_bytes = settings->ring_bytes};
}

/* Another thread may take the address that was free when the segment was made, for a job of its
 * own: then there may be another one. */
static int create_segment(const fy_shm_options *options, fy_segment **out)
{
    int left = ADDRESS_TRIES, error, fd;
    do {
        error = fy_segment_create(options, &fd);
        if (error != 0)
            break;
        error = fy_segment_map(fd, out);
        if (error == 0)
            fy_segment_keep(*out, fd);
        else
            close(fd);
    } while (error != 0 && --left > 0);
    return error;
}

/* Keeps a rank that was opened with the segment, or unmaps that. */
static int shm_keep(int error, fy_segment *segment, fy_port_rank *out)
{
    if (error != 0) {
        fy_segment_unmap(segment);
        return error;
    }
    out->leave = out->forget = unmap;
    out->job = segment;
    return 0;
}

/* Opens the rank that a running job gives to this process. */
static int shm_join(const char *folder, fy_compute compute, fy_port_rank *out)
{
    fy_segment *segment;
    int rank;
    int error = fy_launch_join(folder, &segment, &rank);
    return error != 0 ? error
                      : shm_keep(join_segment(segment, rank, compute, &out->port), segment, out);
}

/* Opens the rank of a process that is one rank. */
static int open_process(const place *where, const fy_port_settings *settings, fy_port_rank *out)
{
    fy_segment *segment;
    if (where->join != NULL)
        return shm_join(where->join, settings->compute, out);
    const fy_shm_options options = segment_options(settings, where);
    int error =
        where->launched ? fy_segment_map(where->fd, &segment) : create_segment(&options, &segment);
    if (error != 0)
        return error;
    if (where->launched) {
        fy_launch_settle(where->fd, where->socket);
        if (where->socket >= 0)
            fy_launch_link(segment, where->socket);
    }
    return shm_keep(join_segment(segment, where->rank, settings->compute, &out->port), segment,
                    out);
}

static int open_shm(const fy_port_settings *settings, fy_port_rank *out)
{
    place where;
    int error = find_place(&where);
    if (error != 0)
        return error;
    if (!where.launched && where.join == NULL &&
        (where.threads || where.ranks > 1 || where.join_socket != NULL))
        return fy_error_set(FERRY_ELAUNCH,
                            "open: %s is set, but only programs that call ferry_main start "
                            "ranks themselves; start this one with \"ferry run -n %d\"",
                            where.threads     ? FY_ENV_THREADS
                            : where.ranks > 1 ? FY_ENV_RANKS
                                              : FY_ENV_RANKS_JOIN,
                            where.ranks);
    return open_process(&where, settings, out);
}

/* A call of shm_run, for its ranks. */
typedef struct program {
    const fy_port_settings *settings;
    fy_port_main *rank_main;
    void *arg;
    fy_segment *segment; /* of ranks that are threads */
} program;

static int failed(int rank)
{
    fy_log_line(rank, "%s", fy_error_text());
    return EXIT_FAILURE;
}

static int run_process(const place *where, const program *p)
{
    fy_port_rank opened = {0};
    if (open_process(where, p->settings, &opened) != 0)
        return failed(where->launched ? where->rank : -1);
    int status = p->rank_main(p->arg, opened.port);
    opened.leave(opened.job);
    return status;
}

/* A child of the launcher continues here; its place stands in the environment. */
static int shm_run_child(void *arg, int rank)
{
    (void)rank;
    place where;
    return find_place(&where) != 0 ? failed(-1) : run_process(&where, arg);
}

static int launch(const place *where, program *p)
{
    const fy_shm_options shm = segment_options(p->settings, where);
    const fy_launch_plan plan = {
        .shm = &shm, .join = where->join_socket, .child = shm_run_child, .arg = p};
    return fy_launch(&plan);
}

/* A fy_launch_child, in a thread. */
static int run_thread(void *arg, int rank)
{
    const program *p = arg;
    fy_port *port;
    int error = join_segment(p->segment, rank, p->settings->compute, &port);
    return error != 0 ? failed(rank) : p->rank_main(p->arg, port);
}

static int run_threads(const place *where, program *p)
{
    const fy_shm_options options = segment_options(p->settings, where);
    int error = create_segment(&options, &p->segment);
    if (error != 0)
        return error;
    const fy_threads_plan plan = {.segment = p->segment,
                                  .ranks = where->ranks,
                                  .places = fy_segment_ranks(p->segment),
                                  .child = run_thread,
                                  .arg = p};
    error = fy_launch_threads(&plan);
    fy_segment_unmap(p->segment);
    return error;
}

static int shm_run(const fy_port_settings *settings, fy_port_main *rank_main, void *arg)
{
    program p = {.settings = settings, .rank_main = rank_main, .arg = arg};
    place where;
    int error = find_place(&where);
    if (error != 0)
        return error;
    if (where.threads)
        return run_threads(&where, &p);
    bool starts = where.ranks > 1 || where.ranks_max > 1 || where.join_socket != NULL;
    return !where.launched && where.join == NULL && starts ? launch(&where, &p)
                                                           : run_process(&where, &p);
}

const fy_port_entry fy_port_entry_shm = {
    .version = FY_PORT_VERSION, .detect = detect, .run = shm_run, .open = open_shm};
