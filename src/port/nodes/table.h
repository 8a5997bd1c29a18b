/* Port nodes as port/open finds it: in the program, or in the plug-in "port-nodes"
 * (port/plugin.h). */
#ifndef FY_NODES_TABLE_H
#define FY_NODES_TABLE_H

#include "base/shared.h"
#include "port/shm/shm.h"

typedef struct fy_nodes_table {
    uint32_t version; /* FY_PORT_VERSION */
    /* Opens the rank that an MPI library makes of this process, in a job of `announced` ranks as
     * the launcher's environment says (0: it does not say). As `open` of fy_port_entry. */
    int (*open_mpi)(const fy_port_settings *settings, uint64_t announced, fy_port_rank *out);
    /* For a rank that was started in a job over several nodes, and has joined the segment of its
     * node: changes `port`, so that it reaches the other nodes. FERRY_ENOMEM with fy_error_set. */
    int (*joiner)(fy_segment *segment, fy_port *port);
} fy_nodes_table;

#define FY_NODES_SYMBOL "fy_nodes_functions"
FY_SHARED extern const fy_nodes_table fy_nodes_functions;

/* FERRY_ELAUNCH with fy_error_set: there is no plug-in. */
int fy_nodes_port_find(const fy_nodes_table **out);

#endif
