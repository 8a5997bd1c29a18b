/* Shares: what a rank has of a floor plan that the test has whole. After the header that says what
 * CHECK is. */
#ifndef FY_TEST_SHARES_H
#define FY_TEST_SHARES_H

#include <ferry/ferry.h>
#include <ferry/mover.h>

/* This rank's blocks; owners do not count. */
static inline ferry_floorplan own_of(ferry *f, const ferry_floorplan *whole)
{
    ferry_floorplan own = {.dims = whole->dims};
    for (size_t i = 0; i < whole->count; i++)
        if (whole->blocks[i].owner == ferry_rank(f))
            CHECK(ferry_floorplan_add(&own, whole->blocks[i].region, 0) == 0);
    return own;
}

/* The share of this rank with nothing near; `whole` goes. Blocks are numbered rank by rank. */
static inline ferry_floorplan only_own(ferry *f, ferry_floorplan *whole)
{
    ferry_floorplan share, own = own_of(f, whole);
    const ferry_regions nothing = {0};
    CHECK(ferry_floorplan_share(f, &own, &nothing, &share) == 0);
    ferry_floorplan_fini(&own);
    ferry_floorplan_fini(whole);
    return share;
}

#endif
