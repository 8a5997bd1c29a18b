/* Dice: pseudo-random numbers for property tests, the same for the same seed; and boxes. */
#ifndef FY_TEST_DICE_H
#define FY_TEST_DICE_H

#include <ferry/mover_region.h>

typedef struct dice {
    uint64_t state;
} dice;

static inline uint64_t dice_next(dice *d)
{
    uint64_t z = d->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A number from `low` to `high`, both included. */
static inline int64_t dice_between(dice *d, int64_t low, int64_t high)
{
    return low + (int64_t)(dice_next(d) % (uint64_t)(high - low + 1));
}

/* A box within [-reach, reach], now and then empty when `empty`. */
static inline ferry_region dice_region(dice *d, int dims, int64_t reach, bool empty)
{
    ferry_region r = {.dims = dims};
    for (int i = 0; i < dims; i++) {
        r.low.at[i] = dice_between(d, -reach, reach);
        r.high.at[i] = dice_between(d, empty ? r.low.at[i] - 1 : r.low.at[i], reach);
    }
    return r;
}

/* A box with `extent` points in each dimension. */
static inline ferry_region box(int dims, int64_t extent)
{
    ferry_point p = ferry_point_all(extent);
    return ferry_region_sized(dims, p.at);
}

#endif
