#include "port/nodes/mpi/open.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "port/nodes/mpi/find.h"

/* Variables that say that a process is an MPI launcher's. */
static const char *const launcher_variables[] = {"OMPI_", "ORTE_", "PRTE_",     "PMIX_",
                                                 "PMI_",  "HYDI_", "MPI_LOCAL", NULL};

/* This process's connection to the launcher; -1: none. */
static int launcher_connection(void)
{
    const char *text = getenv("PMI_FD");
    int fd = text == NULL ? -1 : atoi(text);
    return fd <= STDERR_FILENO ? -1 : fd;
}

/* Whether the launcher says that one node holds all ranks. */
static bool is_one_node(void)
{
    static const char *const pairs[][2] = {{"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"},
                                           {"MPI_LOCALNRANKS", "PMI_SIZE"}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        uint64_t here = 0, all = 1;
        if (fy_env_number_within(pairs[i][0], 1, INT32_MAX, &here) == 0 &&
            fy_env_number_within(pairs[i][1], 1, INT32_MAX, &all) == 0 && here == all)
            return true;
    }
    return false;
}

/* Opens the plug-in that FERRY_MPI names. */
static int find_named(const char *name, const fy_mpi_library **out)
{
    char reason[400];
    int error = fy_mpi_find(name, out);
    if (error == 0)
        return 0;
    snprintf(reason, sizeof(reason), "%s", fy_error_text());
    return fy_error_set(error, "FERRY_MPI is \"%s\"; expected %s or %s: %s", name, fy_mpi_names[0],
                        fy_mpi_names[1], reason);
}

/* Opens the plug-in of the library that is loaded, or of the launcher's. */
static int find_wanted(uint64_t announced, const fy_mpi_library **out)
{
    const char *name = fy_mpi_wanted();
    if (name == NULL && announced > 1)
        return fy_error_set(FERRY_ELAUNCH,
                            "the launcher offers neither PMI nor PMIx, and the program "
                            "has loaded no MPI library (srun: add --mpi=pmix)");
    int error = fy_mpi_find(name == NULL ? fy_mpi_names[0] : name, out);
    if (error != 0 && name == NULL)
        error = fy_mpi_find(fy_mpi_names[1], out);
    return error;
}

/* Opens the plug-in of the MPI library that this process needs. */
static int find_library(const fy_mpi_options *options, const fy_mpi_library **out)
{
    int error = options->library != NULL ? find_named(options->library, out)
                                         : find_wanted(options->announced, out);
    if (error != 0)
        return error;
    bool initialized, finalized;
    (*out)->state(&initialized, &finalized);
    if (finalized)
        return fy_error_set(FERRY_ELAUNCH,
                            "open: MPI was finalised in this process, and cannot begin again; "
                            "initialise it yourself to open more than once");
    if (options->communicator != NULL && !initialized)
        return fy_error_set(FERRY_EINVAL, "open: a communicator is given, but MPI_Init was not "
                                          "called; expected a program that has initialised MPI");
    return 0;
}

/* A job in which each rank is alone in a world of its own must not begin. */
static int check_world(const fy_mpi_options *options, const fy_mpi_library *mpi,
                       const fy_nodes_net *net)
{
    int rank, ranks;
    mpi->binding.place(net, &rank, &ranks);
    if (options->communicator != NULL || options->announced <= (uint64_t)ranks)
        return 0;
    char library[128];
    mpi->library(library, sizeof(library));
    return fy_error_set(FERRY_ELAUNCH,
                        "the launcher announces %" PRIu64 " ranks, but %s knows of %d; the "
                        "launcher belongs to another MPI library (FERRY_MPI=openmpi or mpich names "
                        "one)",
                        options->announced, library, ranks);
}

/* Opens the job once MPI runs; `o` is filled but for the net and what that allows. */
static int open_job(const fy_mpi_options *options, const fy_mpi_library *mpi, fy_mpi_level level,
                    fy_nodes_options *o, fy_nodes_job **job, fy_port **port)
{
    int error = mpi->comm_open(options->communicator, &o->net);
    if (error == FY_MPI_NO_COMMUNICATOR || error == FY_MPI_BETWEEN_GROUPS)
        return fy_error_set(
            FERRY_EINVAL, "open: the communicator is %s; expected one whose ranks are one group",
            error == FY_MPI_NO_COMMUNICATOR ? "MPI_COMM_NULL" : "an inter-communicator");
    if (error != 0)
        return fy_nodes_failed(&mpi->binding, "MPI_Comm_dup", error);
    o->threads = level == FY_MPI_MULTIPLE || (o->owned && level >= FY_MPI_SERIALIZED);
    error = check_world(options, mpi, o->net);
    if (error == 0)
        error = fy_nodes_open(o, job, port);
    if (error != 0)
        mpi->binding.close(o->net);
    return error;
}

int fy_mpi_open(const fy_mpi_options *options, fy_nodes_job **job, fy_port **port)
{
    const fy_mpi_library *mpi;
    fy_mpi_level level = options->share && is_one_node() ? FY_MPI_FUNNELED : FY_MPI_SERIALIZED;
    int error = find_library(options, &mpi);
    if (error != 0)
        return error;
    fy_nodes_options o = {.binding = &mpi->binding,
                          .share = options->share,
                          .launcher = {.variables = launcher_variables},
                          .shm = options->shm,
                          .compute = options->compute};
    error = fy_nodes_begin(&o);
    if (error != 0)
        return error;
    error = mpi->start(&level, &o.owned);
    if (error != 0) {
        error = fy_nodes_failed(&mpi->binding, "MPI_Init_thread", error);
    } else {
        o.launcher.connection = launcher_connection();
        error = open_job(options, mpi, level, &o, job, port);
        if (error != 0 && o.owned)
            mpi->finish();
    }
    if (error != 0)
        fy_nodes_end(&o);
    return error;
}
