/* Change: locks that survive their owners, and changes that are stored twice without harm. Private
 * to cell.
 *
 * Order of events, for one who takes locks and changes: note the lock, take it; note the values;
 * committed; store the values; idle; free the locks. A rank that finds the owner dead knows from
 * the state alone what to do: committed, store the values (again); then free what the notes name
 * and the dead still owns. Since the locks are still the dead's, nobody has changed anything
 * meanwhile.
 *
 * Each step is separated from the next by a release fence, so that memory shows them in order. */
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

/* Frees a lock of `owner`, who is dead or does not have it. Whether it was still that. */
static inline bool fy_lock_break(_Atomic uint32_t *lock, uint32_t owner)
{
    /* release: as an unlock; relaxed else */
    return atomic_compare_exchange_strong_explicit(lock, &owner, 0, memory_order_release,
                                                   memory_order_relaxed);
}

/* Waits for a lock that somebody has; recovers its owner if that is dead. */
void fy_cell_lock_slowly(fy_cells *c, fy_cell *cell);
void fy_parcel_lock_slowly(fy_cells *c, fy_parcel *p);
/* Frees a lock that names this rank and that somebody waits for in vain, since this rank has none
 * but `mine`, perhaps. */
void fy_lock_answer(const fy_cells *c, const fy_cell *mine);

/* [no lock held] */
static inline void fy_cell_lock(fy_cells *c, fy_cell *cell)
{
    atomic_store_explicit(&c->intent->cell, (uintptr_t)cell, memory_order_relaxed);
    /* The exchange of try_lock is not passed by the note: it is a release fence away. */
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

/* Instead of a lock, for a change of own holds alone: nobody else writes those while this rank
 * lives, nor before its change is finished when it is dead. [a cell locked] */
static inline void fy_parcel_note(fy_cells *c, fy_parcel *p)
{
    atomic_store_explicit(&c->intent->parcel, (uintptr_t)p, memory_order_relaxed);
}

/* Stores the values of the intent. */
static inline void fy_change_apply(fy_intent *intent)
{
    const fy_change *change = &intent->change;
    if (change->parts & FY_CHANGE_CELL) {
        /* relaxed: the note was ours, or its writer's death was */
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

/* Stores the values that the caller has put into c->intent->change; the locks stay. */
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
