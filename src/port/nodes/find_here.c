/* For programs that are linked to the static library: port nodes is in them. */
#include "port/nodes/table.h"

int fy_nodes_port_find(const fy_nodes_table **out)
{
    *out = &fy_nodes_functions;
    return 0;
}
