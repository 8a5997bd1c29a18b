/* Atomic operations. A word that this process sees is changed by the compiler's atomics, which are
 * those of Ferry too; any other by ferry_atomic_update. Words of Ferry have 8 bytes, so for a word
 * of 4 bytes a request runs change_half on its PE. All are sequentially consistent. */
#include "state.h"

#include <string.h>

static uint64_t update_here(ferry_atomic_verb verb, uint64_t *word, uint64_t operand,
                            uint64_t expected)
{
    switch (verb) {
    case FERRY_FETCH_ADD:
        return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);
    case FERRY_FETCH_AND:
        return __atomic_fetch_and(word, operand, __ATOMIC_SEQ_CST);
    case FERRY_FETCH_OR:
        return __atomic_fetch_or(word, operand, __ATOMIC_SEQ_CST);
    case FERRY_FETCH_XOR:
        return __atomic_fetch_xor(word, operand, __ATOMIC_SEQ_CST);
    case FERRY_SWAP:
        return __atomic_exchange_n(word, operand, __ATOMIC_SEQ_CST);
    case FERRY_COMPARE_SWAP:
        __atomic_compare_exchange_n(word, &expected, operand, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
        return expected;
    }
    return 0;
}

/* The new value of a word that is `old`. */
static uint32_t changed(ferry_atomic_verb verb, uint32_t old, uint32_t operand, uint32_t expected)
{
    switch (verb) {
    case FERRY_FETCH_ADD:
        return old + operand;
    case FERRY_FETCH_AND:
        return old & operand;
    case FERRY_FETCH_OR:
        return old | operand;
    case FERRY_FETCH_XOR:
        return old ^ operand;
    case FERRY_SWAP:
        return operand;
    case FERRY_COMPARE_SWAP:
        return old == expected ? operand : old;
    }
    return old;
}

static uint32_t update_half_here(ferry_atomic_verb verb, uint32_t *word, uint32_t operand,
                                 uint32_t expected)
{
    uint32_t old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    if (verb == FERRY_FETCH_ADD)
        return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(word, &old, changed(verb, old, operand, expected), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    return old;
}

static uint64_t update_there(const ferry_atomic *what, int pe)
{
    uint64_t old = 0;
    fy_shmem_check("shmem_atomic", ferry_atomic_update(fy_shmem_pe.f, pe, what, &old, NULL));
    return old;
}

/* Runs where the word is: words[0] is its address, then verb, operand and expected value. */
static void change_half(ferry *f, int source, const ferry_message *message)
{
    uint32_t *word = (uint32_t *)(uintptr_t)message->words[0];
    uint32_t old = update_half_here((ferry_atomic_verb)message->words[1], word,
                                    (uint32_t)message->words[2], (uint32_t)message->words[3]);
    const ferry_message answer = {
        .handler = fy_shmem_pe.take_half, .word_count = 1, .words = {old}};
    fy_shmem_check("shmem_atomic", ferry_request_send(f, source, &answer, NULL));
}

static void take_half(ferry *f, int source, const ferry_message *message)
{
    (void)f;
    (void)source;
    fy_shmem_pe.half = (uint32_t)message->words[0];
    fy_shmem_pe.half_has_come = true;
}

void fy_shmem_atomics_begin(void)
{
    fy_shmem_state *s = &fy_shmem_pe;
    fy_shmem_check("shmem_init",
                   ferry_handler_register(s->f, "shmem atomic", change_half, &s->change_half));
    fy_shmem_check("shmem_init",
                   ferry_handler_register(s->f, "shmem answer", take_half, &s->take_half));
}

/* `remote` is a word of 4 bytes in memory of `pe`. */
static uint32_t update_half_there(ferry_atomic_verb verb, const char *remote, uint32_t operand,
                                  uint32_t expected, int pe)
{
    fy_shmem_state *s = &fy_shmem_pe;
    unsigned turns = 0;
    const ferry_message message = {.handler = s->change_half,
                                   .word_count = 4,
                                   .words = {(uintptr_t)remote, verb, operand, expected}};
    s->half_has_come = false;
    fy_shmem_check("shmem_atomic", ferry_request_send(s->f, pe, &message, NULL));
    while (!s->half_has_come)
        fy_shmem_turn(&turns);
    return s->half;
}

uint64_t fy_shmem_update(ferry_atomic_verb verb, const void *dest, size_t bytes, uint64_t operand,
                         uint64_t expected, int pe)
{
    char *remote;
    if ((uintptr_t)dest % bytes != 0)
        fy_shmem_fail("atomic operation at %p; expected a multiple of %zu", dest, bytes);
    bool mapped = fy_shmem_locate(dest, bytes, pe, &remote);
    if (mapped)
        fy_shmem_look(dest, pe);
    if (bytes == sizeof(uint32_t)) {
        uint32_t half = (uint32_t)operand, old = (uint32_t)expected;
        return mapped ? update_half_here(verb, (uint32_t *)(void *)remote, half, old)
                      : update_half_there(verb, remote, half, old, pe);
    }
    uint64_t *word = (uint64_t *)(void *)remote;
    const ferry_atomic what = {verb, word, operand, expected};
    return mapped ? update_here(verb, word, operand, expected) : update_there(&what, pe);
}

/* Values as words, and back. */
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
        return update_##NAME(FERRY_FETCH_OR, source, 0, 0, pe);                                    \
    }                                                                                              \
    void shmem_##NAME##_atomic_fetch_nbi(TYPE *fetch, const TYPE *source, int pe)                  \
    {                                                                                              \
        *fetch = shmem_##NAME##_atomic_fetch(source, pe);                                          \
    }                                                                                              \
    void shmem_##NAME##_atomic_set(TYPE *dest, TYPE value, int pe)                                 \
    {                                                                                              \
        update_##NAME(FERRY_SWAP, dest, value, 0, pe);                                             \
    }                                                                                              \
    TYPE shmem_##NAME##_atomic_swap(TYPE *dest, TYPE value, int pe)                                \
    {                                                                                              \
        return update_##NAME(FERRY_SWAP, dest, value, 0, pe);                                      \
    }                                                                                              \
    void shmem_##NAME##_atomic_swap_nbi(TYPE *fetch, TYPE *dest, TYPE value, int pe)               \
    {                                                                                              \
        *fetch = shmem_##NAME##_atomic_swap(dest, value, pe);                                      \
    }
