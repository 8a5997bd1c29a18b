/* The slow part of a lock, and the part of each rank in ferry_window_lock. */
#include "window/lock.h"

#include "base/relax.h"
#include "window/state.h"

enum { SPINS = 64 };

bool fy_window_lock_slowly(ferry *f, _Atomic uint32_t *lock)
{
    const uint32_t me = (uint32_t)fy_head_of(f)->rank + 1;
    for (unsigned spins = 1;; spins++) {
        /* relaxed: the exchange decides */
        uint32_t holder = atomic_load_explicit(lock, memory_order_relaxed);
        bool dead = holder != 0 && spins % SPINS == 0 && !fy_window_is_alive(f, (int)holder - 1);
        /* acquire: as in fy_window_lock_take */
        if ((holder == 0 || dead) &&
            atomic_compare_exchange_strong_explicit(lock, &holder, me, memory_order_acquire,
                                                    memory_order_relaxed))
            return dead;
        if (spins % SPINS == 0)
            fy_yield();
        else
            fy_relax();
    }
}

/* A live rank other than `rank` that has `kind`; -1: there is none. */
static int holder_of(ferry *f, const fy_array *array, int rank, fy_lock_part kind)
{
    for (uint32_t r = 0; r < array->ranks; r++)
        if (array->holders[r] == kind && (int)r != rank && fy_window_is_alive(f, (int)r))
            return (int)r;
    return -1;
}

static int conflict_of(ferry *f, const fy_array *array, int rank, fy_lock_part kind)
{
    int holder = holder_of(f, array, rank, FY_HELD_EXCLUSIVE);
    return holder >= 0 ? holder
                       : holder_of(f, array, rank,
                                   kind == FY_HELD_SHARED ? FY_HELD_AWAITED : FY_HELD_SHARED);
}

int fy_array_holder(ferry *f, fy_array *array, int rank, fy_lock_part kind)
{
    (void)fy_window_lock_take(f, &array->lock);
    int holder = conflict_of(f, array, rank, kind);
    fy_window_lock_give(&array->lock);
    return holder;
}

bool fy_array_lock(ferry *f, fy_array *array, int rank, fy_lock_part kind)
{
    (void)fy_window_lock_take(f, &array->lock); /* each byte is right even if the holder has died */
    bool free = conflict_of(f, array, rank, kind) < 0;
    if (free)
        array->holders[rank] = (uint8_t)kind;
    else if (kind == FY_HELD_EXCLUSIVE)
        array->holders[rank] = FY_HELD_AWAITED;
    fy_window_lock_give(&array->lock);
    return free;
}

void fy_array_unlock(ferry *f, fy_array *array, int rank)
{
    (void)fy_window_lock_take(f, &array->lock);
    array->holders[rank] = FY_HELD_NOT;
    fy_window_lock_give(&array->lock);
}
