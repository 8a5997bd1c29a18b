/* The survivors clean up after a dead rank:
 *
 * - They finish its change, if it was committed, and free its locks.
 * - They go on with the emptying of a cell that it had begun.
 * - They release its holds.
 * - They free the parcels that it had created and that nobody has.
 *
 * One survivor at a time works on the board of a dead rank. The lock for this (`recoverer`) names
 * its owner too. The first step alone frees the lock of a parcel. So a rank that waits for that
 * lock while it has a cell locked needs only this step (fy_recover_change). The other steps are
 * done with no lock held. A rank that leaves is treated in the same way: its holds end. */
#include "base/relax.h"
#include "cell/change.h"

/* Takes the board of a dead rank for this rank. Returns false if this rank has it already: it met
 * an overwritten lock while it was recovering. */
static bool hold_board(const fy_cells *c, fy_board *board)
{
    for (;;) {
        uint32_t owner = 0;
        if (atomic_compare_exchange_strong_explicit(&board->recoverer, &owner, c->self,
                                                    memory_order_acquire, memory_order_relaxed))
            return true;
        if (owner == c->self)
            return false;
        /* acquire: as above. If several ranks take over, one succeeds */
        if ((owner > c->places || c->ops->members.peer(c->port, (int)owner - 1) != FY_PEER_ALIVE) &&
            atomic_compare_exchange_strong_explicit(&board->recoverer, &owner, c->self,
                                                    memory_order_acquire, memory_order_relaxed))
            return true;
        fy_yield();
    }
}

static void let_board(fy_board *board)
{
    atomic_store_explicit(&board->recoverer, 0, memory_order_release);
}

fy_cell *fy_cell_at_address(const fy_cells *c, uint64_t address)
{
    for (uint32_t rank = 0; rank < c->places; rank++) {
        uintptr_t first = c->boards[rank] == NULL ? 0 : (uintptr_t)c->boards[rank]->cells;
        uint64_t offset = address - first;
        if (first != 0 && offset < sizeof(c->boards[rank]->cells) && offset % sizeof(fy_cell) == 0)
            return (fy_cell *)(uintptr_t)address;
    }
    return NULL;
}

static bool is_heap(const fy_cells *c, uint64_t address)
{
    return address % sizeof(uint64_t) == 0 && address - c->start < c->bytes;
}

static bool recover_is_sound(const fy_cells *c, const fy_intent *intent, fy_cell *cell,
                             uint64_t parcel)
{
    const fy_change *change = &intent->change;
    if ((change->parts & FY_CHANGE_CELL) && cell == NULL)
        return false;
    if ((change->parts & FY_CHANGE_RING) && !is_heap(c, change->ring))
        return false;
    bool own_slot = cell != NULL && change->slot - (uintptr_t)cell < sizeof(*cell);
    if ((change->parts & FY_CHANGE_SLOT) && !own_slot && !is_heap(c, change->slot))
        return false;
    return !(change->parts & (FY_CHANGE_HOLD | FY_CHANGE_REFS)) ||
           (is_heap(c, parcel) && change->place < c->places);
}

/* Finishes the change and frees the parcel's lock. Frees the cell's lock too, unless the cell was
 * to be emptied. */
static void redo(fy_cells *c, fy_board *board, uint32_t dead)
{
    fy_intent *intent = &board->intent;
    if (atomic_load_explicit(&board->recovery, memory_order_relaxed) != FY_RECOVERY_NONE)
        return;
    /* acquire: pairs with the fences of the dead rank. Its death is known, so all its stores are
     * seen */
    bool committed =
        atomic_load_explicit(&intent->state, memory_order_acquire) == FY_INTENT_COMMITTED;
    uint64_t parcel = atomic_load_explicit(&intent->parcel, memory_order_relaxed);
    fy_cell *cell =
        fy_cell_at_address(c, atomic_load_explicit(&intent->cell, memory_order_relaxed));
    if (committed && recover_is_sound(c, intent, cell, parcel))
        fy_change_apply(intent);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&intent->state, FY_INTENT_IDLE, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    /* The note may be old, and the memory the program's by now: so look whether it is a parcel. */
    if (fy_parcel_is_at(c, parcel))
        (void)fy_lock_break(&((fy_parcel *)(uintptr_t)parcel)->lock, dead + 1);
    if (cell != NULL && atomic_load_explicit(&intent->plan, memory_order_relaxed) == FY_PLAN_NONE)
        (void)fy_lock_break(&cell->lock, dead + 1);
    atomic_store_explicit(&board->recovery, FY_RECOVERY_REDONE, memory_order_release);
}

