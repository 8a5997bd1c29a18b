/* Boot: opens the rank that this process is, or starts the ranks that it is to start (place.h).
 *
 * A port that FERRY_PORT names, other than shm and mpi, starts its ranks itself (fy_port_entry): so
 * does the simulator, sim. Else it takes the first of these that there is:
 * - a place given by Ferry's launcher,
 * - ranks as threads of this process,
 * - another launcher's job, or a communicator of the caller's, joined through port mpi,
 * - a number of ranks to start here,
 * - one rank.
 *
 * A program never runs as N jobs of one rank.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/crash.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "core/place.h"
#include "core/rank.h"
#include "launch/join.h"
#include "launch/launch.h"
#include "port/nodes/table.h"
#include "port/plugin.h"
#include "port/sim/sim.h"

static void unmap(void *arg)
{
    fy_segment_unmap(arg);
}

/* Joins a mapped segment, which stays the caller's. */
static int join_segment(fy_segment *segment, int rank, fy_port **out)
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
    *out = port;
    return 0;
}

/* Opens rank `rank` of a mapped segment, which stays the caller's. */
static int open_rank(fy_segment *segment, int rank, const ferry_options *options, ferry **out)
{
    fy_port *port;
    int error = join_segment(segment, rank, &port);
    if (error != 0)
        return error;
    fy_shm_compute_set(port, fy_compute_read());
    error = fy_rank_create(port, options, out);
    if (error == 0 && rank == 0)
        fy_env_warn_unknown();
    return error;
}

static int create_segment(const ferry_options *options, int ranks, int ranks_max, fy_segment **out)
{
    const fy_shm_options shm = {.ranks = ranks,
                                .ranks_max = ranks_max,
                                .heap_bytes = options->heap_bytes,
                                .ring_slots = options->ring_slots,
                                .ring_bytes = options->ring_bytes};
    int fd;
    int error = fy_segment_create(&shm, &fd);
    if (error != 0)
        return error;
    error = fy_segment_map(fd, out);
    if (error == 0)
        fy_segment_keep(*out, fd);
    else
        close(fd);
    return error;
}

/* Keeps a rank that was opened with the segment, or unmaps that. */
static int keep(int error, fy_segment *segment, ferry *const *f)
{
    if (error != 0) {
        fy_segment_unmap(segment);
        return error;
    }
    (*f)->after_close = unmap;
    (*f)->after_close_arg = segment;
    return 0;
}

/* Opens the rank that a running job gives to this process. */
static int join(const fy_place *where, const ferry_options *options, ferry **out)
{
    fy_ticket ticket;
    fy_segment *segment;
    int error = fy_ticket_get(where->join, &ticket);
    if (error != 0)
        return error;
    error = fy_segment_map(ticket.segment_fd, &segment);
    if (error == 0) {
        error = fy_ticket_settle(&ticket, segment);
        if (error == 0) {
            error = open_rank(segment, ticket.rank, options, out);
            return keep(error, segment, out);
        }
        fy_segment_unmap(segment);
    }
    fy_ticket_return(&ticket);
    return error;
}

/* Opens the rank of a process that is one rank. */
static int open_process(const fy_place *where, const ferry_options *options, ferry **out)
{
    fy_segment *segment;
    if (where->join != NULL)
        return join(where, options, out);
    int error = where->launched ? fy_segment_map(where->fd, &segment)
                                : create_segment(options, 1, 0, &segment);
    if (error != 0)
        return error;
    if (where->launched)
        fy_launch_settle(where->fd, where->socket);
    if (where->launched && where->socket >= 0)
        fy_launch_link(segment, where->socket);
    error = open_rank(segment, where->launched ? where->rank : 0, options, out);
    return keep(error, segment, out);
}

static int read_mpi(const fy_place *where, const ferry_options *options, fy_mpi_options *out)
{
    uint64_t share = 1;
    *out = (fy_mpi_options){.communicator = options->communicator,
                            .announced = where->announced,
                            .library = fy_env_get("FERRY_MPI"),
                            .shm = {.ranks_max = where->ranks_max,
                                    .heap_bytes = options->heap_bytes,
                                    .ring_slots = options->ring_slots,
                                    .ring_bytes = options->ring_bytes}};
    int error = fy_env_number(FY_ENV_MPI_SHM, &share);
    out->share = share == 1;
    out->compute = fy_compute_read();
    return error;
}

