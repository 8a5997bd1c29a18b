/* Binding: the few calls of an MPI library that port mpi makes, as a table.
 *
 * Each MPI library has its own mpi.h and its own numbers, so the table is compiled once per library
 * into a plug-in, ferry-port-<name>.so, which is opened at run time (find.h). Ferry itself knows
 * none of them. Functions return 0 or an error of the library's, for `describe`.
 *
 * Threads: as the level says that was asked for at `start`; the table has no state of its own. */
#ifndef FY_MPI_BINDING_H
#define FY_MPI_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FY_MPI_BINDING_SYMBOL "ferry_mpi_binding"

/* Ordered: each allows what those before it allow. */
typedef enum fy_mpi_level {
    FY_MPI_SINGLE,
    FY_MPI_FUNNELED,
    FY_MPI_SERIALIZED,
    FY_MPI_MULTIPLE,
} fy_mpi_level;

typedef struct fy_mpi_comm fy_mpi_comm;

/* A send or receive in flight; all zero means none. */
typedef struct fy_mpi_request {
    uint64_t word;
} fy_mpi_request;

#define FY_MPI_ANY (-1)

typedef struct fy_mpi_binding {
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
    void (*describe)(int error, char *out, size_t size);

    /* Duplicates the MPI_Comm at `communicator`, or MPI_COMM_WORLD when NULL. Collective. Gives
     * `*out`, freed with comm_close. */
    int (*comm_open)(const void *communicator, fy_mpi_comm **out);
    /* The ranks of `comm` that can share memory with the caller, in their order. Collective. */
    int (*comm_node)(fy_mpi_comm *comm, fy_mpi_comm **out);
    void (*comm_close)(fy_mpi_comm *comm);
    void (*comm_place)(const fy_mpi_comm *comm, int *rank, int *ranks);
    /* Collects `size_bytes` at `mine` of each rank in `all`. Collective. */
    int (*allgather)(fy_mpi_comm *comm, const void *mine, size_t size_bytes, void *all);

    /* Starts a send; the request is none when it is over at once. */
    int (*send)(fy_mpi_comm *comm, const void *data, size_t size_bytes, int rank, int tag,
                fy_mpi_request *request);
    /* Starts a receive; from any rank with FY_MPI_ANY. */
    int (*receive)(fy_mpi_comm *comm, void *data, size_t size_bytes, int rank, int tag,
                   fy_mpi_request *request);
    /* Whether it is over; then the request is none, and for receives `*source` and `*size_bytes`
     * say what came. Both may be NULL. */
    int (*test)(fy_mpi_request *request, bool *done, int *source, size_t *size_bytes);
    /* Ends a receive that nothing has come for. */
    void (*cancel)(fy_mpi_request *request);
    /* Ends all processes of MPI's job. */
    void (*abort)(int status);
    /* The same, while others may be in `finish`. */
    void (*abort_closing)(int status);
} fy_mpi_binding;

#endif
