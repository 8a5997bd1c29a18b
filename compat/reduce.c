/* Reductions: a function for each type and operation combines two arrays. */
#include "state.h"

#define REDUCE(NAME, TYPE, VERB, EXPRESSION)                                                       \
    static void VERB##_of_##NAME(void *arg, void *into, const void *low, const void *high,         \
                                 size_t count)                                                     \
    {                                                                                              \
        (void)arg;                                                                                 \
        for (size_t i = 0; i < count; i++) {                                                       \
            TYPE a = ((const TYPE *)low)[i], b = ((const TYPE *)high)[i];                          \
            ((TYPE *)into)[i] = (TYPE)(EXPRESSION);                                                \
        }                                                                                          \
    }                                                                                              \
    int shmem_##NAME##_##VERB##_reduce(shmem_team_t team, TYPE *dest, const TYPE *source,          \
                                       size_t nreduce)                                             \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        return fy_shmem_reduce(team, dest, source, nreduce, sizeof(TYPE), VERB##_of_##NAME);       \
    }

#define SUMS(NAME, TYPE)                                                                           \
    REDUCE(NAME, TYPE, sum, a + b)                                                                 \
    REDUCE(NAME, TYPE, prod, a *b)
#define ORDERS(NAME, TYPE)                                                                         \
    REDUCE(NAME, TYPE, min, b < a ? b : a)                                                         \
    REDUCE(NAME, TYPE, max, a < b ? b : a)
#define BITS(NAME, TYPE)                                                                           \
    REDUCE(NAME, TYPE, and, a &b)                                                                  \
    REDUCE(NAME, TYPE, or, a | b)                                                                  \
    REDUCE(NAME, TYPE, xor, a ^ b)

SHMEM_TYPES(SUMS)
SHMEM_COMPLEX_TYPES(SUMS)
SHMEM_TYPES(ORDERS)
SHMEM_REDUCE_BIT_TYPES(BITS)
