#include "base/alloc.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* Belongs to the thread, because a simulation runs in one thread. In programs that are not
 * simulated it is NULL. */
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

void *fy_double(void *items, uint32_t *capacity, uint32_t first, size_t item_bytes)
{
    if (*capacity > UINT32_MAX / 2)
        return NULL;
    uint32_t more = *capacity == 0 ? first : *capacity * 2;
    void *larger = fy_realloc(items, more * item_bytes);
    if (larger != NULL)
        *capacity = more;
    return larger;
}

bool fy_memory_is_mapped(const void *address, size_t size_bytes)
{
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)address;
    size_t before = first % page_bytes;
    if (size_bytes > SIZE_MAX - before - page_bytes)
        return false;
    int kept = errno;
    /* MS_ASYNC does nothing but look at the pages. */
    bool mapped =
        msync((void *)(first - before), size_bytes + before, MS_ASYNC) == 0 || errno != ENOMEM;
    errno = kept;
    return mapped;
}

size_t fy_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return pages <= 0 || page_bytes <= 0 ? SIZE_MAX : (size_t)pages * (size_t)page_bytes;
}