SHMEM_SWAP_TYPES(SWAPS)

#define FETCHES(NAME, TYPE, WORD, VERB)                                                            \
    TYPE shmem_##NAME##_atomic_fetch_##WORD(TYPE *dest, TYPE value, int pe)                        \
    {                                                                                              \
        return update_##NAME(VERB, dest, value, 0, pe);                                            \
    }                                                                                              \
    void shmem_##NAME##_atomic_fetch_##WORD##_nbi(TYPE *fetch, TYPE *dest, TYPE value, int pe)     \
    {                                                                                              \
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
        return update_##NAME(FERRY_COMPARE_SWAP, dest, value, cond, pe);                           \
    }                                                                                              \
    void shmem_##NAME##_atomic_compare_swap_nbi(TYPE *fetch, TYPE *dest, TYPE cond, TYPE value,    \
                                                int pe)                                            \
    {                                                                                              \
        *fetch = update_##NAME(FERRY_COMPARE_SWAP, dest, value, cond, pe);                         \
    }                                                                                              \
    TYPE shmem_##NAME##_atomic_fetch_inc(TYPE *dest, int pe)                                       \
    {                                                                                              \
        return update_##NAME(FERRY_FETCH_ADD, dest, 1, 0, pe);                                     \
    }                                                                                              \
    void shmem_##NAME##_atomic_fetch_inc_nbi(TYPE *fetch, TYPE *dest, int pe)                      \
    {                                                                                              \
        *fetch = update_##NAME(FERRY_FETCH_ADD, dest, 1, 0, pe);                                   \
    }                                                                                              \
    void shmem_##NAME##_atomic_inc(TYPE *dest, int pe)                                             \
    {                                                                                              \
        update_##NAME(FERRY_FETCH_ADD, dest, 1, 0, pe);                                            \
    }
SHMEM_ATOMIC_TYPES(INTEGERS)

#define BITS(NAME, TYPE)                                                                           \
    FETCHES(NAME, TYPE, and, FERRY_FETCH_AND)                                                      \
    FETCHES(NAME, TYPE, or, FERRY_FETCH_OR)                                                        \
    FETCHES(NAME, TYPE, xor, FERRY_FETCH_XOR)
SHMEM_BIT_TYPES(BITS)
