/* Node: the ranks of a job that share memory with this one, and the death of any of them. */
#ifndef FY_MPI_NODE_H
#define FY_MPI_NODE_H

#include <stdatomic.h>

#include "port/mpi/binding.h"
#include "port/shm/shm.h"

typedef struct fy_mpi_node {
    fy_segment *segment;
    int count; /* ranks, this one included */
    int self;  /* this rank's place among them */
    int *ranks;
    int32_t *pids;
    int fd; /* of the segment of a job that is all on this node, for `ferry why`; else -1 */
} fy_mpi_node;

/* Finds the ranks of this node and maps a segment with them; alone when `share` is false, or when
 * they cannot reach each other's descriptors, which is logged. Collective over `comm`. On failure
 * an FERRY_E code with fy_error_set. */
int fy_mpi_node_form(const fy_mpi_binding *mpi, fy_mpi_comm *comm, const fy_shm_options *shm,
                     bool share, fy_mpi_node *out);
void fy_mpi_node_free(fy_mpi_node *node);

/* Under Ferry's launcher deaths are the launcher's to notice; here nobody else does. A thread
 * sleeps until the next rank of the node ends, marks it dead if it had not left, says so, and goes
 * on with the one after that: together the watches see every death that one rank survives. */
typedef struct fy_mpi_watch fy_mpi_watch;

/* Starts the watch once all ranks of the node have joined. Borrows `node` until fy_mpi_watch_stop.
 * NULL when there is nobody to watch or the system has no way to. */
fy_mpi_watch *fy_mpi_watch_start(const fy_mpi_node *node);
/* Returns whether it has seen a death. Takes `watch`, which may be NULL. */
bool fy_mpi_watch_stop(fy_mpi_watch *watch);

#endif
