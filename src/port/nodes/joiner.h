/* Joined process: the port of a rank that joined a job over several nodes later. It is port shm's,
 * on a segment in which a relay (relay.h) fills the places of ranks elsewhere, and differs in what
 * those places are not: memory that is theirs. */
#ifndef FY_NODES_JOINER_H
#define FY_NODES_JOINER_H

#include "port/shm/shm.h"

/* Makes a joined process's of `port`, which has joined `segment`; its close undoes that.
 * FERRY_ENOMEM with fy_error_set. [application thread] */
int fy_nodes_joiner(fy_segment *segment, fy_port *port);

/* The error of `spawn_ranks` on a node of such a job, for `error` of port shm's. */
int fy_nodes_spawn_ranks_error(int error, int count, int numbers);

#endif
