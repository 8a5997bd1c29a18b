/* Curve: puts regions on a line so that neighbours in space are mostly neighbours on the line. */
#ifndef FY_CURVE_H
#define FY_CURVE_H

#include "mover/geometry/box.h"

typedef struct fy_curve_item {
    uint64_t key;
    uint32_t number;
} fy_curve_item;

/* The key of the centre of `r` on a Morton or a Hilbert curve through `hull`, in which it lies. */
uint64_t fy_curve_morton(const ferry_region *hull, const ferry_region *r);
uint64_t fy_curve_hilbert(const ferry_region *hull, const ferry_region *r);

/* Sorts by (key, number). */
void fy_curve_sort(fy_curve_item *items, size_t count);

#endif
