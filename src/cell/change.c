/* Locks that are not free. This rank waits for the owner, recovers an owner that is dead, or finds
 * that the lock has none.
 *
 * A program may have overwritten a lock, so that it names a living rank that does not have it. Only
 * that rank can tell. So a rank that waits for long asks the named rank on its board (`doubted`).
 * The named rank looks in its next poll, and when it waits for a lock itself, and frees a lock that
 * it does not have. The memory of the lock must stay while it looks. So it marks the request as
 * LOOKING, and the rank that asked waits for the end of that before it goes on.
 *
 * If the header beside the lock was overwritten too, the named rank would not recognise the lock.
 * Then the rank that waits frees it: the parcel is damaged anyway. */
#include "cell/change.h"
#include "base/relax.h"
#include "core/fail.h"

/* A rank spins SPINS times, then yields. After TURNS yields, some microseconds each, it asks the
 * owner. */
enum { SPINS = 200, TURNS = 64, LOOKING = 1 };

/* Frees a lock with a value that no rank has written. */
static __attribute__((cold, noinline)) void free_overwritten(const fy_cells *c,
                                                             _Atomic uint32_t *lock, uint32_t owner)
{
    if (fy_lock_break(lock, owner))
        fy_log(c->f, "a lock at %p has the value %u, and nobody has it: memory was overwritten",
               (void *)lock, (unsigned)owner);
}

/* Whether a word at `address` is a lock. */
static bool is_lock(const fy_cells *c, uint64_t address)
{
    if (fy_cell_at_address(c, address) != NULL)
        return true;
    return fy_parcel_is_at(c, address - offsetof(fy_parcel, lock));
}

void fy_lock_answer(const fy_cells *c, const fy_cell *mine)
{
    _Atomic uint64_t *doubted = &c->board->doubted;
    /* relaxed: the exchange below acquires */
    uint64_t address = atomic_load_explicit(doubted, memory_order_relaxed);
    if (address == 0 || address == (uintptr_t)mine)
        return;
    /* acquire: pairs with the release in change_ask. It fails if the rank that asked has taken the
     * request back */
    if (!atomic_compare_exchange_strong_explicit(doubted, &address, address | LOOKING,
                                                 memory_order_acquire, memory_order_relaxed))
        return;
    if (is_lock(c, address))
        free_overwritten(c, (_Atomic uint32_t *)(uintptr_t)address, c->self);
    /* release: after the look; pairs with the acquire in take_back */
    atomic_store_explicit(doubted, 0, memory_order_release);
}

static void change_ask(const fy_cells *c, const _Atomic uint32_t *lock, int owner)
{
    fy_board *board = c->boards[owner];
    uint64_t none = 0;
    (void)atomic_compare_exchange_strong_explicit(&board->doubted, &none, (uintptr_t)lock,
                                                  memory_order_release, memory_order_relaxed);
    /* release: pairs with the acquire in progress */
    atomic_store_explicit(&board->attention, 1, memory_order_release);
    c->ops->heap.rouse(c->port, owner);
}

static void take_back(const fy_cells *c, const _Atomic uint32_t *lock, int owner)
{
    _Atomic uint64_t *doubted = &c->boards[owner]->doubted;
    uint64_t address = (uintptr_t)lock;
    /* relaxed: nothing was looked at */
    if (atomic_compare_exchange_strong_explicit(doubted, &address, 0, memory_order_relaxed,
                                                memory_order_relaxed))
        return;
    /* acquire: pairs with the release in fy_lock_answer */
    while (atomic_load_explicit(doubted, memory_order_acquire) == ((uintptr_t)lock | LOOKING) &&
           c->ops->members.peer(c->port, owner) == FY_PEER_ALIVE)
        fy_yield();
}

/* The owner of a lock that stays taken; -1: it may be free now. */
static int owner_of(const fy_cells *c, _Atomic uint32_t *lock)
{
    uint32_t owner;
    for (int i = 0; i < SPINS; i++) {
        /* relaxed: fy_try_lock acquires */
        owner = atomic_load_explicit(lock, memory_order_relaxed);
        if (owner == 0)
            return -1;
        fy_relax();
    }
    /* This rank has no lock that it would wait for. A place without a board, or whose rank was
     * never here, owns none either. */
    if (owner > c->places || owner == c->self || c->boards[owner - 1] == NULL ||
        c->ops->members.peer(c->port, (int)owner - 1) == FY_PEER_ABSENT) {
        free_overwritten(c, lock, owner);
        return -1;
    }
    return (int)owner - 1;
}

/* Waits for a lock that another rank has. `recover` frees the lock of a dead owner. A dead rank
 * that was recovered already owns nothing: a lock that still names it was overwritten. */
static void lock_slowly(fy_cells *c, _Atomic uint32_t *lock,
                        void (*recover)(fy_cells *c, _Atomic uint32_t *lock, int dead))
{
    int asked = -1;
    for (uint32_t turns = 1; !fy_try_lock(lock, c->self); turns++) {
        int owner = owner_of(c, lock);
        if (owner < 0)
            continue;
        if (c->ops->members.peer(c->port, owner) != FY_PEER_ALIVE) {
            if (atomic_load_explicit(lock, memory_order_relaxed) == (uint32_t)owner + 1)
                recover(c, lock, owner);
            continue;
        }
        /* relaxed: this rank's own note */
        fy_lock_answer(c, (const fy_cell *)(uintptr_t)atomic_load_explicit(&c->intent->cell,
                                                                           memory_order_relaxed));
        if (turns % TURNS == 0 && !is_lock(c, (uintptr_t)lock)) {
            free_overwritten(c, lock, (uint32_t)owner + 1);
            continue;
        }
        if (turns % TURNS == 0) {
            if (asked >= 0 && asked != owner)
                take_back(c, lock, asked);
            asked = owner;
            change_ask(c, lock, owner);
        }
        fy_yield();
    }
    if (asked >= 0)
        take_back(c, lock, asked);
}

/* Recovery uses the intent of this rank for the plan of the dead rank. So the notes of the
 * operation that met the lock are saved before and restored after it. */
static void recover_cell(fy_cells *c, _Atomic uint32_t *lock, int dead)
{
    fy_intent *ours = c->intent;
    uint64_t cell = atomic_load_explicit(&ours->cell, memory_order_relaxed);
    uint32_t plan = atomic_load_explicit(&ours->plan, memory_order_relaxed);
    uint64_t parcel = ours->plan_parcel;
    uint32_t place = ours->plan_place, keep = ours->plan_keep;
    fy_recover(c, dead);
    (void)fy_lock_break(lock, (uint32_t)dead + 1);
    ours->plan_parcel = parcel;
    ours->plan_place = place;
    ours->plan_keep = keep;
    atomic_store_explicit(&ours->cell, cell, memory_order_relaxed);
    /* release: the plan's details are in memory before the plan counts */
    atomic_store_explicit(&ours->plan, plan, memory_order_release);
    atomic_thread_fence(memory_order_release);
}

static void recover_parcel(fy_cells *c, _Atomic uint32_t *lock, int dead)
{
    fy_recover_change(c, dead);
    (void)fy_lock_break(lock, (uint32_t)dead + 1);
}

void fy_cell_lock_slowly(fy_cells *c, fy_cell *cell)
{
    lock_slowly(c, &cell->lock, recover_cell);
}

void fy_parcel_lock_slowly(fy_cells *c, fy_parcel *p)
{
    lock_slowly(c, &p->lock, recover_parcel);
}
