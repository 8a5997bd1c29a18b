/* Library: the binding of one MPI library, and how MPI is started.
 *
 * Each MPI library has its own mpi.h and its own numbers, so the table is compiled once per library
 * into a plug-in, ferry-port-<name>.so, which is opened at run time (find.h). Ferry itself knows
 * none of them.
 *
 * Threads: as the level says that was asked for at `start`. */
#ifndef FY_MPI_LIBRARY_H
#define FY_MPI_LIBRARY_H

#include "port/nodes/binding.h"

#define FY_MPI_LIBRARY_SYMBOL "ferry_mpi_library"

/* Ordered: each allows what those before it allow. */
typedef enum fy_mpi_level {
    FY_MPI_SINGLE,
    FY_MPI_FUNNELED,
    FY_MPI_SERIALIZED,
    FY_MPI_MULTIPLE,
} fy_mpi_level;

/* Why a communicator cannot be used: it is MPI_COMM_NULL, or an inter-communicator. MPI's own
 * errors are above 0. */
typedef enum fy_mpi_refusal {
    FY_MPI_NO_COMMUNICATOR = -1,
    FY_MPI_BETWEEN_GROUPS = -2,
} fy_mpi_refusal;

typedef struct fy_mpi_library {
    uint32_t version; /* FY_PORT_VERSION */
    const char *name; /* "openmpi", "mpich" */

    /* The library's own name and version. At any time. */
    void (*library)(char *out, size_t size);
    /* Whether MPI has been initialised, and finalised, in this process. At any time. */
    void (*state)(bool *initialized, bool *finalized);
    /* Initialises MPI unless that was done. `*level` is what is wished for, then what there is;
     * `*started`: this call did it. */
    int (*start)(fy_mpi_level *level, bool *started);
    void (*finish)(void);
    /* Duplicates the MPI_Comm at `communicator`, or MPI_COMM_WORLD when NULL. Collective. Gives
     * `*out`, freed with the binding's `close`, or with `leave` where `start` did initialise.
     * Returns a number of MPI's, or one of fy_mpi_refusal. */
    int (*comm_open)(const void *communicator, fy_nodes_net **out);

    fy_nodes_binding binding;
} fy_mpi_library;

#endif
