/* Port mpi, as boot sees it: a job of ranks that an MPI library's launcher has started.
 *
 * MPI brings the ranks of a node together; there they talk through port shm. When all ranks are on
 * one node, the port is port shm itself, and MPI is not called between open and leave. Else a port
 * over both: shm for the node's ranks, messages of MPI for the others.
 *
 * Thread level: FUNNELED when the launcher says that one node holds all ranks, SERIALIZED
 * otherwise: the helper thread calls MPI too, under a lock of the port's. When the program has
 * initialised MPI itself, it may call MPI while the helper does, so a helper is refused below
 * MULTIPLE. */
#ifndef FY_MPI_OPEN_H
#define FY_MPI_OPEN_H

#include "base/shared.h"
#include "port/shm/shm.h"

#define FY_ENV_MPI_SHM "FERRY_MPI_SHM" /* "0": ranks of a node use MPI between them too */

typedef struct fy_mpi_options {
    const void *communicator; /* an MPI_Comm, by its address; NULL: MPI_COMM_WORLD */
    uint64_t announced;       /* ranks of the job as the launcher's environment says; 0: nothing */
    const char *library;      /* the MPI library's name (find.h); NULL: as fy_mpi_wanted says */
    fy_shm_options shm;       /* of the node's segment; `ranks` is not looked at, `ranks_max` where
                                 one node holds all */
    fy_compute compute;
    bool share; /* the ranks of a node use shared memory */
} fy_mpi_options;

typedef struct fy_mpi_job fy_mpi_job;

/* Joins the job. Collective over the communicator. Gives `*job`, freed with fy_mpi_leave after the
 * port was closed. FERRY_ELAUNCH: the ranks cannot be reached; fy_error_text says which library was
 * missing. */
int fy_mpi_open(const fy_mpi_options *options, fy_mpi_job **job, fy_port **port);

/* Waits until every rank has closed its port, and finalises MPI if fy_mpi_open initialised it.
 * Collective. Takes a fy_mpi_job. */
void fy_mpi_leave(void *job);

/* Ends the whole job at once. Takes a fy_mpi_job; returns if MPI cannot. */
void fy_mpi_abort(void *job, int status);

/* The port as boot finds it: in the same file, or in the plug-in "port-mpi" (port/plugin.h). */
typedef struct fy_mpi_table {
    uint32_t version; /* FY_PORT_VERSION */
    int (*open)(const fy_mpi_options *options, fy_mpi_job **job, fy_port **port);
    void (*leave)(void *job);
    void (*abort)(void *job, int status);
    /* For a rank that was started in a job over several nodes, and has joined the segment of its
     * own: has `port` say so, and reach the others. FERRY_ENOMEM with fy_error_set. */
    int (*joiner)(fy_segment *segment, fy_port *port);
} fy_mpi_table;

#define FY_MPI_SYMBOL "fy_mpi_functions"
FY_SHARED extern const fy_mpi_table fy_mpi_functions;

/* FERRY_ELAUNCH with fy_error_set: there is no plug-in. */
int fy_mpi_port_find(const fy_mpi_table **out);

#endif
