/* Regions: boxes of indices in 1 to 6 dimensions, and their calculus.
 *
 * Points and regions are values: only the lists at the end allocate. Both corners of a region
 * belong to it. A region is empty if in any dimension its high is below its low, or if it has no
 * dimensions or too many. An empty region has size 0 and equals every other empty one. Coordinates
 * lie within +-FERRY_COORDINATE_MAX. A coordinate that would pass the limit is set to it, so no
 * call overflows. The last dimension runs fastest wherever there is an order. kelp-data-mover.txt
 * 2. */
#ifndef FERRY_MOVER_REGION_H
#define FERRY_MOVER_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ferry/error.h>
#include <ferry/export.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FERRY_DIMS_MAX 6
#define FERRY_COORDINATE_MAX (INT64_C(1) << 61)

/* A place, or a width per dimension. Entries beyond the dimensions in use are ignored. */
typedef struct ferry_point {
    int64_t at[FERRY_DIMS_MAX];
} ferry_point;

/* A box of indices, both ends included. */
typedef struct ferry_region {
    int32_t dims;
    ferry_point low, high;
} ferry_region;

/* The point with the same coordinate in every dimension. */
static inline ferry_point ferry_point_all(int64_t coordinate)
{
    ferry_point p;
    for (int d = 0; d < FERRY_DIMS_MAX; d++)
        p.at[d] = coordinate;
    return p;
}

/* Points of up to three dimensions, the rest 0. */
static inline ferry_point ferry_point_of(int64_t i, int64_t j, int64_t k)
{
    ferry_point p = {{i, j, k, 0, 0, 0}};
    return p;
}

/* Whether no point is in the region. */
static inline bool ferry_region_is_empty(ferry_region r)
{
    if (r.dims <= 0 || r.dims > FERRY_DIMS_MAX)
        return true;
    for (int d = 0; d < r.dims; d++)
        if (r.high.at[d] < r.low.at[d])
            return true;
    return false;
}

/* Number of indices along dimension `d`. */
static inline uint64_t ferry_region_extent(ferry_region r, int d)
{
    if (r.high.at[d] < r.low.at[d])
        return 0;
    return FERRY_CAST(uint64_t, r.high.at[d]) - FERRY_CAST(uint64_t, r.low.at[d]) + 1;
}

/* Whether `p`, which has the dimensions of the region, is in it. */
static inline bool ferry_region_contains_point(ferry_region r, ferry_point p)
{
    if (r.dims <= 0 || r.dims > FERRY_DIMS_MAX)
        return false;
    for (int d = 0; d < r.dims; d++)
        if (p.at[d] < r.low.at[d] || p.at[d] > r.high.at[d])
            return false;
    return true;
}

/* Moves `*p` to the next point of `r`, in order. False: it was the last. Start with `*p = r.low`,
 * if `r` is not empty. */
static inline bool ferry_region_next(const ferry_region *r, ferry_point *p)
{
    for (int d = r->dims - 1; d >= 0; d--) {
        if (p->at[d] < r->high.at[d]) {
            p->at[d]++;
            return true;
        }
        p->at[d] = r->low.at[d];
    }
    return false;
}

/* The calculus. [any thread | never blocks] kelp-data-mover.txt Table 1, Figure 2. */

/* The region from `low` to `high`, both included. Empty if `dims` is not 1 to FERRY_DIMS_MAX.
 * Borrows `dims` coordinates of each. */
FERRY_API ferry_region ferry_region_make(int dims, const int64_t *low, const int64_t *high);

/* The region from 0 with `extents` indices in each dimension. Borrows `extents`. */
FERRY_API ferry_region ferry_region_sized(int dims, const int64_t *extents);

/* Number of points, at most UINT64_MAX. */
FERRY_API uint64_t ferry_region_size(ferry_region r);

/* `r` wider by `width` at both ends of each dimension; negative widths narrow it. The corners of an
 * empty region move too, so growing undoes shrinking. */
