/* Relay: passes on what ranks that joined later, on this node, and ranks of other nodes send each
 * other. In a job over several nodes that may grow, the first process of each node is one.
 *
 * Later ranks are processes that MPI does not know; they have the node's segment, in which every
 * number of the job has a place. The relay is a thread that fills the places of ranks elsewhere: it
 * takes the frames that later ranks send there and sends them by MPI in their name, and puts those
 * that come for them into the rings from those places. It tells other nodes who has come and gone
 * here, and marks here who has there. It is idle while no later rank is there.
 *
 * Invariants: of a rank that comes, its arrival is told before its frames; of one that leaves, its
 * end after them. The ports of the places are this thread's alone; what it has of MPI, and the
 * endpoints, are under the port's lock. */
#ifndef FY_MPI_RELAY_H
#define FY_MPI_RELAY_H

#include "port/mpi/port_state.h"

typedef struct fy_mpi_relay fy_mpi_relay;

/* Starts the relay of this node as `p->relay`, ended with fy_mpi_relay_stop. With fy_error_set.
 * [application thread, before a helper runs] */
int fy_mpi_relay_start(mpi_port *p);
/* Whether every rank of this node has left, later ones too, and all other nodes were told so. */
bool fy_mpi_relay_is_done(const fy_mpi_relay *relay);
/* Ends the thread. */
void fy_mpi_relay_stop(fy_mpi_relay *relay);
/* After that, and when MPI is done with what was sent. */
void fy_mpi_relay_free(fy_mpi_relay *relay);

/* Where messages for a later rank of this node go; NULL without memory. With the lock. */
endpoint *fy_mpi_relay_end(fy_mpi_relay *relay, int number);

/* Whether every rank of this node, later ones and those that are still to come included, has left
 * or died. Of any process of it. */
bool fy_mpi_node_is_empty(const fy_mpi_node *node, int world);

#endif
