/* Relay: passes frames between ranks that joined later on this node and ranks of other nodes. In a
 * job over several nodes that may grow, the first process of each node is a relay.
 *
 * The binding does not know ranks that joined later. They have the node's segment, in which every
 * number of the job has a place. The relay is a thread that fills the places of ranks elsewhere:
 *
 * - It takes frames that later ranks send to such a place, and sends them by the binding in their
 *   name.
 * - It puts frames that come for later ranks into the rings of the sender's place.
 * - It tells other nodes which ranks have come and gone here.
 * - It marks in the segment which ranks have come and gone elsewhere.
 *
 * While there is no later rank, it is idle.
 *
 * Invariants: the arrival of a rank is told before its frames, and its end after them. Only this
 * thread uses the ports of the places. Its part of the binding, and the endpoints, are under the
 * port's lock. */
#ifndef FY_NODES_RELAY_H
#define FY_NODES_RELAY_H

#include "port/nodes/port_state.h"

typedef struct fy_nodes_relay fy_nodes_relay;

/* Starts the relay of this node as `p->relay`, ended with fy_nodes_relay_stop. Errors with
 * fy_error_set. [application thread, before a helper runs] */
int fy_nodes_relay_start(nodes_port *p);
/* Whether every rank of this node, also those that joined later, has left, and all other nodes were
 * told. */
bool fy_nodes_relay_is_done(const fy_nodes_relay *relay);
/* Ends the thread. */
void fy_nodes_relay_stop(fy_nodes_relay *relay);
/* Frees the relay, after fy_nodes_relay_stop, when the binding has sent everything. */
void fy_nodes_relay_free(fy_nodes_relay *relay);

/* The endpoint for messages to a later rank of this node; NULL without memory. [lock held] */
endpoint *fy_nodes_relay_end(fy_nodes_relay *relay, int number);

/* Whether every rank of this node has left or died, also those that joined later or are still
 * coming. Any process of the node may ask. */
bool fy_node_is_empty(const fy_node *node, int world);

#endif
