/* Port nodes: a job of ranks on several nodes, over a binding (binding.h).
 *
 * The binding connects all ranks. The ranks of a node also share memory and use port shm. If all
 * ranks are on one node, the port is port shm itself, and the binding is not called between open
 * and leave. Else the port uses both: shm for the node's ranks, messages of the binding for the
 * others. */
#ifndef FY_NODES_OPEN_H
#define FY_NODES_OPEN_H

#include "port/nodes/binding.h"
#include "port/nodes/child.h"
#include "port/shm/shm.h"

/* The arguments with which a binding opens the port. It fills all but the last part. */
typedef struct fy_nodes_options {
    const fy_nodes_binding *binding; /* lent until leave */
    fy_nodes_net *net;               /* of all ranks */
    bool threads; /* a thread of Ferry may call the binding besides the program's */
    bool owned;   /* the program does not call the network itself; leave ends it */
    bool share;   /* the ranks of a node use shared memory */
    /* Its traces, which ranks that are started later must not inherit. */
    fy_nodes_launcher launcher;
    fy_shm_options shm; /* of the node's segment; `ranks` is ignored, `ranks_max` counts if one node
                           has all ranks */
    fy_compute compute;

    bool queries; /* set by fy_nodes_begin */
    uint64_t quantum_us;
} fy_nodes_options;

typedef struct fy_nodes_job fy_nodes_job;

/* Call it before the binding starts threads. Reads the environment, and makes SIGUSR1 a status
 * query until fy_nodes_leave. If the job is not opened, fy_nodes_end undoes it. FERRY_EINVAL with
 * fy_error_set. [application thread] */
int fy_nodes_begin(fy_nodes_options *options);
void fy_nodes_end(const fy_nodes_options *options);

/* Joins the job. Collective. Takes the net on success. Gives `*job`, freed with fy_nodes_leave
 * after the port was closed. FERRY_ELAUNCH: a call of the binding has failed. With fy_error_set.
 * [application thread] */
int fy_nodes_open(const fy_nodes_options *options, fy_nodes_job **job, fy_port **port);

/* Waits until every rank has closed its port, and closes the net; if it is `owned`, ends the
 * network too. Collective. Takes a fy_nodes_job. [application thread] */
void fy_nodes_leave(void *job);

/* Ends the whole job immediately. Takes a fy_nodes_job. Returns if the binding cannot do that. */
void fy_nodes_abort(void *job, int status);

#endif
