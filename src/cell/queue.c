/* A cell as a queue in memory: a ring of parcel names. The ring begins inside the cell, and becomes
 * four times as large when it is full.
 *
 * All changes are made under the cell's lock. An empty or full cell is seen without the lock. A
 * ring that the cell has outgrown is kept: all of them together are smaller than the one in use. To
 * free one safely, even if ranks die, would cost more than that.
 *
 * A rank that waits sets its bit under the lock, then sleeps. A rank that adds or removes a parcel
 * clears such a bit under the lock, and wakes that rank after it. A rank whose bit was cleared may
 * expect a parcel or room. If it gives up, it passes that on to the next. A death wakes all waiting
 * ranks, and they set their bits again. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cell/change.h"
#include "core/fail.h"

/* The ranks to wake when the lock is free again. */
typedef struct wakes {
    int one; /* -1: none */
    bool all;
    uint64_t bits[FY_CELL_RANK_WORDS];
} wakes;

static uint32_t limit_of(const fy_cell *cell)
{
    uint32_t limit = atomic_load_explicit(&cell->limit, memory_order_relaxed);
    return limit == 0 ? FERRY_CELL_LIMIT : limit;
}

static uint32_t mask_of(const fy_cell *cell)
{
    return cell->ring == 0 ? FY_CELL_INLINE - 1 : cell->mask & FY_CELL_MASK;
}

