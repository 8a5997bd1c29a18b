/* Box: the region calculus on pointers, for loops over many regions. */
#ifndef FY_BOX_H
#define FY_BOX_H

#include <ferry/mover_region.h>

/* `c` set to the limit when it is beyond. */
static inline int64_t fy_coordinate(int64_t c)
{
    return c > FERRY_COORDINATE_MAX    ? FERRY_COORDINATE_MAX
           : c < -FERRY_COORDINATE_MAX ? -FERRY_COORDINATE_MAX
                                       : c;
}

/* The sum, within the limit. Arguments beyond it are cut first, so nothing overflows. */
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

/* Whether a region that another rank or a file sent is one, of `dims` dimensions and within the
 * limit; it may be empty. */
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

/* The common points of two regions of the same dimensions; false when there are none. */
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
