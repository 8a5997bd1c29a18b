/* Random: the numbers that tests draw, the same for the same state. Xorshift: a state is not 0. */
#ifndef FY_TEST_RANDOM_H
#define FY_TEST_RANDOM_H

#include <stdint.h>

static inline uint64_t xorshift(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Below `bound`. */
static inline uint64_t draw(uint64_t *state, uint64_t bound)
{
    return (xorshift(state) >> 11) % bound;
}

/* One of `count` values. */
static inline uint64_t draw_of(uint64_t *state, const uint64_t *values, uint64_t count)
{
    return values[draw(state, count)];
}

#define CHOOSE(state, ...)                                                                         \
    draw_of(state, (const uint64_t[]){__VA_ARGS__},                                                \
            sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

#endif
