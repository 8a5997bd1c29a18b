/* Regions: the memory of a rank that others may put to and get from, beside the shared heap's.
 *
 * Invariant: sorted by base, none empty, no two overlap. Application thread only. */
#ifndef FY_REGIONS_H
#define FY_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fy_region {
    uintptr_t base;
    size_t size_bytes;
    bool allocated; /* by ferry_alloc, on a port without a shared heap */
} fy_region;

typedef struct fy_regions {
    fy_region *items;
    size_t count;
    uint32_t capacity;
} fy_regions;

/* The region that contains [base, base + size_bytes), or NULL. */
const fy_region *fy_regions_containing(const fy_regions *regions, uintptr_t base,
                                       size_t size_bytes);

/* A region that has a byte in common with the range, or NULL. The range is not empty. */
const fy_region *fy_regions_overlapping(const fy_regions *regions, uintptr_t base,
                                        size_t size_bytes);

/* The region that starts at `base`, or NULL. */
const fy_region *fy_regions_at(const fy_regions *regions, uintptr_t base);

/* Adds a region, which overlaps no other. Returns false if there is no memory. */
bool fy_regions_add(fy_regions *regions, fy_region region);

/* Removes `region`, which is one of `items`. */
void fy_regions_remove(fy_regions *regions, const fy_region *region);

#endif
