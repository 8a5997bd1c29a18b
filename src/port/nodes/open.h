/* Port nodes: a job of ranks on several nodes, over a binding (binding.h).
 *
 * The binding brings the ranks of a node together; there they talk through port shm. When all ranks
 * are on one node, the port is port shm itself, and the binding is not called between open and
 * leave. Else a port over both: shm for the node's ranks, messages of the binding for the others.
 */
#ifndef FY_NODES_OPEN_H
#define FY_NODES_OPEN_H

#include "port/nodes/binding.h"
#include "port/nodes/child.h"
#include "port/shm/shm.h"

/* The arguments by which a binding opens the port. It fills all but the last part. */
typedef struct fy_nodes_options {
    const fy_nodes_binding *binding; /* lent until leave */
    fy_nodes_net *net;               /* of all ranks */
    bool threads;               /* a thread of Ferry's may call the binding beside the program's */
    bool owned;                 /* nobody but Ferry calls it, and leave ends it */
    bool share;                 /* the ranks of a node use shared memory */
    fy_nodes_launcher launcher; /* what ranks that are started later must not inherit */
    fy_shm_options shm;         /* of the node's segment; `ranks` is not looked at, `ranks_max`
                                   where one node holds all */
    fy_compute compute;

    bool queries; /* fy_nodes_begin's */
    uint64_t quantum_us;
} fy_nodes_options;

typedef struct fy_nodes_job fy_nodes_job;

/* To be called before the binding starts threads: reads the environment, and makes SIGUSR1 a
 * status query until fy_nodes_leave. Where the job is not opened, fy_nodes_end undoes it.
 * FERRY_EINVAL with fy_error_set. [application thread] */
int fy_nodes_begin(fy_nodes_options *options);
void fy_nodes_end(const fy_nodes_options *options);

/* Joins the job. Collective. Takes the net on success. Gives `*job`, freed with fy_nodes_leave
 * after the port was closed. FERRY_ELAUNCH: a call of the binding has failed. With fy_error_set.
 * [application thread] */
int fy_nodes_open(const fy_nodes_options *options, fy_nodes_job **job, fy_port **port);

/* Waits until every rank has closed its port, and closes the net; leaves it where it is owned.
 * Collective. Takes a fy_nodes_job. [application thread] */
void fy_nodes_leave(void *job);

/* Ends the whole job at once. Takes a fy_nodes_job; returns if the binding cannot. */
void fy_nodes_abort(void *job, int status);

#endif
