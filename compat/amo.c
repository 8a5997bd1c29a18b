/* Atomic operations: typed values as words of 4 or 8 bytes. All are sequentially consistent. */
#include "state.h"

#include <string.h>

uint64_t fy_shmem_update(ferry_atomic_verb verb, const void *dest, size_t bytes, uint64_t operand,
                         uint64_t expected, int pe)
{
    char *remote;
    if (((uintptr_t)dest & (bytes - 1)) != 0)
        fy_compat_fail("%s: the address is %p; expected a multiple of %zu", fy_compat.call, dest,
                       bytes);
    bool mapped = fy_shmem_locate(dest, bytes, pe, &remote);
    if (mapped)
        fy_shmem_poll_for(dest, pe);
    const ferry_atomic what = {verb, (uint64_t *)(void *)remote, operand, expected};
    return fy_compat_update(&what, bytes, pe, mapped);
}

/* Converts values to words, and back. */
#define WORDS(NAME, TYPE)                                                                          \
    static uint64_t word_of_##NAME(TYPE value)                                                     \
    {                                                                                              \
        uint64_t word = 0;                                                                         \
        uint32_t half = 0;                                                                         \
        memcpy(sizeof(value) == 4 ? (void *)&half : (void *)&word, &value, sizeof(value));         \
        return sizeof(value) == 4 ? half : word;                                                   \
    }                                                                                              \
    static TYPE value_of_##NAME(uint64_t word)                                                     \
    {                                                                                              \
        TYPE value;                                                                                \
        uint32_t half = (uint32_t)word;                                                            \
        memcpy(&value, sizeof(value) == 4 ? (void *)&half : (void *)&word, sizeof(value));         \
        return value;                                                                              \
    }                                                                                              \
    static TYPE update_##NAME(ferry_atomic_verb verb, const TYPE *dest, TYPE value, TYPE expected, \
                              int pe)                                                              \
    {                                                                                              \
        return value_of_##NAME(fy_shmem_update(verb, dest, sizeof(TYPE), word_of_##NAME(value),    \
                                               word_of_##NAME(expected), pe));                     \
    }

#define SWAPS(NAME, TYPE)                                                                          \
    WORDS(NAME, TYPE)                                                                              \
    TYPE shmem_##NAME##_atomic_fetch(const TYPE *source, int pe)                                   \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        return update_##NAME(FERRY_FETCH_OR, source, 0, 0, pe);                                    \
    }                                                                                              \
    void shmem_##NAME##_atomic_fetch_nbi(TYPE *fetch, const TYPE *source, int pe)                  \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        *fetch = shmem_##NAME##_atomic_fetch(source, pe);                                          \
    }                                                                                              \
    void shmem_##NAME##_atomic_set(TYPE *dest, TYPE value, int pe)                                 \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        update_##NAME(FERRY_SWAP, dest, value, 0, pe);                                             \
    }                                                                                              \
    TYPE shmem_##NAME##_atomic_swap(TYPE *dest, TYPE value, int pe)                                \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        return update_##NAME(FERRY_SWAP, dest, value, 0, pe);                                      \
    }                                                                                              \
    void shmem_##NAME##_atomic_swap_nbi(TYPE *fetch, TYPE *dest, TYPE value, int pe)               \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        *fetch = shmem_##NAME##_atomic_swap(dest, value, pe);                                      \
    }
SHMEM_SWAP_TYPES(SWAPS)

#define FETCHES(NAME, TYPE, WORD, VERB)                                                            \
    TYPE shmem_##NAME##_atomic_fetch_##WORD(TYPE *dest, TYPE value, int pe)                        \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        return update_##NAME(VERB, dest, value, 0, pe);                                            \
    }                                                                                              \
    void shmem_##NAME##_atomic_fetch_##WORD##_nbi(TYPE *fetch, TYPE *dest, TYPE value, int pe)     \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        *fetch = update_##NAME(VERB, dest, value, 0, pe);                                          \
    }                                                                                              \
    void shmem_##NAME##_atomic_##WORD(TYPE *dest, TYPE value, int pe)                              \
    {                                                                                              \
        update_##NAME(VERB, dest, value, 0, pe);                                                   \
    }

#define INTEGERS(NAME, TYPE)                                                                       \
    FETCHES(NAME, TYPE, add, FERRY_FETCH_ADD)                                                      \
    TYPE shmem_##NAME##_atomic_compare_swap(TYPE *dest, TYPE cond, TYPE value, int pe)             \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        return update_##NAME(FERRY_COMPARE_SWAP, dest, value, cond, pe);                           \
    }                                                                                              \
    void shmem_##NAME##_atomic_compare_swap_nbi(TYPE *fetch, TYPE *dest, TYPE cond, TYPE value,    \
                                                int pe)                                            \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        *fetch = update_##NAME(FERRY_COMPARE_SWAP, dest, value, cond, pe);                         \
    }                                                                                              \
    TYPE shmem_##NAME##_atomic_fetch_inc(TYPE *dest, int pe)                                       \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        return update_##NAME(FERRY_FETCH_ADD, dest, 1, 0, pe);                                     \
    }                                                                                              \
    void shmem_##NAME##_atomic_fetch_inc_nbi(TYPE *fetch, TYPE *dest, int pe)                      \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        *fetch = update_##NAME(FERRY_FETCH_ADD, dest, 1, 0, pe);                                   \
    }                                                                                              \
    void shmem_##NAME##_atomic_inc(TYPE *dest, int pe)                                             \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        update_##NAME(FERRY_FETCH_ADD, dest, 1, 0, pe);                                            \
    }
SHMEM_ATOMIC_TYPES(INTEGERS)

#define BITS(NAME, TYPE)                                                                           \
    FETCHES(NAME, TYPE, and, FERRY_FETCH_AND)                                                      \
    FETCHES(NAME, TYPE, or, FERRY_FETCH_OR)                                                        \
    FETCHES(NAME, TYPE, xor, FERRY_FETCH_XOR)
SHMEM_BIT_TYPES(BITS)
