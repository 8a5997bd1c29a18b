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
FY_SHARED uint64_t fy_random_below(fy_random *random, uint64_t bound);

#endif
