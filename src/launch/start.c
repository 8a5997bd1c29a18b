/* The public launcher: runs a program that is looked up in PATH. */
#include <ferry/launch.h>

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/sized.h"
#include "launch/launcher.h"

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

int ferry_launch(const ferry_launch_options *options, char *const argv[])
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
    return fy_launch(&plan);
}

void fy_streams_reserve(void)
{
    int fd;
    do
        fd = open("/dev/null", O_PATH);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

static int check_stack(void)
{
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= FY_STACK_MIN_BYTES)
        return 0;
    return fy_error_set(FERRY_EINVAL,
                        "stacks are limited to %llu KiB; expected %d or more (ulimit -s)",
                        (unsigned long long)stack.rlim_cur / 1024, FY_STACK_MIN_BYTES / 1024);
}

int fy_launch(const fy_launch_plan *plan)
{
    const fy_launcher *launcher;
    fy_streams_reserve();
    int error = check_stack();
    if (error == 0)
        error = fy_launcher_find(&launcher);
    return error == 0 ? launcher->launch(plan) : error;
}

int fy_launch_threads(const fy_threads_plan *plan)
{
    const fy_launcher *launcher;
    int error = fy_launcher_find(&launcher);
    return error == 0 ? launcher->threads(plan) : error;
}

int fy_launch_join(const char *folder, fy_segment **segment, int *rank)
{
    const fy_launcher *launcher;
    int error = fy_launcher_find(&launcher);
    return error == 0 ? launcher->join(folder, segment, rank) : error;
}
