/* Opens the rank that an MPI library makes of this process, or a communicator of the caller's. */
#include <inttypes.h>
#include <stdio.h>

#include "base/env.h"
#include "base/error.h"
#include "launch/launch.h"
#include "port/nodes/table.h"
#include "port/open/list.h"

static bool detect(const fy_port_settings *settings)
{
    const char *variable;
    return settings->communicator != NULL || fy_env_foreign_ranks(&variable) > 1;
}

/* Says why a job of another launcher cannot be joined, and what said that it is one. */
static int mpi_refuse(const char *variable, uint64_t announced, int error)
{
    char reason[400];
    if (variable == NULL || (error != FERRY_ELAUNCH && error != FERRY_ENOTSUP))
        return error;
    snprintf(reason, sizeof(reason), "%s", fy_error_text());
    return fy_error_set(error,
                        "the environment (%s) says that this is one of %" PRIu64
                        " ranks, but the others cannot be reached: %s",
                        variable, announced, reason);
}

static int open_mpi(const fy_port_settings *settings, fy_port_rank *out)
{
    const fy_nodes_table *table;
    const char *variable;
    uint64_t announced = fy_env_foreign_ranks(&variable);
    int error = fy_env_refuse_join();
    if (error != 0)
        return error;
    error = fy_nodes_port_find(&table);
    if (error == 0)
        error = table->open_mpi(settings, announced, out);
    return mpi_refuse(variable, announced, error);
}

const fy_port_entry fy_port_entry_mpi = {
    .version = FY_PORT_VERSION, .detect = detect, .open = open_mpi};
