/* Joined process: the port of a rank that joined a job over several nodes later.
 *
 * It is port shm, on the segment of its node. In this segment a relay (relay.h) fills the places of
 * ranks on other nodes. The only difference from port shm: memory at such a place does not belong
 * to the rank of the place. */
#ifndef FY_NODES_JOINER_H
#define FY_NODES_JOINER_H

#include "port/shm/shm.h"

/* Changes `port`, which has joined `segment`, into the port of a joined process. Its close undoes
 * that. FERRY_ENOMEM with fy_error_set. [application thread] */
int fy_nodes_joiner(fy_segment *segment, fy_port *port);

/* The error of `spawn_ranks` in such a job, for an `error` of port shm. */
int fy_nodes_spawn_ranks_error(int error, int count, int numbers);

#endif