void fy_recover_change(fy_cells *c, int dead)
{
    fy_board *board = c->boards[dead];
    if (!hold_board(c, board))
        return;
    redo(c, board, (uint32_t)dead);
    let_board(board);
}

/* Takes over a cell that the dead rank was emptying, and empties it. */
static void recover_finish(fy_cells *c, fy_board *board, uint32_t dead)
{
    fy_intent *theirs = &board->intent, *ours = c->intent;
    fy_cell *cell =
        fy_cell_at_address(c, atomic_load_explicit(&theirs->cell, memory_order_relaxed));
    /* relaxed: only the rank that recovers a dead rank takes its locks */
    if (cell == NULL || atomic_load_explicit(&cell->lock, memory_order_relaxed) != dead + 1)
        return;
    ours->plan_parcel = theirs->plan_parcel;
    ours->plan_place = theirs->plan_place;
    ours->plan_keep = theirs->plan_keep;
    uint32_t plan = atomic_load_explicit(&theirs->plan, memory_order_relaxed);
    atomic_store_explicit(&ours->cell, (uintptr_t)cell, memory_order_relaxed);
    atomic_store_explicit(&ours->plan, plan, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&cell->lock, c->self, memory_order_release);
    fy_queue_finish_plan(c, cell);
}

static void recover(fy_cells *c, fy_board *board, uint32_t dead)
{
    redo(c, board, dead);
    recover_finish(c, board, dead);
    /* seq_cst: two ranks may recover one dead rank each. At least one of the two sees that the
     * other dead rank's change is finished */
    atomic_thread_fence(memory_order_seq_cst);
    /* Ends the holds of dead ranks on each other's parcels: no living rank does that. While the
     * change of a dead rank is not finished, its holds are not final. Then the rank that recovers
     * it later sees to this pair. */
    for (uint32_t other = 0; other < c->places; other++) {
        /* acquire: pairs with the release in redo */
        if (c->boards[other] == NULL ||
            c->ops->members.peer(c->port, (int)other) == FY_PEER_ALIVE ||
            atomic_load_explicit(&c->boards[other]->recovery, memory_order_acquire) ==
                FY_RECOVERY_NONE)
            continue;
        fy_parcel_bury(c, board, other);
        if (other != dead)
            fy_parcel_bury(c, c->boards[other], dead);
    }
    atomic_store_explicit(&board->recovery, FY_RECOVERY_DONE, memory_order_relaxed);
}

void fy_recover(fy_cells *c, int dead)
{
    fy_board *board = c->boards[dead];
    if (!hold_board(c, board))
        return;
    /* relaxed: it is written only by the rank that has the board; redo publishes it */
    if (atomic_load_explicit(&board->recovery, memory_order_relaxed) != FY_RECOVERY_DONE)
        recover(c, board, (uint32_t)dead);
    let_board(board);
}

bool fy_cells_look(fy_cells *c)
{
    /* acquire: pairs with the port's store after the peer's state */
    uint32_t seen = atomic_load_explicit(c->changes, memory_order_acquire);
    if (seen == c->changes_seen)
        return false;
    c->changes_seen = seen;
    fy_port_info info;
    c->ops->transport.query(c->port, &info);
    c->crowded = info.crowded;
    for (int rank = 0; rank < ferry_ranks(c->f); rank++) {
        fy_peer_state state = c->gone[rank] ? FY_PEER_DEAD : c->ops->members.peer(c->port, rank);
        if (c->gone[rank] || state == FY_PEER_ALIVE || state == FY_PEER_ABSENT)
            continue;
        c->gone[rank] = 1;
        if (c->boards[rank] == NULL || c->boards[rank] == c->board)
            continue;
        fy_recover(c, rank);
        fy_parcel_bury(c, c->board, (uint32_t)rank);
        fy_parcel_rescue(c, (uint32_t)rank);
    }
    /* Last: a dead rank may have been about to free a parcel of any other rank. */
    for (int rank = 0; rank < ferry_ranks(c->f); rank++) {
        fy_board *board = c->boards[rank];
        if (c->gone[rank] && board != NULL && board != c->board && hold_board(c, board)) {
            fy_registry_bury(c, board);
            let_board(board);
        }
    }
    fy_marks_look(c);
    return true;
}
