/* The calculus of regions. All coordinates of results are within the limit: fy_coordinate_add cuts
 * sums, and `scaled` cuts products. */
#include "mover/geometry/box.h"

static ferry_region nothing(int dims)
{
    ferry_region r = {.dims = dims < 0 || dims > FERRY_DIMS_MAX ? 0 : dims};
    for (int d = 0; d < r.dims; d++)
        r.high.at[d] = -1;
    return r;
}

ferry_region ferry_region_make(int dims, const int64_t *low, const int64_t *high)
{
    if (dims < 1 || dims > FERRY_DIMS_MAX)
        return nothing(0);
    ferry_region r = {.dims = dims};
    for (int d = 0; d < dims; d++) {
        r.low.at[d] = fy_coordinate(low[d]);
        r.high.at[d] = fy_coordinate(high[d]);
    }
    return r;
}

ferry_region ferry_region_sized(int dims, const int64_t *extents)
{
    if (dims < 1 || dims > FERRY_DIMS_MAX)
        return nothing(0);
    ferry_region r = {.dims = dims};
    for (int d = 0; d < dims; d++)
        r.high.at[d] = fy_coordinate_add(extents[d], -1);
    return r;
}

uint64_t ferry_region_size(ferry_region r)
{
    uint64_t size = 1;
    bool over = false;
    if (ferry_region_is_empty(r))
        return 0;
    for (int d = 0; d < r.dims; d++) {
        const uint64_t extent = ferry_region_extent(r, d); /* 2^64 is 0 */
        over |= extent == 0 || __builtin_mul_overflow(size, extent, &size);
    }
    return over ? UINT64_MAX : size;
}

ferry_region ferry_region_grow(ferry_region r, ferry_point width)
{
    for (int d = 0; d < r.dims && d < FERRY_DIMS_MAX; d++) {
        r.low.at[d] = fy_coordinate_add(r.low.at[d], -fy_coordinate(width.at[d]));
        r.high.at[d] = fy_coordinate_add(r.high.at[d], width.at[d]);
    }
    return r;
}

ferry_region ferry_region_shrink(ferry_region r, ferry_point width)
{
    for (int d = 0; d < r.dims && d < FERRY_DIMS_MAX; d++)
        width.at[d] = -fy_coordinate(width.at[d]);
    return ferry_region_grow(r, width);
}

ferry_region ferry_region_shift(ferry_region r, ferry_point distance)
{
    for (int d = 0; d < r.dims && d < FERRY_DIMS_MAX; d++) {
        r.low.at[d] = fy_coordinate_add(r.low.at[d], distance.at[d]);
        r.high.at[d] = fy_coordinate_add(r.high.at[d], distance.at[d]);
    }
    return r;
}

ferry_region ferry_region_intersect(ferry_region a, ferry_region b)
{
    ferry_region out;
    if (a.dims != b.dims || ferry_region_is_empty(a) || ferry_region_is_empty(b) ||
        !fy_box_intersect(&a, &b, &out))
        return nothing(a.dims == b.dims ? a.dims : 0);
    return out;
}

ferry_region ferry_region_bound(ferry_region a, ferry_region b)
{
    if (ferry_region_is_empty(a))
        return b;
    if (ferry_region_is_empty(b))
        return a;
    if (a.dims != b.dims)
        return nothing(0);
    for (int d = 0; d < a.dims; d++) {
        a.low.at[d] = fy_min(a.low.at[d], b.low.at[d]);
        a.high.at[d] = fy_max(a.high.at[d], b.high.at[d]);
    }
    return a;
}

/* Cuts slabs off `a`, dimension by dimension, until the rest lies inside `b`. */
int ferry_region_difference(ferry_region a, ferry_region b, ferry_region *out)
{
    if (ferry_region_is_empty(a))
        return 0;
    ferry_region common = ferry_region_intersect(a, b);
    if (ferry_region_is_empty(common)) {
        out[0] = a;
        return 1;
    }
    int count = 0;
    for (int d = 0; d < a.dims; d++) {
        if (a.low.at[d] < common.low.at[d]) {
            out[count] = a;
            out[count++].high.at[d] = common.low.at[d] - 1;
            a.low.at[d] = common.low.at[d];
        }
        if (a.high.at[d] > common.high.at[d]) {
            out[count] = a;
            out[count++].low.at[d] = common.high.at[d] + 1;
            a.high.at[d] = common.high.at[d];
        }
    }
    return count;
}

bool ferry_region_contains(ferry_region outer, ferry_region inner)
{
    if (ferry_region_is_empty(inner))
        return true;
    if (outer.dims != inner.dims)
        return false;
    for (int d = 0; d < outer.dims; d++)
        if (inner.low.at[d] < outer.low.at[d] || inner.high.at[d] > outer.high.at[d])
            return false;
    return true;
}

bool ferry_region_equal(ferry_region a, ferry_region b)
{
    if (ferry_region_is_empty(a) || ferry_region_is_empty(b))
        return ferry_region_is_empty(a) && ferry_region_is_empty(b);
    return ferry_region_contains(a, b) && ferry_region_contains(b, a);
}

ferry_region ferry_region_coarsen(ferry_region r, ferry_point ratio)
{
    if (ferry_region_is_empty(r))
        return r;
    for (int d = 0; d < r.dims; d++) {
        r.low.at[d] = fy_floor_div(r.low.at[d], fy_max(ratio.at[d], 1));
        r.high.at[d] = fy_floor_div(r.high.at[d], fy_max(ratio.at[d], 1));
    }
    return r;
}

static int64_t scaled(int64_t c, int64_t factor)
{
    int64_t product;
    if (__builtin_mul_overflow(c, factor, &product))
        return c < 0 ? -FERRY_COORDINATE_MAX : FERRY_COORDINATE_MAX;
    return fy_coordinate(product);
}

ferry_region ferry_region_refine(ferry_region r, ferry_point ratio)
{
    if (ferry_region_is_empty(r))
        return r;
    for (int d = 0; d < r.dims; d++) {
        int64_t factor = fy_max(fy_coordinate(ratio.at[d]), 1);
        r.low.at[d] = scaled(r.low.at[d], factor);
        r.high.at[d] = fy_coordinate_add(scaled(r.high.at[d], factor), factor - 1);
    }
    return r;
}

ferry_region ferry_region_permute(ferry_region r, const int8_t *axis)
{
    unsigned seen = 0;
    ferry_region out = {.dims = r.dims};
    if (r.dims > FERRY_DIMS_MAX)
        return nothing(0);
    for (int d = 0; d < r.dims; d++) {
        if (axis[d] < 0 || axis[d] >= r.dims || (seen & (1u << axis[d])))
            return nothing(0);
        seen |= 1u << axis[d];
        out.low.at[d] = r.low.at[axis[d]];
        out.high.at[d] = r.high.at[axis[d]];
    }
    return out;
}
