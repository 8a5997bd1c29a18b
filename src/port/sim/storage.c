/* Memory of the process: whether it stays within a bound, and allocations that fail.
 *
 * The memory of ranks is in the process's heap, with what the simulator holds for them (frames in
 * flight). All of that has to stay bounded, so the use of the whole heap is watched.
 *
 * Refused is what ranks allocate of Ferry's (base/alloc.h), not what the port does for them. */
#include <dlfcn.h>
#include <inttypes.h>
#include <malloc.h>
#include <string.h>

#include <ferry/error.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "port/sim/world.h"

static bool refuses(void *arg)
{
    fy_world *world = arg;
    fy_actor *actor = world->running;
    int starved = world->faults.starved_plus_1;
    if (actor == NULL || actor->inside || (starved != 0 && actor->rank->rank + 1 != starved))
        return false;
    actor->inside = true; /* the tape allocates too */
    bool refused = fy_faults_next(&world->faults, FY_FAULT_MALLOC) != 0;
    actor->inside = false;
    return refused;
}

/* Sanitizers have a heap of their own, and a function to ask it. */
static size_t in_use_bytes(void)
{
    size_t (*ask)(void) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "__sanitizer_get_current_allocated_bytes");
    memcpy(&ask, &symbol, sizeof(ask));
    if (ask != NULL)
        return ask();
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
#else
    return 0;
#endif
}

int fy_storage_watch(fy_world *world)
{
    world->memory_start_bytes = in_use_bytes();
    if (world->options.memory_bytes > 0 && world->memory_start_bytes == 0)
        return fy_error_set(FERRY_ENOTSUP, "sim: this C library does not say how much memory is "
                                           "in use; run without a bound");
    if (fy_faults_malloc(&world->faults))
        fy_alloc_refuse(refuses, world);
    return 0;
}

void fy_storage_unwatch(void)
{
    fy_alloc_refuse(NULL, NULL);
}

void fy_storage_check(fy_world *world)
{
    /* The tape is nobody's. */
    size_t tape_bytes = world->faults.tape.capacity * sizeof(fy_decision);
    size_t in_use = in_use_bytes(), start = world->memory_start_bytes + tape_bytes;
    size_t more = in_use > start ? in_use - start : 0;
    if (more <= world->options.memory_bytes || world->ended)
        return;
    fy_log_line(-1,
                "sim: at %.9f s, seed %" PRIu64 ": %zu bytes more in use than at the start; "
                "%" PRIu64 " may be",
                (double)world->now_ns / 1e9, world->options.seed, more,
                world->options.memory_bytes);
    fy_world_end(world, FY_SIM_BROKEN);
}
