/* Port nodes over MPI, for ranks that an MPI library's launcher has started.
 *
 * MPI brings the ranks of a node together; there they talk through port shm. When all ranks are on
 * one node, the port is port shm itself, and MPI is not called between open and leave.
 *
 * Thread level: FUNNELED when the launcher says that one node holds all ranks, SERIALIZED
 * otherwise: the helper thread calls MPI too, under a lock of the port's. When the program has
 * initialised MPI itself, it may call MPI while the helper does, so a helper is refused below
 * MULTIPLE. */
#ifndef FY_MPI_OPEN_H
#define FY_MPI_OPEN_H

#include "port/nodes/open.h"

#define FY_ENV_MPI_SHM "FERRY_MPI_SHM" /* "0": ranks of a node use MPI between them too */

typedef struct fy_mpi_options {
    const void *communicator; /* an MPI_Comm, by its address; NULL: MPI_COMM_WORLD */
    uint64_t announced;       /* ranks of the job as the launcher's environment says; 0: nothing */
    const char *library;      /* the MPI library's name (find.h); NULL: as fy_mpi_wanted says */
    fy_shm_options shm;       /* as in fy_nodes_options */
    fy_compute compute;
    bool share; /* the ranks of a node use shared memory */
} fy_mpi_options;

/* Joins the job. Collective over the communicator. Gives `*job`, freed with fy_nodes_leave after
 * the port was closed, which finalises MPI if this call initialised it. FERRY_ELAUNCH: the ranks
 * cannot be reached; fy_error_text says which library was missing. */
int fy_mpi_open(const fy_mpi_options *options, fy_nodes_job **job, fy_port **port);

#endif
