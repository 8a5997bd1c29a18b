/* For the shared library: few programs are simulated, and those need not start fast. */
#include "port/plugin.h"
#include "port/sim/sim.h"

int fy_sim_find(const fy_port_entry **out)
{
    const void *table;
    int error = fy_plugin_open("port-sim", FY_PORT_SYMBOL, FY_PORT_VERSION, false, &table);
    if (error == 0)
        *out = table;
    return error;
}
