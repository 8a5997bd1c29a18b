/* Node: the ranks of a job that share memory with this one, and the watch for their deaths. */
#ifndef FY_NODES_NODE_H
#define FY_NODES_NODE_H

#include <stdatomic.h>

#include "port/nodes/binding.h"
#include "port/nodes/child.h"
#include "port/shm/shm.h"

typedef struct fy_node {
    fy_segment *segment;
    int count; /* ranks, this one included */
    int self;  /* this rank's place among them */
    int *ranks;
    int32_t *pids;
    int fd; /* of the segment, for ranks that are started later and for `ferry why` */
    /* In a job over several nodes that may grow: how many numbers it has; else 0. Each number has a
     * place in the segment of each node. The place after them is the relay's. */
    int numbers;
    int *leaders; /* in such a job: the first rank of each node, ascending, */
    int leader_count;
    int *homes;                   /* and for each number the first rank of its node */
    int later_first, later_count; /* this node's numbers of ranks that join later */
} fy_node;

/* Whether this rank could take part in a job over several nodes that may grow. */
typedef struct fy_nodes_growth {
    int ranks_max; /* how many ranks it has room for; 0: no room to grow */
    bool threads;  /* a thread of Ferry's may call the binding */
} fy_nodes_growth;

/* Finds the ranks of this node and maps a segment with them. This rank is alone if `share` is
 * false, or if they cannot open each other's descriptors, which is logged. If the job is all on
 * this node, the segment has places for ranks that join later as `shm` says, else for as many as
 * all ranks have room for (`growth`). Collective over `net`. On failure an FERRY_E code with
 * fy_error_set. */
int fy_node_form(const fy_nodes_binding *binding, fy_nodes_net *net, const fy_shm_options *shm,
                 bool share, const fy_nodes_growth *growth, fy_node *out);
void fy_node_free(fy_node *node);

/* The place in the segment of the node's rank at `index`. */
static inline int fy_node_place(const fy_node *node, int index)
{
    return node->numbers != 0 ? node->ranks[index] : index;
}

/* Whether this process passes on frames between ranks that joined later on this node and ranks of
 * other nodes. */
static inline bool fy_node_is_relay(const fy_node *node)
{
    return node->numbers != 0 && node->self == 0;
}

/* The watch: a thread that notices deaths. Under Ferry's own launcher the launcher notices deaths
 * and starts ranks. Here no other process does. The thread sleeps until the next rank of the node
 * ends. If that rank had not left, the thread marks it dead and tells the others. Then it watches
 * the rank after that one. Together the watches of a node see every death as long as one rank
 * survives.
 *
 * If the segment has free places, the thread also starts ranks, for this rank and for those that it
 * has started (launch/spawn.c), and handles their ends as the launcher does (launch/end.c). The
 * binding does not know these processes. Its launcher ends them by ending this process: they die
 * with it. */
typedef struct fy_nodes_watch fy_nodes_watch;

/* Makes SIGUSR1 a status query, until close. Returns false if the program uses SIGUSR1 itself; then
 * nothing must be closed. Called before the binding starts threads, so that they do not receive the
 * signal that the watch waits for. */
bool fy_nodes_queries_open(void);
void fy_nodes_queries_close(void);

/* The descriptor that becomes readable when somebody asks, -1: none. And the function to call then.
 * [the watch] */
int fy_nodes_query_fd(void);
void fy_nodes_query_answer(const fy_node *node, int fd);

/* Starts the watch, after all ranks of the node have joined. `queries`: status queries are open.
 * Borrows `launcher`, and `node` until fy_nodes_watch_stop. NULL: there is nothing to do, or the
 * system has no means for it. [application thread] */
fy_nodes_watch *fy_nodes_watch_start(const fy_node *node, const fy_nodes_launcher *launcher,
                                     bool queries);
/* Ends the watch. If the job is `whole` (no process that the binding connects has died), waits
 * first for the processes that the watch has started. If one of these ended with an error, it does
 * not return. Returns whether it has seen a death. Takes `watch`, which may be NULL. [application
 * thread] */
bool fy_nodes_watch_stop(fy_nodes_watch *watch, bool whole);

#endif
