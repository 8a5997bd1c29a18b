/* Random: a stream of pseudo-random numbers that is the same for the same seed and stream number.
 *
 * SplitMix64: one word of state, every value once per period. Not for secrets. */
#ifndef FY_RANDOM_H
#define FY_RANDOM_H

#include <stdint.h>

#include "base/shared.h"

typedef struct fy_random {
    uint64_t state;
} fy_random;

/* Starts stream number `stream` of `seed`. Streams of one seed are independent for our purposes. */
FY_SHARED void fy_random_init(fy_random *random, uint64_t seed, uint64_t stream);

/* The next number, uniform over 64 bits. */
FY_SHARED uint64_t fy_random_next(fy_random *random);

/* A number from 0 to `bound` - 1; 0 when `bound` is 0. */
static inline uint64_t fy_random_below(fy_random *random, uint64_t bound)
{
    if (bound == 0)
        return 0;
    /* Values above the last whole multiple of `bound` would favour small results. */
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    uint64_t value = fy_random_next(random);
    while (value >= limit)
        value = fy_random_next(random);
    return value % bound;
}

#endif
