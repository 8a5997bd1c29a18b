#include "memory/regions.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Number of regions that start at or below `base`. */
static size_t count_up_to(const fy_regions *regions, uintptr_t base)
{
    size_t low = 0, high = regions->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (regions->items[middle].base <= base)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const fy_region *fy_regions_containing(const fy_regions *regions, uintptr_t base, size_t size_bytes)
{
    size_t below = count_up_to(regions, base);
    if (below == 0)
        return NULL;
    const fy_region *region = &regions->items[below - 1];
    size_t offset = base - region->base;
    bool inside = offset <= region->size_bytes && size_bytes <= region->size_bytes - offset;
    return inside ? region : NULL;
}

const fy_region *fy_regions_overlapping(const fy_regions *regions, uintptr_t base,
                                        size_t size_bytes)
{
    size_t below = count_up_to(regions, base + (size_bytes - 1));
    if (below == 0)
        return NULL;
    const fy_region *region = &regions->items[below - 1];
    return region->base + (region->size_bytes - 1) >= base ? region : NULL;
}

const fy_region *fy_regions_at(const fy_regions *regions, uintptr_t base)
{
    size_t below = count_up_to(regions, base);
    bool found = below > 0 && regions->items[below - 1].base == base;
    return found ? &regions->items[below - 1] : NULL;
}

bool fy_regions_add(fy_regions *regions, fy_region region)
{
    if (regions->count == regions->capacity) {
        fy_region *items = fy_double(regions->items, &regions->capacity, 8, sizeof(*items));
        if (items == NULL)
            return false;
        regions->items = items;
    }
    size_t at = count_up_to(regions, region.base);
    memmove(&regions->items[at + 1], &regions->items[at],
            (regions->count - at) * sizeof(*regions->items));
    regions->items[at] = region;
    regions->count++;
    return true;
}

void fy_regions_remove(fy_regions *regions, const fy_region *region)
{
    size_t at = (size_t)(region - regions->items);
    regions->count--;
    memmove(&regions->items[at], &regions->items[at + 1],
            (regions->count - at) * sizeof(*regions->items));
}
