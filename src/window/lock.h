/* Lock: a word that names the rank that holds it, of an element or of an array.
 *
 * If its holder dies, the next rank that wants the lock takes it over. */
#ifndef FY_WINDOW_LOCK_H
#define FY_WINDOW_LOCK_H

#include <stdatomic.h>

#include "core/head.h"

/* fy_window_lock_take of a lock that another rank holds. */
bool fy_window_lock_slowly(ferry *f, _Atomic uint32_t *lock);

/* Takes `lock`. Returns whether its holder had died. */
static inline bool fy_window_lock_take(ferry *f, _Atomic uint32_t *lock)
{
    uint32_t nobody = 0;
    /* acquire: pairs with the release of the holder before */
    if (atomic_compare_exchange_strong_explicit(lock, &nobody, (uint32_t)fy_head_of(f)->rank + 1,
                                                memory_order_acquire, memory_order_relaxed))
        return false;
    return fy_window_lock_slowly(f, lock);
}

static inline void fy_window_lock_give(_Atomic uint32_t *lock)
{
    /* release: pairs with the acquire of the next holder */
    atomic_store_explicit(lock, 0, memory_order_release);
}

#endif
