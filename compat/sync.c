/* Order, barriers, waiting for values, and locks. */
#include "state.h"

#include <string.h>

/* Puts by messages to different words have no order, so the fence waits for them too. */
void shmem_fence(void)
{
    unsigned turns = 0;
    while (fy_shmem_pe.outstanding > 0)
        fy_compat_turn(&turns);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void shmem_quiet(void)
{
    shmem_fence();
}

static void sync_all(const char *caller)
{
    if (fy_shmem_pe.heap == NULL)
        fy_compat_fail("%s before shmem_init or after shmem_finalize", caller);
    fy_compat_check(caller, ferry_barrier(fy_compat.f));
}

void shmem_barrier_all(void)
{
    shmem_quiet();
    sync_all("shmem_barrier_all");
}

void shmem_sync_all(void)
{
    sync_all("shmem_sync_all");
}

/* Whether the variable at `ivar` fulfils the comparison `cmp` with the value at `value`. */
typedef bool holds_fn(const void *ivar, int cmp, const void *value);

/* Variables that a call waits for. Those with a status other than 0 are left out. */
typedef struct watch {
    const char *ivars;
    size_t count, bytes;
    const int *status;
    int cmp;
    const char *values;
    size_t stride; /* of `values`; 0: one value for all variables */
    holds_fn *holds;
} watch;

static bool is_left_out(const watch *w, size_t i)
{
    return w->status != NULL && w->status[i] != 0;
}

/* Returns how many variables hold, and writes their indices to `indices` if that is not NULL. Sets
 * `*first` to the first that holds after the one that the last call chose, or else to the lowest.
 * So no variable is passed over each time. Sets `*asked` to the number of variables that were not
 * left out. */
static size_t look(const watch *w, size_t *indices, size_t *first, size_t *asked)
{
    size_t found = 0, lowest = SIZE_MAX;
    *asked = 0;
    *first = SIZE_MAX;
    for (size_t i = 0; i < w->count; i++) {
        if (is_left_out(w, i))
            continue;
        ++*asked;
        if (!w->holds(w->ivars + i * w->bytes, w->cmp, w->values + i * w->stride))
            continue;
        if (indices != NULL)
            indices[found] = i;
        if (found++ == 0)
            lowest = i;
        if (*first == SIZE_MAX && i >= fy_shmem_pe.turn)
            *first = i;
    }
    if (*first == SIZE_MAX)
        *first = lowest;
    if (found > 0)
        fy_shmem_pe.turn = *first + 1;
    return found;
}

/* Ends the job before shmem_init, or if the variables are missing. */
static void check_watch(const watch *w)
{
    fy_shmem_check();
    if (w->ivars == NULL && w->count > 0)
        fy_compat_fail("%s: the variable is NULL", fy_compat.call);
}

static size_t look_polling(const watch *w, size_t *indices, size_t *first, size_t *asked)
{
    unsigned turns = 0;
    check_watch(w);
    fy_compat_turn(&turns);
    return look(w, indices, first, asked);
}

/* Waits until one variable holds, or with `all` until every variable does. */
static size_t await(const watch *w, bool all, size_t *indices, size_t *first)
{
    unsigned turns = 0;
    check_watch(w);
    fy_shmem_poll_for(w->ivars, fy_compat.me);
    for (;;) {
        size_t asked, found = look(w, indices, first, &asked);
        if (found == asked || (!all && found > 0))
            return found;
        fy_compat_turn(&turns);
    }
}

static bool compares(int cmp, bool equal, bool less)
{
    switch (cmp) {
    case SHMEM_CMP_EQ:
        return equal;
    case SHMEM_CMP_NE:
        return !equal;
    case SHMEM_CMP_GT:
        return !equal && !less;
    case SHMEM_CMP_LE:
        return equal || less;
    case SHMEM_CMP_LT:
        return less;
    case SHMEM_CMP_GE:
        return !less;
    default:
        fy_compat_fail("%s: comparison %d; expected SHMEM_CMP_EQ to SHMEM_CMP_GE", fy_compat.call,
                       cmp);
    }
}

#define WATCH(TYPE, VALUES, STRIDE, NAME)                                                          \
    const watch w = {(const char *)ivars,   nelems,      sizeof(TYPE), status, cmp, VALUES,        \
                     STRIDE * sizeof(TYPE), holds_##NAME};                                         \
    size_t first = 0, asked = 0
#define WATCHES(NAME, TYPE, SUFFIX, VALUE, VALUES, STRIDE)                                         \
    void shmem_##NAME##_wait_until_all##SUFFIX(TYPE *ivars, size_t nelems, const int *status,      \
                                               int cmp, VALUE)                                     \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        WATCH(TYPE, VALUES, STRIDE, NAME);                                                         \
        (void)asked;                                                                               \
        await(&w, true, NULL, &first);                                                             \
    }                                                                                              \
    size_t shmem_##NAME##_wait_until_any##SUFFIX(TYPE *ivars, size_t nelems, const int *status,    \
                                                 int cmp, VALUE)                                   \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        WATCH(TYPE, VALUES, STRIDE, NAME);                                                         \
        (void)asked;                                                                               \
        await(&w, false, NULL, &first);                                                            \
        return first;                                                                              \
    }                                                                                              \
    size_t shmem_##NAME##_wait_until_some##SUFFIX(TYPE *ivars, size_t nelems, size_t *indices,     \
                                                  const int *status, int cmp, VALUE)               \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        WATCH(TYPE, VALUES, STRIDE, NAME);                                                         \
        (void)asked;                                                                               \
        return await(&w, false, indices, &first);                                                  \
    }                                                                                              \
    int shmem_##NAME##_test_all##SUFFIX(TYPE *ivars, size_t nelems, const int *status, int cmp,    \
                                        VALUE)                                                     \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        WATCH(TYPE, VALUES, STRIDE, NAME);                                                         \
        return look_polling(&w, NULL, &first, &asked) == asked;                                    \
    }                                                                                              \
    size_t shmem_##NAME##_test_any##SUFFIX(TYPE *ivars, size_t nelems, const int *status, int cmp, \
                                           VALUE)                                                  \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        WATCH(TYPE, VALUES, STRIDE, NAME);                                                         \
        look_polling(&w, NULL, &first, &asked);                                                    \
        return first;                                                                              \
    }                                                                                              \
    size_t shmem_##NAME##_test_some##SUFFIX(TYPE *ivars, size_t nelems, size_t *indices,           \
                                            const int *status, int cmp, VALUE)                     \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        WATCH(TYPE, VALUES, STRIDE, NAME);                                                         \
        return look_polling(&w, indices, &first, &asked);                                          \
    }

