/* For the shared library: port nodes is a plug-in, which a job on one machine does not need. */
#include "port/nodes/table.h"
#include "port/plugin.h"

int fy_nodes_port_find(const fy_nodes_table **out)
{
    const void *table;
    int error = fy_plugin_open("port-nodes", FY_NODES_SYMBOL, FY_PORT_VERSION, false, &table);
    if (error == 0)
        *out = table;
    return error;
}
