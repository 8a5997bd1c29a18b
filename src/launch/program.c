/* ferry_launch: what the program and the environment ask for becomes a plan. */
#include <ferry/launch.h>

#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/sized.h"
#include "launch/job.h"

/* Reads the variables alone: the segment is made before a rank has given its options. */
static int launch_read_options(fy_shm_options *shm)
{
    uint64_t heap_bytes = 0, ring_slots = 0, ring_bytes = 0, ranks_max = 0;
    int error = fy_env_check();
    const char *port = fy_env_get("FERRY_PORT");
    if (error == 0 && port != NULL && strcmp(port, "shm") != 0 && strcmp(port, "mpi") != 0)
        error = fy_error_set(FERRY_EINVAL,
                             "FERRY_PORT is \"%s\"; expected shm for ranks that are "
                             "processes (\"ferry sim\" simulates them)",
                             port);
    if (error == 0)
        error = fy_env_number("FERRY_HEAP_BYTES", &heap_bytes);
    if (error == 0)
        error = fy_env_number("FERRY_RING_SLOTS", &ring_slots);
    if (error == 0)
        error = fy_env_number("FERRY_RING_BYTES", &ring_bytes);
    if (error == 0)
        error = fy_env_number_within(FY_ENV_RANKS_MAX, 1, FY_RANKS_MAX, &ranks_max);
    if (shm->ranks_max == 0)
        shm->ranks_max = (int)ranks_max;
    shm->heap_bytes = heap_bytes;
    shm->ring_slots = (uint32_t)ring_slots;
    shm->ring_bytes = (uint32_t)ring_bytes;
    return error;
}

int fy_job_launch_program(const ferry_launch_options *options, char *const argv[])
{
    ferry_launch_options o = FERRY_LAUNCH_OPTIONS_DEFAULTS;
    int error =
        options == NULL ? 0 : fy_sized_read("launch: ferry_launch_options", options, &o, sizeof o);
    if (error != 0)
        return error;
    if (argv == NULL || argv[0] == NULL)
        return fy_error_set(FERRY_EINVAL, "no program to run");
    if (o.ranks < 1 || o.ranks > FY_RANKS_MAX)
        return fy_error_set(FERRY_EINVAL, "%d ranks: must be 1 to %d", o.ranks, FY_RANKS_MAX);
    if (o.ranks_max != 0 && (o.ranks_max < o.ranks || o.ranks_max > FY_RANKS_MAX))
        return fy_error_set(FERRY_EINVAL, "at most %d ranks: must be %d to %d", o.ranks_max,
                            o.ranks, FY_RANKS_MAX);
    fy_shm_options shm = {.ranks = o.ranks, .ranks_max = o.ranks_max};
    error = launch_read_options(&shm);
    if (error != 0)
        return error;
    if (o.join == NULL)
        o.join = fy_env_get(FY_ENV_RANKS_JOIN);
    if (o.join != NULL && o.threads)
        return fy_error_set(FERRY_EINVAL, "no process can join ranks that are threads");
    fy_launch_plan plan = {
        .program = argv[0],
        .shm = o.threads ? NULL : &shm,
        .label = o.label,
        .join = o.join,
        .bindings = o.bindings,
        .argv = argv,
        .threads = o.ranks,
        .threads_max = shm.ranks_max,
    };
    return fy_job_launch(&plan);
}