/* Says why a job of another launcher cannot be joined, and what said that it is one. */
static int refuse(const fy_place *where, int error)
{
    char reason[400];
    if (where->variable == NULL || (error != FERRY_ELAUNCH && error != FERRY_ENOTSUP))
        return error;
    snprintf(reason, sizeof(reason), "%s", fy_error_text());
    return fy_error_set(error,
                        "the environment (%s) says that this is one of %" PRIu64
                        " ranks, but the others cannot be reached: %s",
                        where->variable, where->announced, reason);
}

/* Opens the rank that an MPI library makes of this process. */
static int open_mpi(const fy_place *where, const ferry_options *options, ferry **out)
{
    const fy_nodes_table *table;
    fy_mpi_options mpi;
    fy_nodes_job *job;
    fy_port *port;
    int error = read_mpi(where, options, &mpi);
    if (error == 0)
        error = refuse(where, fy_nodes_port_find(&table));
    if (error == 0)
        error = refuse(where, table->open_mpi(&mpi, &job, &port));
    /* A rank that fails after this point does not leave the job, which would wait for the others:
     * its process ends, and the launcher ends the rest. */
    if (error == 0)
        error = fy_rank_create(port, options, out);
    if (error != 0)
        return error;
    (*out)->after_close = table->leave;
    (*out)->after_close_arg = job;
    (*out)->abort = table->abort;
    if ((*out)->rank == 0)
        fy_env_warn_unknown();
    return 0;
}

/* Finds the port that FERRY_PORT names, and what it is started with. */
static int find_port(const char *name, const ferry_options *options, const fy_port_entry **out,
                     fy_port_settings *settings)
{
    char plugin[64], reason[400];
    const void *table;
    uint64_t ranks = 1;
    int error = fy_env_number_within(FY_ENV_RANKS, 1, INT_MAX, &ranks);
    *settings = (fy_port_settings){.ranks = (int)ranks,
                                   .heap_bytes = options->heap_bytes,
                                   .ring_slots = options->ring_slots,
                                   .ring_bytes = options->ring_bytes,
                                   .communicator = options->communicator,
                                   .error_set = fy_error_set};
    if (error != 0 || strcmp(name, "sim") == 0)
        return error != 0 ? error : fy_sim_find(out);
    snprintf(plugin, sizeof(plugin), "port-%s", name);
    error = fy_plugin_open(plugin, FY_PORT_SYMBOL, FY_PORT_VERSION, false, &table);
    if (error == 0) {
        *out = table;
        return 0;
    }
    snprintf(reason, sizeof(reason), "%s", fy_error_text());
    return fy_error_set(
        FERRY_ELAUNCH,
        "FERRY_PORT is \"%s\"; expected shm, mpi or sim, or the name of a port in a "
        "plug-in: %s",
        name, reason);
}

/* Opens the rank that a port with a launcher of its own makes of this process. */
static int open_named(const fy_port_entry *entry, const fy_port_settings *settings,
                      const ferry_options *options, ferry **out)
{
    fy_port *port;
    int error = entry->open(settings, &port);
    if (error == 0)
        error = fy_rank_create(port, options, out);
    if (error == 0 && (*out)->rank == 0)
        fy_env_warn_unknown();
    return error;
}

static int open_by_name(const char *name, const ferry_options *options, ferry **out)
{
    const fy_port_entry *entry;
    fy_port_settings settings;
    int error = find_port(name, options, &entry, &settings);
    if (error == 0 && entry->open == NULL)
        error = fy_error_set(FERRY_ELAUNCH,
                             "open: FERRY_PORT=%s runs only programs of ferry_main, "
                             "whose ranks can share a process",
                             name);
    return error != 0 ? error : open_named(entry, &settings, options, out);
}

