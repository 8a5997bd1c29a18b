/* Ranges: the blocks of ARMCI_Malloc of other processes that are mapped in this process. A call
 * copies to such memory itself. Without a check, the address of another process would change memory
 * of the wrong one. */
#include "armci_state.h"

#include <stdlib.h>
#include <string.h>

/* The number of ranges that begin at `address` or before it. */
static size_t ranges_up_to(uintptr_t address)
{
    size_t low = 0, high = fy_armci.range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fy_armci.ranges[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool range_has(const fy_armci_range *range, int process, uintptr_t address,
                      size_t size_bytes)
{
    uintptr_t offset = address - range->base;
    return range->process == process && address >= range->base && offset <= range->size_bytes &&
           size_bytes <= range->size_bytes - offset;
}

static __attribute__((noinline)) void look_up(const char *call, int process, uintptr_t address,
                                              size_t size_bytes)
{
    size_t after = ranges_up_to(address);
    if (after == 0 || !range_has(&fy_armci.ranges[after - 1], process, address, size_bytes))
        fy_compat_fail("%s: %zu bytes at %p are not in a block of ARMCI_Malloc of process %d", call,
                       size_bytes, (const void *)address, process);
    fy_armci.range_last = after - 1;
}

void fy_armci_remote_check(const char *call, int process, const void *address, size_t size_bytes)
{
    uintptr_t first = (uintptr_t)address;
    if (process == fy_compat.me || !fy_armci_is_mapped(process))
        return;
    if (fy_armci.range_last >= fy_armci.range_count ||
        !range_has(&fy_armci.ranges[fy_armci.range_last], process, first, size_bytes))
        look_up(call, process, first, size_bytes);
}

void fy_armci_range_add(const char *call, int process, const void *base, size_t size_bytes)
{
    fy_armci_state *s = &fy_armci;
    if (base == NULL || process == fy_compat.me || !fy_armci_is_mapped(process))
        return;
    if (s->range_count == s->range_room) {
        s->range_room = s->range_room == 0 ? 64 : 2 * s->range_room;
        s->ranges = fy_compat_need(call, realloc(s->ranges, s->range_room * sizeof(*s->ranges)));
    }
    size_t at = ranges_up_to((uintptr_t)base);
    memmove(&s->ranges[at + 1], &s->ranges[at], (s->range_count - at) * sizeof(*s->ranges));
    s->ranges[at] = (fy_armci_range){(uintptr_t)base, size_bytes, process};
    s->range_count++;
}

void fy_armci_range_remove(const void *base)
{
    fy_armci_state *s = &fy_armci;
    size_t after = ranges_up_to((uintptr_t)base);
    if (base == NULL || after == 0 || s->ranges[after - 1].base != (uintptr_t)base)
        return;
    s->range_count--;
    memmove(&s->ranges[after - 1], &s->ranges[after],
            (s->range_count - (after - 1)) * sizeof(*s->ranges));
}
