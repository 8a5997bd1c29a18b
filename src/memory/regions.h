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
    bool allocated; /* by ferry_alloc, where ports share no memory */
} fy_region;

typedef struct fy_regions {
    fy_region *items;
    size_t count, capacity;
} fy_regions;

/* The region that contains [base, base + size_bytes), or NULL. */
const fy_region *fy_regions_containing(const fy_regions *regions, uintptr_t base,
                                       size_t size_bytes);

/* A region that has a byte in common with the range, which is not empty; or NULL. */
const fy_region *fy_regions_overlapping(const fy_regions *regions, uintptr_t base,
                                        size_t size_bytes);

/* The region that starts at `base`, or NULL. */
const fy_region *fy_regions_at(const fy_regions *regions, uintptr_t base);

/* Adds a region that overlaps none. Returns whether there was memory. */
bool fy_regions_add(fy_regions *regions, fy_region region);

/* Removes one of the regions. */
void fy_regions_remove(fy_regions *regions, const fy_region *region);

#endif