/* The value of `mask` in a cell whose ring has this address and mask. */
static uint32_t mask_checked(uint64_t ring, uint32_t mask)
{
    uint32_t check = (uint32_t)((ring + mask) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
    return mask | (check & ~(uint32_t)FY_CELL_MASK);
}

static uint64_t *slot_at(fy_cell *cell, uint32_t index)
{
    uint64_t *slots = cell->ring == 0 ? cell->slots : (uint64_t *)(uintptr_t)cell->ring;
    return &slots[index & mask_of(cell)];
}

static uint64_t ends_of(const fy_cell *cell)
{
    /* relaxed: read under the lock */
    return atomic_load_explicit(&cell->ends, memory_order_relaxed);
}

/* Whether ring and ends of a locked cell can be what Ferry has written. */
static inline bool queue_is_sound(const fy_cell *cell)
{
    uint32_t mask = mask_of(cell);
    if (fy_ends_count(ends_of(cell)) > mask + (uint64_t)1)
        return false;
    return cell->ring == 0 || cell->mask == mask_checked(cell->ring, mask);
}

/* Empties a locked cell that the program has overwritten. The parcels in it are lost. */
static __attribute__((cold, noinline)) void repair(fy_cells *c, fy_cell *cell)
{
    uint32_t tail = fy_ends_tail(ends_of(cell));
    fy_log(c->f,
           "a cell has %" PRIu32 " parcels in %" PRIu32 " slots at 0x%" PRIx64
           ": memory was overwritten, and the cell is emptied",
           fy_ends_count(ends_of(cell)), mask_of(cell) + 1, cell->ring);
    cell->ring = 0;
    /* release: as in fy_change_apply */
    atomic_store_explicit(&cell->ends, fy_ends_make(tail, tail), memory_order_release);
}

static inline void lock_sound(fy_cells *c, fy_cell *cell)
{
    fy_cell_lock(c, cell);
    if (__builtin_expect(!queue_is_sound(cell), 0))
        repair(c, cell);
}

static bool is_alive(const fy_cells *c, int place)
{
    return !c->shared ||
           ((uint32_t)place < c->places && c->ops->members.peer(c->port, place) == FY_PEER_ALIVE);
}

/* Clears a bit and returns its place: the first after the place that had its turn last. -1: no bit
 * is set. */
static int pick_any(fy_cell *cell, uint64_t *bits, uint32_t flag)
{
    uint32_t start = (cell->turn + 1) % (FY_CELL_RANK_WORDS * 64);
    for (uint32_t i = 0; i <= FY_CELL_RANK_WORDS; i++) {
        uint32_t word = (start / 64 + i) % FY_CELL_RANK_WORDS;
        uint64_t found = bits[word];
        if (i == 0)
            found &= ~UINT64_C(0) << (start % 64);
        if (found == 0)
            continue;
        uint32_t at = word * 64 + (uint32_t)__builtin_ctzll(found);
        bits[word] &= ~(UINT64_C(1) << (at % 64));
        cell->turn = at;
        return (int)at;
    }
    cell->flags &= ~flag;
    return -1;
}

/* As pick_any, but skips ranks that are not alive. */
static int pick(const fy_cells *c, fy_cell *cell, uint64_t *bits, uint32_t flag)
{
    int place;
    do
        place = pick_any(cell, bits, flag);
    while (place >= 0 && !is_alive(c, place));
    return place;
}

static void rouse(const fy_cells *c, int place)
{
    if (place >= 0 && (uint32_t)place < c->places && place != (int)c->place)
        c->ops->heap.rouse(c->port, place);
}

static void run_wakes(const fy_cells *c, const wakes *w)
{
    rouse(c, w->one);
    for (uint32_t word = 0; w->all && word < FY_CELL_RANK_WORDS; word++)
        for (uint64_t bits = w->bits[word]; bits != 0; bits &= bits - 1)
            rouse(c, (int)(word * 64) + __builtin_ctzll(bits));
}

/* Unlocks a changed cell that has flags: wakes ranks that wait for it, and sets its alarm if a mark
 * is passed. */
static __attribute__((cold, noinline)) void unlock_telling(fy_cells *c, fy_cell *cell, bool added)
{
    wakes w = {.one = -1};
    int owner = cell->flags & FY_CELL_MARKS ? fy_marks_check(c, cell) : -1;
    if (added && (cell->flags & FY_CELL_READERS)) {
        w.all = true;
        memcpy(w.bits, cell->takers, sizeof(w.bits));
        memset(cell->takers, 0, sizeof(cell->takers));
        cell->flags &= ~(uint32_t)(FY_CELL_TAKERS | FY_CELL_READERS);
    } else if (added && (cell->flags & FY_CELL_TAKERS)) {
        w.one = pick(c, cell, cell->takers, FY_CELL_TAKERS);
        fy_cell_want(cell, FY_CELL_DEQ);
    } else if (!added && (cell->flags & FY_CELL_SPACE)) {
        w.one = pick(c, cell, cell->space, FY_CELL_SPACE);
        fy_cell_want(cell, FY_CELL_ENQ);
    }
    fy_cell_unlock(cell);
    run_wakes(c, &w);
    if (owner >= 0)
        rouse(c, owner);
}

static inline void unlock_changed(fy_cells *c, fy_cell *cell, bool added)
{
    if (cell->flags == 0)
        fy_cell_unlock(cell);
    else
        unlock_telling(c, cell, added);
}

/* Unlocks a cell that was emptied: every rank that waits for room may add. */
static void unlock_emptied(fy_cells *c, fy_cell *cell, bool added)
{
    wakes w = {.one = -1, .all = (cell->flags & FY_CELL_SPACE) != 0};
    if (w.all) {
        memcpy(w.bits, cell->space, sizeof(w.bits));
        memset(cell->space, 0, sizeof(cell->space));
        cell->flags &= ~(uint32_t)FY_CELL_SPACE;
    }
    unlock_changed(c, cell, added);
    run_wakes(c, &w);
}

/* Makes a larger ring, and notes it in the change that is being made. */
static __attribute__((cold, noinline)) bool queue_grow(fy_cells *c, fy_cell *cell,
                                                       fy_change *change)
{
    uint32_t mask = (mask_of(cell) + 1) * 4 - 1;
    /* The word after the slots has the address of the ring before. */
    uint64_t *ring = fy_cells_alloc(c, (mask + (size_t)2) * sizeof(uint64_t));
    if (ring == NULL)
        return false;
    ring[mask + (size_t)1] = cell->ring;
    uint64_t ends = ends_of(cell);
    for (uint32_t i = fy_ends_head(ends); i != fy_ends_tail(ends); i++)
        ring[i & mask] = *slot_at(cell, i);
    change->ring = (uintptr_t)ring;
    change->mask = mask_checked(change->ring, mask);
    change->parts |= FY_CHANGE_RING;
    return true;
}

/* The rest of `add` under the parcel's lock: the sum of references changes, or the holds of a dead
 * rank do. */
static void add_locked(fy_cells *c, fy_parcel *p, ferry_hold hold, uint32_t place)
{
    fy_change *change = &c->intent->change;
    bool give = hold == FERRY_GIVE;
    fy_parcel_lock(c, p);
    change->parts |= FY_CHANGE_REFS;
    change->hold = (uint16_t)(atomic_load_explicit(&p->holds[place], memory_order_relaxed) - give);
    change->refs = atomic_load_explicit(&p->refs, memory_order_relaxed) + !give;
    fy_change_commit(c);
    fy_parcel_unlock(p);
}

/* Adds `p` to a locked cell that has room. The reference is a hold of `place`. The cell stays
 * locked. */
static int queue_add(fy_cells *c, fy_cell *cell, fy_parcel *p, ferry_hold hold, uint32_t place)
{
    fy_change *change = &c->intent->change;
    uint64_t ends = ends_of(cell);
    uint32_t tail = fy_ends_tail(ends), count = fy_ends_count(ends);
    change->parts = FY_CHANGE_CELL | FY_CHANGE_SLOT | FY_CHANGE_HOLD | FY_CHANGE_PLAN;
    change->slot = (uintptr_t)slot_at(cell, tail);
    if (count > mask_of(cell)) {
        if (!queue_grow(c, cell, change))
            return FERRY_ENOMEM;
        change->slot = change->ring + (tail & change->mask & FY_CELL_MASK) * sizeof(uint64_t);
    }
    /* relaxed: a held parcel keeps its name, and the parcel's lock guards the rest */
    change->slot_value = atomic_load_explicit(&p->name, memory_order_relaxed);
    change->ends = fy_ends_make(fy_ends_head(ends), tail + 1);
    change->place = place;
    if (hold == FERRY_GIVE && place == c->place) {
        fy_parcel_note(c, p);
        change->hold = (uint16_t)(atomic_load_explicit(&p->holds[place], memory_order_relaxed) - 1);
        fy_change_commit(c);
    } else {
        add_locked(c, p, hold, place);
    }
    return 0;
}

/* Adds a parcel to a cell that has fewer than `limit`. */
static int queue_add_below(fy_cells *c, fy_cell *cell, fy_parcel *p, ferry_hold hold,
                           uint32_t limit)
{
    lock_sound(c, cell);
    int error = FERRY_EAGAIN;
    if (fy_ends_count(ends_of(cell)) < limit)
        error = queue_add(c, cell, p, hold, c->place);
    if (error == 0)
        unlock_changed(c, cell, true);
    else
        fy_cell_unlock(cell);
    return error;
}

int fy_queue_enq(fy_cells *c, fy_cell *cell, fy_parcel *p, ferry_hold hold)
{
    return fy_queue_ready(cell, FY_CELL_ENQ) ? queue_add_below(c, cell, p, hold, limit_of(cell))
                                             : FERRY_EAGAIN;
}

int fy_queue_return(fy_cells *c, fy_cell *cell, fy_parcel *p)
{
    return queue_add_below(c, cell, p, FERRY_GIVE, FY_CELL_MASK);
}

/* Removes the first slot of a locked cell: it names no parcel. */
static __attribute__((cold, noinline)) void skip_damaged(fy_cells *c, fy_cell *cell)
{
    uint64_t ends = ends_of(cell);
    fy_log(c->f, "a cell names 0x%" PRIx64 ", which is no parcel: memory was overwritten",
           *slot_at(cell, fy_ends_head(ends)));
    fy_change *change = &c->intent->change;
    change->parts = FY_CHANGE_CELL;
    change->ends = fy_ends_make(fy_ends_head(ends) + 1, fy_ends_tail(ends));
    fy_change_commit(c);
}

/* The first parcel of a locked cell; NULL: the cell is empty. */
static fy_parcel *first_of(fy_cells *c, fy_cell *cell)
{
    for (uint64_t ends; fy_ends_count(ends = ends_of(cell)) > 0;) {
        fy_parcel *p = fy_parcel_find(c, *slot_at(cell, fy_ends_head(ends)));
        if (p != NULL)
            return p;
        skip_damaged(c, cell);
    }
    return NULL;
}

/* Removes the first parcel of a locked cell. The cell's reference becomes a hold of this rank. */
static inline void queue_take(fy_cells *c, fy_cell *cell, fy_parcel *p)
{
    fy_change *change = &c->intent->change;
    uint64_t ends = ends_of(cell);
    change->parts = FY_CHANGE_HOLD | FY_CHANGE_CELL;
    change->ends = fy_ends_make(fy_ends_head(ends) + 1, fy_ends_tail(ends));
    fy_parcel_note(c, p);
    fy_change_commit(c);
}

/* Leaves the first parcel in the cell, and gives this rank a hold. */
static void share(fy_cells *c, fy_parcel *p)
{
    fy_change *change = &c->intent->change;
    fy_parcel_lock(c, p);
    change->parts = FY_CHANGE_HOLD | FY_CHANGE_REFS;
    /* relaxed: under the lock */
    change->refs = atomic_load_explicit(&p->refs, memory_order_relaxed) + 1;
    fy_change_commit(c);
    fy_parcel_unlock(p);
}

int fy_queue_first(fy_cells *c, fy_cell *cell, bool remove, ferry_parcel *out)
{
    if (!fy_queue_ready(cell, FY_CELL_DEQ))
        return FERRY_EAGAIN;
    lock_sound(c, cell);
    fy_parcel *p = first_of(c, cell);
    if (p == NULL) {
        fy_cell_unlock(cell);
        return FERRY_EAGAIN;
    }
    /* relaxed, here and below: this rank's own count, and a name that stays */
    uint32_t hold = atomic_load_explicit(&p->holds[c->place], memory_order_relaxed);
    if (hold == UINT16_MAX) {
        fy_cell_unlock(cell);
        return FERRY_ENOMEM;
    }
    c->intent->change.place = c->place;
    c->intent->change.hold = (uint16_t)(hold + 1);
    out->word = atomic_load_explicit(&p->name, memory_order_relaxed);
    if (remove) {
        queue_take(c, cell, p);
        unlock_changed(c, cell, false);
    } else {
        share(c, p);
        fy_cell_unlock(cell);
    }
    return 0;
}

/* Removes the first parcel of a locked cell and ends the cell's reference. Frees the parcel if that
 * was the last. */
static void drop_first(fy_cells *c, fy_cell *cell, fy_parcel *p)
{
    uint64_t ends = ends_of(cell);
    fy_change *change = &c->intent->change;
    fy_parcel_lock(c, p);
    /* relaxed, here and below: read under the lock */
    uint32_t refs = atomic_load_explicit(&p->refs, memory_order_relaxed);
    change->parts = FY_CHANGE_CELL | FY_CHANGE_HOLD | FY_CHANGE_REFS;
    change->ends = fy_ends_make(fy_ends_head(ends) + 1, fy_ends_tail(ends));
    change->refs = refs - 1;
    change->place = c->place;
    change->hold = atomic_load_explicit(&p->holds[c->place], memory_order_relaxed);
    if (refs == 1)
        atomic_store_explicit(&c->intent->freeing,
                              atomic_load_explicit(&p->name, memory_order_relaxed),
                              memory_order_relaxed);
    fy_change_commit(c);
    fy_parcel_unlock(p);
    if (refs == 1) {
        fy_parcel_free(c, p);
        /* release: after the push */
        atomic_store_explicit(&c->intent->freeing, 0, memory_order_release);
    }
}

void fy_queue_finish_plan(fy_cells *c, fy_cell *cell)
{
    fy_intent *intent = c->intent;
    for (fy_parcel *p; (p = first_of(c, cell)) != NULL;)
        drop_first(c, cell, p);
    bool write = atomic_load_explicit(&intent->plan, memory_order_relaxed) == FY_PLAN_WRITE;
    fy_parcel *p = write ? fy_parcel_find(c, intent->plan_parcel) : NULL;
    uint32_t place = intent->plan_place;
    /* relaxed: only `place` changes these holds or, if it is dead, this rank */
    if (p != NULL && place < c->places &&
        atomic_load_explicit(&p->holds[place], memory_order_relaxed) > 0)
        (void)queue_add(c, cell, p, intent->plan_keep ? FERRY_KEEP : FERRY_GIVE, place);
    atomic_store_explicit(&intent->plan, FY_PLAN_NONE, memory_order_release);
    unlock_emptied(c, cell, write);
}

static void queue_empty(fy_cells *c, fy_cell *cell, fy_intent_plan plan)
{
    /* release: the plan's details stand before it counts */
    atomic_store_explicit(&c->intent->plan, plan, memory_order_release);
    lock_sound(c, cell);
    fy_queue_finish_plan(c, cell);
}

void fy_queue_write(fy_cells *c, fy_cell *cell, fy_parcel *p, ferry_hold hold)
{
    /* relaxed: this rank holds it */
    c->intent->plan_parcel = atomic_load_explicit(&p->name, memory_order_relaxed);
    c->intent->plan_place = c->place;
    c->intent->plan_keep = hold == FERRY_KEEP;
    queue_empty(c, cell, FY_PLAN_WRITE);
}

void fy_queue_clear(fy_cells *c, fy_cell *cell)
{
    queue_empty(c, cell, FY_PLAN_CLEAR);
}

size_t fy_queue_count(fy_cells *c, fy_cell *cell)
{
    lock_sound(c, cell);
    size_t count = fy_ends_count(ends_of(cell));
    fy_cell_unlock(cell);
    return count;
}

void fy_queue_rings_free(fy_cell *cell)
{
    size_t slots = (size_t)mask_of(cell) + 1;
    while (cell->ring != 0) {
        uint64_t *ring = (uint64_t *)(uintptr_t)cell->ring;
        cell->ring = ring[slots];
        slots /= 4;
        free(ring);
    }
}

static uint64_t *bits_of(fy_cell *cell, fy_cell_kind kind)
{
    return kind == FY_CELL_ENQ ? cell->space : cell->takers;
}

/* As fy_queue_ready, but under the lock, so it is exact. */
static bool is_ready(const fy_cell *cell, fy_cell_kind kind)
{
    uint32_t count = fy_ends_count(ends_of(cell));
    return kind == FY_CELL_ENQ ? count < limit_of(cell) : count > 0;
}

bool fy_queue_await(fy_cells *c, fy_cell *cell, fy_cell_kind kind)
{
    if (fy_queue_ready(cell, kind))
        return false;
    fy_cell_lock(c, cell);
    bool ready = is_ready(cell, kind);
    if (!ready) {
        bits_of(cell, kind)[c->place / 64] |= UINT64_C(1) << (c->place % 64);
        cell->flags |= kind == FY_CELL_ENQ ? FY_CELL_SPACE : FY_CELL_TAKERS;
        if (kind == FY_CELL_READ)
            cell->flags |= FY_CELL_READERS;
    }
    fy_cell_unlock(cell);
    return !ready;
}

void fy_queue_leave(fy_cells *c, fy_cell *cell, fy_cell_kind kind)
{
    uint64_t bit = UINT64_C(1) << (c->place % 64);
    fy_cell_lock(c, cell);
    uint64_t *word = &bits_of(cell, kind)[c->place / 64];
    bool noted = (*word & bit) != 0;
    *word &= ~bit;
    if (!noted && cell->flags != 0 && is_ready(cell, kind))
        unlock_telling(c, cell, kind != FY_CELL_ENQ);
    else
        fy_cell_unlock(cell);
}
