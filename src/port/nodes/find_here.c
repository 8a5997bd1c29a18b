/* For programs that have port nodes in them: those linked to the static library. */
#include "port/nodes/table.h"

int fy_nodes_port_find(const fy_nodes_table **out)
{
    *out = &fy_nodes_functions;
    return 0;
}
