/* Loopback: the binding over sockets between processes of one machine, as if they were on several
 * nodes: FERRY_PORT=loopback FERRY_RANKS=4 PROGRAM. For tests without MPI, and to try on one
 * machine what happens between nodes.
 *
 * The process that calls fy_loopback_run is the launcher: it makes a socket per rank, starts a
 * process per rank, and watches them. The rank reads its own socket, all others write to it, so no
 * file has a name and nothing is to be removed. A rank that fails or is killed ends the job, as
 * under an MPI library's launcher. */
#ifndef FY_LOOPBACK_H
#define FY_LOOPBACK_H

#include <stdatomic.h>

#include "port/nodes/binding.h"
#include "port/port.h"

#define FY_ENV_LOOPBACK_NODES "FERRY_LOOPBACK_NODES"
#define FY_LOOPBACK_RANKS_MAX 256

/* The state that the processes of a job share. Ranks of a node have consecutive numbers. */
typedef struct fy_loopback_job {
    int ranks, nodes;
    int *in, *out;     /* by rank: where it reads, and where the others write to it */
    atomic_bool *left; /* by rank, in shared memory: it has left the job in order */
} fy_loopback_job;

/* The `run` of fy_port_entry: one process per rank, FY_ENV_LOOPBACK_NODES nodes, as many as
 * ranks by default. Returns the exit status of the first rank that failed; 128 and the number of
 * the signal for one that was killed. In a rank's process it does not return. [main thread, no
 * other thread exists] */
int fy_loopback_run(const fy_port_settings *settings, fy_port_main *rank_main, void *arg);

/* The first rank of a node. */
static inline int fy_loopback_first(const fy_loopback_job *job, int node)
{
    return (int)((long)node * job->ranks / job->nodes);
}

/* socket.c: the table, and the net of rank `rank`; borrows `job` until `leave`. NULL: no memory.
 * [in the process of the rank] */
extern const fy_nodes_binding fy_loopback_binding;
fy_nodes_net *fy_loopback_net_open(const fy_loopback_job *job, int rank);

#endif