FERRY_API ferry_region ferry_region_grow(ferry_region r, ferry_point width);

/* `r` narrower by `width` at both ends of each dimension. */
FERRY_API ferry_region ferry_region_shrink(ferry_region r, ferry_point width);

/* `r` moved by `distance`. */
FERRY_API ferry_region ferry_region_shift(ferry_region r, ferry_point distance);

/* The points that lie in both. Empty if the dimensions differ. */
FERRY_API ferry_region ferry_region_intersect(ferry_region a, ferry_region b);

/* The smallest region that contains both. If one is empty, the other. Empty if the dimensions
 * differ. */
FERRY_API ferry_region ferry_region_bound(ferry_region a, ferry_region b);

/* The points of `a` that are not in `b`, as disjoint regions in the caller's `out`, which has room
 * for 2 * FERRY_DIMS_MAX. Returns how many. */
FERRY_API int ferry_region_difference(ferry_region a, ferry_region b, ferry_region *out);

/* Whether `inner` lies inside `outer`. An empty region lies in every region. */
FERRY_API bool ferry_region_contains(ferry_region outer, ferry_region inner);

/* Whether both have the same points. */
FERRY_API bool ferry_region_equal(ferry_region a, ferry_region b);

/* The coarse points that contain a point of `r`, with `ratio` fine points per coarse point in each
 * dimension: each coordinate is divided and rounded down. A ratio below 1 counts as 1. */
FERRY_API ferry_region ferry_region_coarsen(ferry_region r, ferry_point ratio);

/* The fine points that the coarse points in `r` contain. */
FERRY_API ferry_region ferry_region_refine(ferry_region r, ferry_point ratio);

/* `r` with its dimensions in another order: dimension `d` of the result is `axis[d]` of `r`. Empty
 * if `axis` is no permutation. Borrows `axis`. */
FERRY_API ferry_region ferry_region_permute(ferry_region r, const int8_t *axis);

/* Writes a region as "[0:9,0:4]", low and high of each dimension, and cuts the text at `size_bytes`
 * as snprintf does. A region without dimensions is "[]". Returns the length of the whole text. */
FERRY_API int ferry_region_format(ferry_region r, char *buffer, size_t size_bytes);

/* Reads what ferry_region_format writes; blanks are allowed. FERRY_EINVAL: the text is no region,
 * or a coordinate is beyond the limit. Borrows `text`. */
FERRY_API FERRY_MUST_USE int ferry_region_parse(const char *text, ferry_region *out);

/* Writes the first `dims` coordinates of a point as "(1,2,3)", and cuts the text at `size_bytes` as
 * snprintf does. Returns the length of the whole text. */
FERRY_API int ferry_point_format(ferry_point p, int dims, char *buffer, size_t size_bytes);

/* Reads what ferry_point_format writes. Sets `*dims` to the number of coordinates. FERRY_EINVAL. */
FERRY_API FERRY_MUST_USE int ferry_point_parse(const char *text, ferry_point *out, int *dims);

/* Lists. [any thread, one at a time per list | never blocks] */

/* A list of regions. All zero is an empty list; ferry_regions_fini frees its memory. The program
 * may read and change the items. */
typedef struct ferry_regions {
    ferry_region *items;
    size_t count, capacity;
} ferry_regions;

/* Frees the items. The list is then empty. */
FERRY_API void ferry_regions_fini(ferry_regions *list);

/* Appends `r` unless it is empty. FERRY_ENOMEM. */
FERRY_API FERRY_MUST_USE int ferry_regions_add(ferry_regions *list, ferry_region r);

/* Removes the points of `r` from every item. Disjoint items stay disjoint. FERRY_ENOMEM: the list
 * is unchanged. */
FERRY_API FERRY_MUST_USE int ferry_regions_subtract(ferry_regions *list, ferry_region r);

/* The sum of the items' sizes, at most UINT64_MAX. */
FERRY_API uint64_t ferry_regions_size(const ferry_regions *list);

#ifdef __cplusplus
}
#endif
#endif
