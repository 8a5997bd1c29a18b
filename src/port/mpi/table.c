#include "port/mpi/joiner.h"
#include "port/mpi/open.h"

const fy_mpi_table fy_mpi_functions = {FY_PORT_VERSION, fy_mpi_open, fy_mpi_leave, fy_mpi_abort,
                                       fy_mpi_joiner};
