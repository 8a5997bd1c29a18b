#include "port/nodes/table.h"

#include <inttypes.h>

#include "base/env.h"
#include "base/error.h"
#include "launch/launch.h"
#include "port/nodes/joiner.h"
#include "port/nodes/mpi/open.h"

/* FERRY_RANKS has no meaning for a program that no launcher of MPI has started. */
static int refuse_ranks(const fy_port_settings *settings, uint64_t announced)
{
    uint64_t ranks = 1;
    if (settings->communicator != NULL || announced > 1)
        return 0;
    int error = fy_env_number_within(FY_ENV_RANKS, 1, FY_RANKS_MAX, &ranks);
    return ranks <= 1 ? error
                      : fy_error_set(FERRY_ELAUNCH,
                                     "%s=%" PRIu64 " starts no ranks of port mpi; start the "
                                     "program with \"mpirun -n %" PRIu64 "\"",
                                     FY_ENV_RANKS, ranks, ranks);
}

static int open_mpi(const fy_port_settings *settings, uint64_t announced, fy_port_rank *out)
{
    uint64_t share = 1, ranks_max = 0;
    fy_mpi_options mpi = {.communicator = settings->communicator,
                          .announced = announced,
                          .library = fy_env_get("FERRY_MPI"),
                          .shm = {.heap_bytes = settings->heap_bytes,
                                  .ring_slots = settings->ring_slots,
                                  .ring_bytes = settings->ring_bytes},
                          .compute = settings->compute};
    fy_nodes_job *job;
    int error = refuse_ranks(settings, announced);
    if (error == 0)
        error = fy_env_number_within(FY_ENV_RANKS_MAX, 1, FY_RANKS_MAX, &ranks_max);
    if (error == 0)
        error = fy_env_number(FY_ENV_MPI_SHM, &share);
    mpi.shm.ranks_max = (int)ranks_max;
    mpi.share = share == 1;
    if (error == 0)
        error = fy_mpi_open(&mpi, &job, &out->port);
    if (error != 0)
        return error;
    out->leave = fy_nodes_leave;
    out->abort = fy_nodes_abort;
    out->job = job;
    return 0;
}

const fy_nodes_table fy_nodes_functions = {FY_PORT_VERSION, open_mpi, fy_nodes_joiner};
