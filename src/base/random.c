#include "base/random.h"

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void fy_random_init(fy_random *random, uint64_t seed, uint64_t stream)
{
    random->state = mix(seed + 0x9e3779b97f4a7c15u) ^ mix(~stream);
}

uint64_t fy_random_next(fy_random *random)
{
    random->state += 0x9e3779b97f4a7c15u;
    return mix(random->state);
}
