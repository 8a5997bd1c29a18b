/* For the shared library: a job that no MPI library's launcher has started needs none of it. */
#include "port/mpi/open.h"
#include "port/plugin.h"

int fy_mpi_port_find(const fy_mpi_table **out)
{
    const void *table;
    int error = fy_plugin_open("port-mpi", FY_MPI_SYMBOL, FY_PORT_VERSION, false, &table);
    if (error == 0)
        *out = table;
    return error;
}