int ferry_open(const ferry_options *options, ferry **out)
{
    if (out == NULL)
        return fy_error_set(FERRY_EINVAL, "open: no place for the result");
    fy_place where;
    ferry_options o;
    fy_streams_reserve();
    int error = fy_options_read(options, &o);
    const char *name = fy_place_port();
    if (error == 0 && name != NULL)
        return open_by_name(name, &o, out);
    if (error == 0)
        error = fy_place_find(&where);
    if (error != 0)
        return error;
    if (where.threads)
        return fy_error_set(FERRY_ELAUNCH,
                            "open: %s=1 makes ranks threads of one process, which "
                            "only programs of ferry_main can be",
                            FY_ENV_THREADS);
    if (where.mpi || (o.communicator != NULL && !where.launched))
        return open_mpi(&where, &o, out);
    if (!where.launched && where.join == NULL && (where.ranks > 1 || where.join_socket != NULL))
        return fy_error_set(FERRY_ELAUNCH,
                            "open: %s is set, but only programs of ferry_main start ranks "
                            "themselves; start this one with \"ferry run -n %d\"",
                            where.ranks > 1 ? FY_ENV_RANKS : FY_ENV_RANKS_JOIN, where.ranks);
    return open_process(&where, &o, out);
}

/* A call of ferry_main, for its ranks. */
typedef struct program {
    int argc;
    char **argv;
    ferry_rank_main *rank_main;
    ferry_options options;
    fy_segment *segment;         /* of ranks that are threads */
    struct rank_thread *threads; /* by rank */
    atomic_flag ending;          /* a thread has failed and ends the process */
} program;

static int failed(int rank)
{
    fy_log_line(rank, "%s", fy_error_text());
    return EXIT_FAILURE;
}

/* Runs the program on an open rank, and closes it. A rank that failed leaves without waiting for
 * the others: its status ends the job. */
static int run_and_close(ferry *f, const program *p)
{
    f->kept_by_main = true;
    int status = p->rank_main(f, p->argc, p->argv);
    if (status != 0 && (status & 0xff) == 0)
        status = EXIT_FAILURE; /* the system keeps 8 bits, and would tell of success */
    if (f->left) {
        fy_rank_destroy(f);
        return status;
    }
    if (status != 0) {
        fy_loss_end(f, status);
        if (f->after_close != unmap)
            f->after_close = NULL; /* port mpi would wait for the others */
        fy_rank_destroy(f);
        return status;
    }
    return fy_rank_close(f) == 0 ? 0 : EXIT_FAILURE;
}

/* A fy_crash_fn. */
static void describe_rank(void *arg, const void *address, char *out, size_t size)
{
    const ferry *f = arg;
    (void)address;
    int length = snprintf(out, size, "rank %d", f->rank);
    if (f->ops->diagnosis.describe != NULL)
        f->ops->diagnosis.describe(f->port, out + length, size - (size_t)length);
}

static int run_rank(ferry *f, const program *p)
{
    fy_crash *crash = fy_crash_watch(describe_rank, f);
    int status = run_and_close(f, p);
    fy_crash_unwatch(crash);
    return status;
}

static int run_process(const fy_place *where, const program *p)
{
    ferry *f;
    int error =
        where->mpi ? open_mpi(where, &p->options, &f) : open_process(where, &p->options, &f);
    if (error != 0)
        return failed(where->launched ? where->rank : -1);
    return run_rank(f, p);
}

/* A child of the launcher continues here; its place stands in the environment. */
static int run_child(void *arg, int rank)
{
    (void)rank;
    fy_place where;
    return fy_place_find(&where) != 0 ? failed(-1) : run_process(&where, arg);
}

static int launch(const fy_place *where, program *p)
{
    const fy_shm_options shm = {.ranks = where->ranks,
                                .ranks_max = where->ranks_max,
                                .heap_bytes = p->options.heap_bytes,
                                .ring_slots = p->options.ring_slots,
                                .ring_bytes = p->options.ring_bytes};
    const fy_launch_plan plan = {
        .shm = &shm, .join = where->join_socket, .child = run_child, .arg = p};
    int status = fy_launch(&plan);
    return status < 0 ? failed(-1) : status;
}

/* One rank that is a thread. */
typedef struct rank_thread {
    program *program;
    fy_thread_handle handle;
    int rank;
    bool started;
} rank_thread;