#define WAITS(NAME, TYPE)                                                                          \
    static bool holds_##NAME(const void *ivar, int cmp, const void *value)                         \
    {                                                                                              \
        TYPE now = __atomic_load_n((const TYPE *)ivar, __ATOMIC_ACQUIRE), than;                    \
        memcpy(&than, value, sizeof(than));                                                        \
        return compares(cmp, now == than, now < than);                                             \
    }                                                                                              \
    void shmem_##NAME##_wait_until(TYPE *ivar, int cmp, TYPE cmp_value)                            \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        size_t first = 0;                                                                          \
        const watch w = {(const char *)ivar,       1, sizeof(TYPE), NULL, cmp,                     \
                         (const char *)&cmp_value, 0, holds_##NAME};                               \
        await(&w, true, NULL, &first);                                                             \
    }                                                                                              \
    int shmem_##NAME##_test(TYPE *ivar, int cmp, TYPE cmp_value)                                   \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        size_t first = 0, asked = 0;                                                               \
        const watch w = {(const char *)ivar,       1, sizeof(TYPE), NULL, cmp,                     \
                         (const char *)&cmp_value, 0, holds_##NAME};                               \
        return look_polling(&w, NULL, &first, &asked) == asked;                                    \
    }                                                                                              \
    WATCHES(NAME, TYPE, , TYPE cmp_value, (const char *)&cmp_value, 0)                             \
    WATCHES(NAME, TYPE, _vector, TYPE *cmp_values, (const char *)cmp_values, 1)
SHMEM_WAIT_TYPES(WAITS)

uint64_t shmem_signal_fetch(const uint64_t *sig_addr)
{
    fy_shmem_poll_for(sig_addr, fy_compat.me);
    return __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
}

uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value)
{
    size_t first = 0;
    FY_SHMEM_CALL();
    const watch w = {(const char *)sig_addr,   1, sizeof(*sig_addr), NULL, cmp,
                     (const char *)&cmp_value, 0, holds_uint64};
    await(&w, true, NULL, &first);
    return shmem_signal_fetch(sig_addr);
}

/* A lock is the word of PE 0. Its upper half is the next ticket, its lower half the ticket that has
 * the lock. PEs get the lock in the order of their tickets. */

#define NEXT (UINT64_C(1) << 32)
enum { HOLDER_PE = 0 };

static uint32_t next_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static uint64_t read_lock(long *lock)
{
    return fy_shmem_update(FERRY_FETCH_OR, lock, sizeof(*lock), 0, 0, HOLDER_PE);
}

void shmem_set_lock(long *lock)
{
    unsigned turns = 0;
    FY_SHMEM_CALL();
    fy_compat_want("shmem_set_lock", lock, HOLDER_PE);
    uint64_t word = fy_shmem_update(FERRY_FETCH_ADD, lock, sizeof(*lock), NEXT, 0, HOLDER_PE);
    uint32_t ticket = next_of(word);
    for (; (uint32_t)word != ticket; word = read_lock(lock))
        fy_compat_turn(&turns);
    fy_compat_hold("shmem_set_lock", lock, HOLDER_PE);
}

int shmem_test_lock(long *lock)
{
    FY_SHMEM_CALL();
    uint64_t word = read_lock(lock);
    if (next_of(word) == (uint32_t)word && fy_shmem_update(FERRY_COMPARE_SWAP, lock, sizeof(*lock),
                                                           word + NEXT, word, HOLDER_PE) == word) {
        fy_compat_hold("shmem_test_lock", lock, HOLDER_PE);
        return 0;
    }
    unsigned turns = 0;
    fy_compat_turn(&turns);
    return 1;
}

/* Only the holder changes the lower half. It must not carry into the upper half. */
void fy_shmem_unlock(long *lock)
{
    shmem_quiet();
    fy_compat_release("shmem_clear_lock", lock, HOLDER_PE);
    uint64_t step = (uint32_t)read_lock(lock) == UINT32_MAX ? 1 - NEXT : 1;
    fy_shmem_update(FERRY_FETCH_ADD, lock, sizeof(*lock), step, 0, HOLDER_PE);
}

void shmem_clear_lock(long *lock)
{
    FY_SHMEM_CALL();
    fy_shmem_unlock(lock);
}
