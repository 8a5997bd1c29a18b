/* Mix: hashes of words, of things and places alike. */
#ifndef FY_MIX_H
#define FY_MIX_H

#include <stdint.h>

/* The hash of what `sum` is the hash of, followed by `word`. Start with any sum. */
static inline uint64_t fy_mix(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * 0xbf58476d1ce4e5b9u;
    return sum ^ sum >> 29;
}

#endif
