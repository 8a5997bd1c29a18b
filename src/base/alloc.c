#include "base/alloc.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

/* Of the thread, since a simulation is one thread's: programs that are not simulated find NULL. */
static _Thread_local struct {
    fy_refuses_fn *refuses;
    void *arg;
} decider;

void fy_alloc_refuse(fy_refuses_fn *refuses, void *arg)
{
    decider.refuses = refuses;
    decider.arg = arg;
}

static bool is_refused(void)
{
    if (decider.refuses == NULL || !decider.refuses(decider.arg))
        return false;
    errno = ENOMEM;
    return true;
}

void *fy_malloc(size_t size_bytes)
{
    return is_refused() ? NULL : malloc(size_bytes);
}

void *fy_calloc(size_t count, size_t size_bytes)
{
    return is_refused() ? NULL : calloc(count, size_bytes);
}

void *fy_realloc(void *old, size_t size_bytes)
{
    return is_refused() ? NULL : realloc(old, size_bytes);
}

void *fy_aligned_alloc(size_t alignment, size_t size_bytes)
{
    return is_refused() ? NULL : aligned_alloc(alignment, size_bytes);
}

size_t fy_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return pages <= 0 || page_bytes <= 0 ? SIZE_MAX : (size_t)pages * (size_t)page_bytes;
}
