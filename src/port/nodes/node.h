/* Node: the ranks of a job that share memory with this one, and the death of any of them. */
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
    /* The numbers of a job over several nodes that may grow; else 0. They are the places in the
     * segment of each node, and the one behind them is the relay's. */
    int numbers;
    int *leaders; /* then the first rank of each node, ascending, */
    int leader_count;
    int *homes;                   /* and by number the first rank of its node */
    int later_first, later_count; /* this node's numbers of ranks that join later */
} fy_node;

/* The needs of a job over several nodes that may grow, on every rank. */
typedef struct fy_nodes_growth {
    int ranks_max; /* 0: it has no room */
    bool threads;  /* a thread of Ferry's may call the binding */
} fy_nodes_growth;

/* Finds the ranks of this node and maps a segment with them; alone when `share` is false, or when
 * they cannot reach each other's descriptors, which is logged. The segment has places for ranks
 * that join later, as `shm` says, when the job is all on this node, or as many as all ranks have
 * room for (`growth`). Collective over `net`. On failure an FERRY_E code with fy_error_set. */
int fy_node_form(const fy_nodes_binding *binding, fy_nodes_net *net, const fy_shm_options *shm,
                 bool share, const fy_nodes_growth *growth, fy_node *out);
void fy_node_free(fy_node *node);

/* The place in the segment of the node's rank at `index`. */
static inline int fy_node_place(const fy_node *node, int index)
{
    return node->numbers != 0 ? node->ranks[index] : index;
}

/* Whether this process passes on what ranks that joined later have to do with other nodes. */
static inline bool fy_node_is_relay(const fy_node *node)
{
    return node->numbers != 0 && node->self == 0;
}

/* Under Ferry's launcher deaths are the launcher's to notice, and ranks are its to start; here
 * nobody else does. A thread sleeps until the next rank of the node ends, marks it dead if it had
 * not left, says so, and goes on with the one after that. Together the watches see every death that
 * one rank survives.
 *
 * Where the segment has places left, the thread also starts ranks,
 * for this one and for those that it has started (launch/spawn.c), and sees to their ends as
 * the launcher does (launch/end.c). They are processes that the binding does not know: its
 * launcher ends them by ending this one, with which they die. */
typedef struct fy_nodes_watch fy_nodes_watch;

/* From here on SIGUSR1 is a status query, until close; false: the program has use for it, and
 * nothing is to be closed. Called before the binding begins, whose threads are not to take what the
 * watch waits for. */
bool fy_nodes_queries_open(void);
void fy_nodes_queries_close(void);

/* A file that is readable when somebody asks, -1 for none; and what to do then. [the watch] */
int fy_nodes_query_fd(void);
void fy_nodes_query_answer(const fy_node *node, int fd);

/* Starts the watch once all ranks of the node have joined; `queries`: those are open. Borrows
 * `node` until fy_nodes_watch_stop, and `launcher`. NULL when there is nothing to do or the system
 * has no way to. [application thread] */
fy_nodes_watch *fy_nodes_watch_start(const fy_node *node, const fy_nodes_launcher *launcher,
                                     bool queries);
/* Ends it, after the processes that it has started when the job is `whole`: no process
 * that the binding connects has died. Does not return when one that it has started ended with an
 * error.
 * Returns whether it has seen a death. Takes `watch`, which may be NULL. [application thread] */
bool fy_nodes_watch_stop(fy_nodes_watch *watch, bool whole);

#endif
