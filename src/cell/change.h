/* Change: locks whose owner may die, and changes that can be stored twice without harm. Private to
 * cell.
 *
 * A rank that takes locks and changes shared state does this, in this order:
 *
 * - It notes the lock in its intent, and takes it.
 * - It notes the values that it is going to store.
 * - It sets the state to committed.
 * - It stores the values.
 * - It sets the state to idle.
 * - It frees the locks.
 *
 * If the rank dies, the state alone tells a survivor what to do. If it is committed, the survivor
 * stores the values, perhaps for the second time. Then it frees the locks that the notes name and
 * that the dead rank still owns. Until then the locks are the dead rank's, so nobody else has
 * changed these words.
 *
 * A release fence separates each step from the next, so that other ranks see the steps in order. */
#ifndef FY_CELL_CHANGE_H
#define FY_CELL_CHANGE_H

#include "cell/state.h"

static inline bool fy_try_lock(_Atomic uint32_t *lock, uint32_t self)
{
    uint32_t free = 0;
    /* acquire: pairs with the release of the unlock */
    return atomic_compare_exchange_strong_explicit(lock, &free, self, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* Frees a lock that names `owner`, if `owner` is dead or does not have it. Returns whether the lock
 * still named `owner`. */
static inline bool fy_lock_break(_Atomic uint32_t *lock, uint32_t owner)
{
    /* release: as in an unlock; relaxed if it fails */
    return atomic_compare_exchange_strong_explicit(lock, &owner, 0, memory_order_release,
                                                   memory_order_relaxed);
}

/* Waits for a lock that another rank has, and recovers that rank if it is dead. */
void fy_cell_lock_slowly(fy_cells *c, fy_cell *cell);
void fy_parcel_lock_slowly(fy_cells *c, fy_parcel *p);
/* Frees the lock about which another rank asks this rank (`doubted`): the lock names this rank,
 * which does not have it. This rank has no lock, or `mine` alone. */
void fy_lock_answer(const fy_cells *c, const fy_cell *mine);

/* [no lock held] */
static inline void fy_cell_lock(fy_cells *c, fy_cell *cell)
{
    atomic_store_explicit(&c->intent->cell, (uintptr_t)cell, memory_order_relaxed);
    /* release: the note is in memory before the exchange of fy_try_lock */
    atomic_thread_fence(memory_order_release);
    if (!fy_try_lock(&cell->lock, c->self))
        fy_cell_lock_slowly(c, cell);
}

static inline void fy_cell_unlock(fy_cell *cell)
{
    /* release: pairs with the acquire in try_lock */
    atomic_store_explicit(&cell->lock, 0, memory_order_release);
}

/* [at most a cell locked] */
static inline void fy_parcel_lock(fy_cells *c, fy_parcel *p)
{
    atomic_store_explicit(&c->intent->parcel, (uintptr_t)p, memory_order_relaxed);
    /* as in fy_cell_lock */
    atomic_thread_fence(memory_order_release);
    if (!fy_try_lock(&p->lock, c->self))
        fy_parcel_lock_slowly(c, p);
}

static inline void fy_parcel_unlock(fy_parcel *p)
{
    /* release: pairs with the acquire in try_lock */
    atomic_store_explicit(&p->lock, 0, memory_order_release);
}

/* Takes the place of fy_parcel_lock for a change of this rank's own holds alone. Nobody else writes
 * these while this rank lives, nor after its death before its change is finished. [a cell
 * locked] */
static inline void fy_parcel_note(fy_cells *c, fy_parcel *p)
{
    atomic_store_explicit(&c->intent->parcel, (uintptr_t)p, memory_order_relaxed);
}

/* Stores the values of the intent. */
static inline void fy_change_apply(fy_intent *intent)
{
    const fy_change *change = &intent->change;
    if (change->parts & FY_CHANGE_CELL) {
        /* relaxed: this rank wrote the note, or knows that its writer is dead */
        fy_cell *cell =
            (fy_cell *)(uintptr_t)atomic_load_explicit(&intent->cell, memory_order_relaxed);
        if (change->parts & FY_CHANGE_RING) {
            cell->ring = change->ring;
            cell->mask = change->mask;
        }
        if (change->parts & FY_CHANGE_SLOT)
            *(uint64_t *)(uintptr_t)change->slot = change->slot_value;
        /* release: pairs with the acquire in fy_queue_ready */
        atomic_store_explicit(&cell->ends, change->ends, memory_order_release);
    }
    if (change->parts & (FY_CHANGE_HOLD | FY_CHANGE_REFS)) {
        fy_parcel *p =
            (fy_parcel *)(uintptr_t)atomic_load_explicit(&intent->parcel, memory_order_relaxed);
        atomic_store_explicit(&p->holds[change->place], change->hold, memory_order_relaxed);
        /* release: pairs with the acquire in ferry_parcel_modify */
        if (change->parts & FY_CHANGE_REFS)
            atomic_store_explicit(&p->refs, change->refs, memory_order_release);
    }
    if (change->parts & FY_CHANGE_PLAN)
        atomic_store_explicit(&intent->plan, FY_PLAN_NONE, memory_order_relaxed);
}

/* Commits and stores the values in c->intent->change. The locks stay taken. */
static inline void fy_change_commit(fy_cells *c)
{
    fy_intent *intent = c->intent;
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&intent->state, FY_INTENT_COMMITTED, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    fy_change_apply(intent);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&intent->state, FY_INTENT_IDLE, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

#endif
