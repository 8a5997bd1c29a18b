/* Box: the region calculus on pointers, for loops over many regions. */
#ifndef FY_BOX_H
#define FY_BOX_H

#include <ferry/mover_region.h>

/* `c`, or the limit if `c` is beyond it. */
static inline int64_t fy_coordinate(int64_t c)
{
    return c > FERRY_COORDINATE_MAX    ? FERRY_COORDINATE_MAX
           : c < -FERRY_COORDINATE_MAX ? -FERRY_COORDINATE_MAX
                                       : c;
}

/* The sum, cut to the limit. The arguments are cut first, so nothing overflows. */
static inline int64_t fy_coordinate_add(int64_t a, int64_t b)
{
    return fy_coordinate(fy_coordinate(a) + fy_coordinate(b));
}

static inline int64_t fy_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t fy_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* a / b rounded down; b is positive. */
static inline int64_t fy_floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Whether a region from another rank or a file is valid: it has `dims` dimensions and lies within
 * the limit. It may be empty. */
static inline bool fy_box_is_sound(const ferry_region *r, int dims)
{
    if (r->dims != dims || dims < 1 || dims > FERRY_DIMS_MAX)
        return false;
    for (int d = 0; d < dims; d++)
        if (r->low.at[d] != fy_coordinate(r->low.at[d]) ||
            r->high.at[d] != fy_coordinate(r->high.at[d]))
            return false;
    return true;
}

static inline bool fy_box_meets(const ferry_region *a, const ferry_region *b)
{
    for (int d = 0; d < a->dims; d++)
        if (a->high.at[d] < b->low.at[d] || b->high.at[d] < a->low.at[d])
            return false;
    return true;
}

/* The common points of two regions with the same number of dimensions. False: there are none. */
static inline bool fy_box_intersect(const ferry_region *a, const ferry_region *b, ferry_region *out)
{
    bool any = true;
    out->dims = a->dims;
    for (int d = 0; d < a->dims; d++) {
        out->low.at[d] = fy_max(a->low.at[d], b->low.at[d]);
        out->high.at[d] = fy_min(a->high.at[d], b->high.at[d]);
        any &= out->low.at[d] <= out->high.at[d];
    }
    for (int d = a->dims; d < FERRY_DIMS_MAX; d++)
        out->low.at[d] = out->high.at[d] = 0;
    return any;
}

#endif