static void *run_thread(void *arg)
{
    const rank_thread *t = arg;
    ferry *f;
    int status = open_rank(t->program->segment, t->rank, &t->program->options, &f) != 0
                     ? failed(t->rank)
                     : run_rank(f, t->program);
    if (status == 0)
        return NULL;
    /* The others may wait for this rank for ever; as with processes, the job ends, and the first
     * says so. relaxed: the flag guards nothing */
    if (atomic_flag_test_and_set_explicit(&t->program->ending, memory_order_relaxed))
        return NULL;
    fy_log_line(t->rank, "ended with status %d; the job ends", status);
    fflush(NULL);
    _exit(status);
}

static int start_thread(program *p, int rank)
{
    rank_thread *t = &p->threads[rank];
    *t = (rank_thread){.program = p, .rank = rank};
    int error = fy_thread_start(&t->handle, run_thread, t);
    t->started = error == 0;
    return error;
}

/* A fy_spawner. */
static int spawn_ranks_threads(void *arg, int first, int count, char *const argv[])
{
    if (argv != NULL)
        return fy_error_set(FERRY_ENOTSUP,
                            "ranks that are threads of one process run no program but their own");
    for (int rank = first; rank < first + count; rank++)
        if (start_thread(arg, rank) != 0) {
            failed(rank);
            fflush(NULL);
            _exit(EXIT_FAILURE);
        }
    return 0;
}

/* A rank is started by one with a lower number, which has done so when it ends. */
static void join_threads(program *p, int places)
{
    for (int rank = 0; rank < places; rank++)
        if (p->threads[rank].started)
            fy_thread_join(&p->threads[rank].handle);
}

static int run_threads(const fy_place *where, program *p)
{
    int error = create_segment(&p->options, where->ranks, where->ranks_max, &p->segment);
    if (error != 0)
        return failed(-1);
    int places = fy_segment_ranks(p->segment);
    p->threads = fy_calloc((size_t)places, sizeof(*p->threads));
    if (p->threads == NULL)
        fy_error_set(FERRY_ENOMEM, "no memory for %d threads", places);
    int status = p->threads == NULL ? failed(-1) : 0;
    if (status == 0 && places > where->ranks)
        fy_segment_spawner_set(p->segment, spawn_ranks_threads, p);
    for (int rank = 0; status == 0 && rank < where->ranks; rank++)
        if (start_thread(p, rank) != 0) {
            failed(rank);
            fflush(NULL);
            _exit(EXIT_FAILURE); /* the ranks already started wait for the missing ones */
        }
    if (status == 0)
        join_threads(p, places);
    free(p->threads);
    fy_segment_unmap(p->segment);
    return status;
}

/* A fy_port_main. */
static int run_port_rank(void *arg, fy_port *port)
{
    const program *p = arg;
    fy_port_info info;
    port->ops->transport.query(port, &info);
    ferry *f;
    if (fy_rank_create(port, &p->options, &f) != 0)
        return failed(info.rank);
    return run_and_close(f, p); /* the port watches its process as a whole */
}

static int run_named(const char *name, program *p)
{
    const fy_port_entry *entry;
    fy_port_settings settings;
    ferry *f;
    int error = find_port(name, &p->options, &entry, &settings);
    if (error == 0 && entry->run == NULL)
        error = open_named(entry, &settings, &p->options, &f);
    if (error != 0)
        return failed(-1);
    if (entry->run == NULL)
        return run_rank(f, p);
    fy_env_warn_unknown();
    int status = entry->run(&settings, run_port_rank, p);
    return status < 0 ? failed(-1) : status;
}

int ferry_main(int argc, char **argv, ferry_rank_main *rank_main, const ferry_options *options)
{
    program p = {.argc = argc, .argv = argv, .rank_main = rank_main, .ending = ATOMIC_FLAG_INIT};
    fy_place where;
    if (rank_main == NULL) {
        fy_error_set(FERRY_EINVAL, "ferry_main: no function of the rank given");
        return failed(-1);
    }
    fy_streams_reserve();
    if (fy_options_read(options, &p.options) != 0)
        return failed(-1);
    const char *name = fy_place_port();
    if (name != NULL)
        return run_named(name, &p);
    if (fy_place_find(&where) != 0)
        return failed(-1);
    if (where.threads)
        return run_threads(&where, &p);
    bool starts = where.ranks > 1 || where.ranks_max > 1 || where.join_socket != NULL;
    if (!where.launched && !where.mpi && where.join == NULL && starts)
        return launch(&where, &p);
    return run_process(&where, &p);
}
