/* Locks that are not free: waiting for their owners, or outliving them. */
#include "cell/change.h"
#include "base/relax.h"

enum { SPINS = 200 };

/* Waits until a lock may be free. False: its owner is dead; `*dead` says who. */
static bool wait_for(const fy_cells *c, _Atomic uint32_t *lock, int *dead)
{
    uint32_t owner;
    for (int i = 0; i < SPINS; i++) {
        /* relaxed: taking it is what acquires */
        owner = atomic_load_explicit(lock, memory_order_relaxed);
        if (owner == 0)
            return true;
        fy_relax();
    }
    /* A number that is no rank's was never a lock: the memory was overwritten. */
    if (owner > c->places) {
        atomic_compare_exchange_strong_explicit(lock, &owner, 0, memory_order_relaxed,
                                                memory_order_relaxed);
        return true;
    }
    *dead = (int)owner - 1;
    if (c->ops->peer(c->port, *dead) != FY_PEER_ALIVE &&
        atomic_load_explicit(lock, memory_order_relaxed) == owner)
        return false;
    fy_yield();
    return true;
}

/* A recovered rank owns nothing: what still says so was overwritten. */
static void break_lock(_Atomic uint32_t *lock, int dead)
{
    uint32_t owner = (uint32_t)dead + 1;
    atomic_compare_exchange_strong_explicit(lock, &owner, 0, memory_order_relaxed,
                                            memory_order_relaxed);
}

void fy_cell_lock_slowly(fy_cells *c, fy_cell *cell)
{
    do {
        int dead;
        if (!wait_for(c, &cell->lock, &dead)) {
            fy_recover(c, dead);
            break_lock(&cell->lock, dead);
            atomic_store_explicit(&c->intent->cell, (uintptr_t)cell, memory_order_relaxed);
            atomic_thread_fence(memory_order_release);
        }
    } while (!fy_try_lock(&cell->lock, c->self));
}

void fy_parcel_lock_slowly(fy_cells *c, fy_parcel *p)
{
    do {
        int dead;
        if (!wait_for(c, &p->lock, &dead)) {
            fy_recover_change(c, dead);
            break_lock(&p->lock, dead);
        }
    } while (!fy_try_lock(&p->lock, c->self));
}
