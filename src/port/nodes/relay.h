/* Relay: passes on what ranks that joined later, on this node, and ranks of other nodes send each
 * other. In a job over several nodes that may grow, the first process of each node is one.
 *
 * Later ranks are processes that the binding does not know; they have the node's segment, in which
 * every number of the job has a place. The relay is a thread that fills the places of ranks
 * elsewhere. It takes the frames that later ranks send there and sends them over the binding in
 * their name. It puts those that come for them into the rings from those places. It tells other
 * nodes which ranks have come and gone here, and marks here those that have there. It is idle while
 * no later rank is there.
 *
 * Invariants: of a rank that comes, its arrival is told before its frames; of one that leaves, its
 * end after them. The ports of the places are this thread's alone; its part of the binding, and the
 * endpoints, are under the port's lock. */
#ifndef FY_NODES_RELAY_H
#define FY_NODES_RELAY_H

#include "port/nodes/port_state.h"

typedef struct fy_nodes_relay fy_nodes_relay;

/* Starts the relay of this node as `p->relay`, ended with fy_nodes_relay_stop. With fy_error_set.
 * [application thread, before a helper runs] */
int fy_nodes_relay_start(nodes_port *p);
/* Whether every rank of this node has left, later ones too, and all other nodes were told so. */
bool fy_nodes_relay_is_done(const fy_nodes_relay *relay);
/* Ends the thread. */
void fy_nodes_relay_stop(fy_nodes_relay *relay);
/* After that, and when the binding is done with what was sent. */
void fy_nodes_relay_free(fy_nodes_relay *relay);

/* Where messages for a later rank of this node go; NULL without memory. With the lock. */
endpoint *fy_nodes_relay_end(fy_nodes_relay *relay, int number);

/* Whether every rank of this node, later ones and those that are still to come included, has left
 * or died. Any process of the node may ask. */
bool fy_node_is_empty(const fy_node *node, int world);

#endif
