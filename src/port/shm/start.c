/* The public launcher: a program by its name in PATH. */
#include <ferry/launch.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/sized.h"
#include "port/shm/launcher.h"

typedef struct program {
    char *const *argv;
    int threads;   /* ranks that the program starts as threads; 0: it is one of several processes */
    int ranks_max; /* of those */
} program;

static int execute(void *arg, int rank)
{
    const program *p = arg;
    (void)rank;
    if (p->threads > 0) {
        char text[16];
        snprintf(text, sizeof(text), "%d", p->threads);
        setenv(FY_ENV_THREADS, "1", 1);
        setenv(FY_ENV_RANKS, text, 1);
        snprintf(text, sizeof(text), "%d", p->ranks_max);
        if (p->ranks_max > 0)
            setenv(FY_ENV_RANKS_MAX, text, 1);
    }
    execvp(p->argv[0], p->argv);
    return -errno;
}

/* The segment is made before any rank reads its options: the variables decide alone. */
static int read_options(fy_shm_options *shm)
{
    uint64_t heap_bytes = 0, ring_slots = 0, ring_bytes = 0, ranks_max = 0;
    int error = fy_env_check();
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
    ferry_launch_options o = FERRY_LAUNCH_DEFAULTS;
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
    error = read_options(&shm);
    if (error != 0)
        return error;
    if (o.join == NULL)
        o.join = fy_env_get(FY_ENV_RANKS_JOIN);
    if (o.join != NULL && o.threads)
        return fy_error_set(FERRY_EINVAL, "no process can join ranks that are threads");
    program p = {.argv = argv, .threads = o.threads ? o.ranks : 0, .ranks_max = shm.ranks_max};
    fy_launch_plan plan = {
        .program = argv[0],
        .shm = o.threads ? NULL : &shm,
        .label = o.label,
        .join = o.join,
        .bindings = o.bindings,
        .child = execute,
        .arg = &p,
        .executes = true,
    };
    return fy_launch(&plan);
}

int fy_launch(const fy_launch_plan *plan)
{
    const fy_launcher *launcher;
    int error = fy_launcher_find(&launcher);
    return error == 0 ? launcher->launch(plan) : error;
}
