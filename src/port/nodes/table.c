#include "port/nodes/table.h"

#include "port/nodes/joiner.h"

const fy_nodes_table fy_nodes_functions = {FY_PORT_VERSION, fy_mpi_open, fy_nodes_leave,
                                           fy_nodes_abort, fy_nodes_joiner};
