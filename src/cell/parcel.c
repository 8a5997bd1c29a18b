/* Parcels: blocks of the shared heap that begin with a header. They are found by name and freed by
 * their creator.
 *
 * A name is the address of the header with a generation above it. So a word that is no name of a
 * live parcel is recognised: the header at that address is always readable, and has another name or
 * a wrong check.
 *
 * Only its creator gives a parcel's memory back to the heap. So the creator may walk over all its
 * parcels without a lock on the list. Another rank that frees a parcel pushes it on the creator's
 * stack (`returned`). If that rank dies between its last change and the push, it has noted the name
 * in `freeing`, and the creator looks there.
 *
 * If the creator has gone, the rank that frees a parcel gives it back itself. Other free parcels of
 * that creator were pushed, or were about to be pushed by a rank that died. They are found in the
 * creator's registry: they have no references, and no living rank has them in `freeing`. The stack
 * of a rank that has gone may still grow. Nobody reads it any more. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cell/change.h"
#include "core/fail.h"

enum { ADDRESS_BITS = 42, ADDRESS_SHIFT = 6, REGISTRY_FIRST = 256 };

static const uint64_t address_mask = (UINT64_C(1) << ADDRESS_BITS) - 1;

static uint64_t parcel_check(const fy_parcel *p, uint64_t name)
{
    return (name ^ p->creator) * UINT64_C(0x9e3779b97f4a7c15) + p->size_bytes;
}

static fy_parcel *parcel_at(uintptr_t address)
{
    return (fy_parcel *)address;
}

fy_parcel *fy_parcel_find(const fy_cells *c, uint64_t name)
{
    uintptr_t address = (uintptr_t)((name & address_mask) << ADDRESS_SHIFT);
    if (c->shared) {
        if (address - c->start >= c->bytes)
            return NULL;
    } else if (address == 0 || fy_table_find(&c->names, address) == NULL) {
        return NULL;
    }
    fy_parcel *p = parcel_at(address);
    /* relaxed: a rank that has the name got it from a rank that had the parcel */
    if (atomic_load_explicit(&p->name, memory_order_relaxed) != name ||
        p->check != parcel_check(p, name) || p->creator >= c->places)
        return NULL;
    return p;
}

bool fy_parcel_is_at(const fy_cells *c, uint64_t address)
{
    if (address % FY_PARCEL_BYTES != 0 || address - c->start >= c->bytes)
        return false;
    const fy_parcel *p = parcel_at((uintptr_t)address);
    return fy_parcel_find(c, atomic_load_explicit(&p->name, memory_order_relaxed)) == p;
}

void *fy_parcel_data(const fy_cells *c, fy_parcel *p)
{
    return (char *)p + c->header_bytes;
}

int fy_parcel_refused(ferry *f, const char *call, uint64_t name)
{
    return fy_fail(f, FERRY_EINVAL, "%s: rank %d holds no parcel 0x%" PRIx64, call, ferry_rank(f),
                   name);
}

/* How many holds of the parcel this rank has. */
static uint32_t own_holds(const fy_cells *c, const fy_parcel *p)
{
    /* relaxed: only this rank writes it */
    return atomic_load_explicit(&p->holds[c->place], memory_order_relaxed);
}

fy_parcel *fy_parcel_held(const fy_cells *c, uint64_t name)
{
    fy_parcel *p = fy_parcel_find(c, name);
    return p == NULL || own_holds(c, p) == 0 ? NULL : p;
}

static _Atomic uint64_t *registry_of(const fy_board *board)
{
    /* acquire: pairs with the release in registry_grow */
    return (_Atomic uint64_t *)(uintptr_t)atomic_load_explicit(&board->registry,
                                                               memory_order_acquire);
}

/* Gives the registry of a rank, and returns its number of entries; 0: there is none, or the board
 * was overwritten. Shared memory only. */
static uint32_t registry_get(const fy_cells *c, const fy_board *board, _Atomic uint64_t **entries)
{
    uint32_t count = atomic_load_explicit(&board->registry_count, memory_order_acquire);
    *entries = registry_of(board);
    uintptr_t offset = (uintptr_t)*entries - c->start;
    bool sound = offset < c->bytes && offset % sizeof(uint64_t) == 0 &&
                 count <= (c->bytes - offset) / sizeof(uint64_t);
    return sound ? count : 0;
}

void *fy_cells_alloc(const fy_cells *c, size_t size_bytes)
{
    if (size_bytes > SIZE_MAX / 2)
        return NULL;
    if (c->shared)
        return c->ops->heap.alloc(c->port, size_bytes, -1);
    size_t rounded = (size_bytes + FY_PARCEL_BYTES - 1) / FY_PARCEL_BYTES * FY_PARCEL_BYTES;
    return fy_aligned_alloc(FY_PARCEL_BYTES, rounded);
}

static void block_free(const fy_cells *c, void *block)
{
    if (!c->shared)
        free(block);
    else if (c->ops->heap.release(c->port, block) != 0)
        fy_log(c->f, "a parcel's block at %p was freed by somebody else", block);
}

static bool registry_grow(fy_cells *c)
{
    uint32_t old = c->registry_capacity, capacity = old == 0 ? REGISTRY_FIRST : old * 2;
    uint32_t *indices = fy_realloc(c->free_indices, capacity * sizeof(*indices));
    if (indices == NULL)
        return false;
    c->free_indices = indices;
    uint64_t *entries = fy_cells_alloc(c, capacity * sizeof(uint64_t));
    if (entries == NULL)
        return false;
    void *before = (void *)c->registry;
    memset(entries, 0, capacity * sizeof(uint64_t));
    if (before != NULL)
        memcpy(entries, before, old * sizeof(uint64_t));
    for (uint32_t i = capacity; i-- > old;)
        c->free_indices[c->free_count++] = i;
    c->registry_capacity = capacity;
    c->registry = (_Atomic uint64_t *)(void *)entries;
    /* release: a rank that sees the count sees the array, and one that sees the array its
     * entries */
    atomic_store_explicit(&c->board->registry, (uintptr_t)entries, memory_order_release);
    atomic_store_explicit(&c->board->registry_count, capacity, memory_order_release);
    if (before != NULL)
        block_free(c, before);
    return true;
}

static bool enter(fy_cells *c, fy_parcel *p)
{
    if (c->free_count == 0 && !registry_grow(c))
        return false;
    if (!c->shared) {
        void *slot;
        if (fy_table_insert(&c->names, (uintptr_t)p, &slot) != 0)
            return false;
    }
    p->index = c->free_indices[--c->free_count];
    /* release: a rank that finds the entry after this rank's death finds the header */
    atomic_store_explicit(&c->registry[p->index], (uintptr_t)p, memory_order_release);
    c->alive++;
    return true;
}

static void parcel_leave(fy_cells *c, const fy_parcel *p)
{
    c->alive--;
    /* relaxed: only the creator writes it */
    if (p->index < c->registry_capacity && c->free_count < c->registry_capacity &&
        atomic_load_explicit(&c->registry[p->index], memory_order_relaxed) == (uintptr_t)p) {
        atomic_store_explicit(&c->registry[p->index], 0, memory_order_relaxed);
        c->free_indices[c->free_count++] = p->index;
    } else {
        fy_log(c->f, "a parcel's header at %p was overwritten: it is not in the list of parcels",
               (const void *)p);
    }
    if (!c->shared)
        fy_table_remove(&c->names, fy_table_find(&c->names, (uintptr_t)p));
}

/* Frees a parcel of this rank. */
static void parcel_destroy(fy_cells *c, fy_parcel *p)
{
    atomic_store_explicit(&p->name, 0, memory_order_relaxed);
    parcel_leave(c, p);
    block_free(c, p);
}

/* Frees a parcel of a creator that has gone. No rank allocates from its heap any more, but the
 * pages go back to the system. The registry's entry is cleared last: the registry stays until all
 * its entries are, and says whose heap this is. */
static void discard(fy_cells *c, fy_parcel *p)
{
    _Atomic uint64_t *entries;
    uint32_t index = p->index, count = registry_get(c, c->boards[p->creator], &entries);
    atomic_store_explicit(&p->name, 0, memory_order_relaxed);
    block_free(c, p);
    if (index < count)
        /* release: a rank that finds no entry has nothing to do */
        atomic_store_explicit(&entries[index], 0, memory_order_release);
}

void fy_parcel_free(fy_cells *c, fy_parcel *p)
{
    if (p->creator == c->place) {
        parcel_destroy(c, p);
        return;
    }
    if (c->gone[p->creator]) {
        discard(c, p);
        return;
    }
    fy_board *board = c->boards[p->creator];
    uint64_t next = atomic_load_explicit(&board->returned, memory_order_relaxed);
    do
        p->next_free = next;
    while (!atomic_compare_exchange_weak_explicit(
        &board->returned, &next, (uintptr_t)p,
        /* release: pairs with the acquire in parcel_collect */
        memory_order_release, memory_order_relaxed));
}

/* Frees the parcels that other ranks have given back to this rank. */
static void parcel_collect(fy_cells *c)
{
    /* acquire: pairs with the release in fy_parcel_free */
    uint64_t at = atomic_exchange_explicit(&c->board->returned, 0, memory_order_acquire);
    while (at != 0) {
        fy_parcel *p = parcel_at((uintptr_t)at);
        if (!fy_parcel_is_at(c, at) || p->creator != c->place) {
            fy_log(c->f, "a parcel's header at %p was overwritten; its memory is lost", (void *)p);
            return;
        }
        at = p->next_free;
        parcel_destroy(c, p);
    }
}

fy_parcel *fy_parcel_make(fy_cells *c, size_t size_bytes)
{
    /* relaxed: parcel_collect acquires */
    if (atomic_load_explicit(&c->board->returned, memory_order_relaxed) != 0)
        parcel_collect(c);
    if (size_bytes > SIZE_MAX / 2 - c->header_bytes)
        return NULL;
    fy_parcel *p = fy_cells_alloc(c, c->header_bytes + size_bytes);
    if (p == NULL)
        return NULL;
    uint64_t name = (uint64_t)(uintptr_t)p >> ADDRESS_SHIFT | ++c->generation << ADDRESS_BITS;
    p->size_bytes = size_bytes;
    p->creator = c->place;
    p->check = parcel_check(p, name);
    p->content = fy_content_next(c);
    atomic_init(&p->lock, 0);
    atomic_init(&p->refs, 1);
    for (uint32_t i = 0; i < c->places; i++)
        atomic_init(&p->holds[i], i == c->place);
    /* release: a walk over the registry after this rank's death sees a whole header or no name */
    atomic_store_explicit(&p->name, name, memory_order_release);
    if (!enter(c, p)) {
        atomic_store_explicit(&p->name, 0, memory_order_relaxed);
        block_free(c, p);
        return NULL;
    }
    return p;
}

/* Changes the references and the holds of `place` by the given numbers, but takes no more than
 * there are. Frees the parcel if its last reference goes. */
static void count_references(fy_cells *c, fy_parcel *p, uint32_t place, int32_t refs, int32_t holds)
{
    fy_parcel_lock(c, p);
    /* relaxed: under the lock */
    uint32_t hold = atomic_load_explicit(&p->holds[place], memory_order_relaxed);
    if (holds < 0 && (uint32_t)-holds > hold)
        refs = holds = -(int32_t)hold;
    fy_change *change = &c->intent->change;
    change->parts = FY_CHANGE_HOLD | FY_CHANGE_REFS;
    change->refs = atomic_load_explicit(&p->refs, memory_order_relaxed) + (uint32_t)refs;
    change->place = place;
    change->hold = (uint16_t)(hold + (uint32_t)holds);
    bool last = change->refs == 0 && refs < 0;
    if (last)
        atomic_store_explicit(&c->intent->freeing,
                              atomic_load_explicit(&p->name, memory_order_relaxed),
                              memory_order_relaxed);
    fy_change_commit(c);
    fy_parcel_unlock(p);
    if (last) {
        fy_parcel_free(c, p);
        /* release: after the push */
        atomic_store_explicit(&c->intent->freeing, 0, memory_order_release);
    }
}

void fy_parcel_drop(fy_cells *c, fy_parcel *p, uint32_t place, uint32_t count)
{
    count_references(c, p, place, -(int32_t)count, -(int32_t)count);
}

bool fy_parcel_keep(fy_cells *c, fy_parcel *p)
{
    if (own_holds(c, p) == UINT16_MAX)
        return false;
    count_references(c, p, c->place, 1, 1);
    return true;
}

void fy_parcel_pin(fy_cells *c, fy_parcel *p, bool pinned)
{
    count_references(c, p, c->place, pinned ? 1 : -1, 0);
}

void fy_parcels_fini(fy_cells *c)
{
    _Atomic uint64_t *entries = c->registry;
    for (uint32_t i = 0; i < c->registry_capacity; i++)
        free((void *)(uintptr_t)atomic_load_explicit(&entries[i], memory_order_relaxed));
    free((void *)entries);
    for (int i = 0; i < FERRY_CELLS; i++)
        fy_queue_rings_free(&c->board->cells[i]);
}

void fy_parcel_bury(fy_cells *c, const fy_board *creator, uint32_t dead)
{
    _Atomic uint64_t *entries;
    uint32_t count = registry_get(c, creator, &entries);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t address = atomic_load_explicit(&entries[i], memory_order_acquire);
        if (!fy_parcel_is_at(c, address))
            continue; /* 0, or overwritten */
        fy_parcel *p = parcel_at((uintptr_t)address);
        uint32_t hold = atomic_load_explicit(&p->holds[dead], memory_order_relaxed);
        if (hold > 0)
            fy_parcel_drop(c, p, dead, hold);
    }
}

/* Whether a rank that, as far as this rank knows, has not gone is about to free the parcel at
 * `address`. */
static bool is_in_hand(const fy_cells *c, uint64_t address)
{
    for (uint32_t rank = 0; rank < c->places; rank++) {
        if (c->boards[rank] == NULL || c->gone[rank])
            continue;
        /* acquire: a rank whose note is cleared has freed the parcel */
        uint64_t name =
            atomic_load_explicit(&c->boards[rank]->intent.freeing, memory_order_acquire);
        if (name != 0 && (name & address_mask) << ADDRESS_SHIFT == address)
            return true;
    }
    return false;
}

/* Whether a parcel of a rank that has gone is free to give back: it has no references or no name,
 * and no living rank is about to free it. */
static bool is_left(const fy_cells *c, uint64_t address)
{
    if (address % FY_PARCEL_BYTES != 0 || address - c->start >= c->bytes)
        return false; /* overwritten */
    const fy_parcel *p = parcel_at((uintptr_t)address);
    /* acquire, both: the rank that cleared them had set its `freeing` before */
    bool named = atomic_load_explicit(&p->name, memory_order_acquire) != 0;
    if (named &&
        (!fy_parcel_is_at(c, address) || atomic_load_explicit(&p->refs, memory_order_acquire) != 0))
        return false;
    return !is_in_hand(c, address);
}

/* The creator has gone, so no new entries come. When the registry's memory is given back, another
 * rank may still walk over it to end holds of a dead rank, and read what the memory is used for
 * next. That does no harm: an entry counts only if it is a parcel that the dead rank holds. */
void fy_registry_bury(const fy_cells *c, fy_board *creator)
{
    _Atomic uint64_t *entries;
    uint32_t count = registry_get(c, creator, &entries);
    bool empty = count > 0;
    for (uint32_t i = 0; i < count; i++) {
        /* acquire: pairs with the release in discard */
        uint64_t address = atomic_load_explicit(&entries[i], memory_order_acquire);
        if (address != 0 && !is_left(c, address)) {
            empty = false;
        } else if (address != 0) {
            /* The heap refuses it if a rank had freed it already and died before it cleared the
             * entry. */
            (void)c->ops->heap.release(c->port, (void *)(uintptr_t)address);
            atomic_store_explicit(&entries[i], 0, memory_order_relaxed);
        }
    }
    if (!empty)
        return;
    atomic_store_explicit(&creator->registry_count, 0, memory_order_relaxed);
    (void)c->ops->heap.release(c->port, (void *)entries);
}

void fy_parcel_rescue(fy_cells *c, uint32_t dead)
{
    parcel_collect(c);
    /* acquire: pairs with the release fences of fy_change_commit in count_references */
    uint64_t name = atomic_load_explicit(&c->boards[dead]->intent.freeing, memory_order_acquire);
    fy_parcel *p = name == 0 ? NULL : fy_parcel_find(c, name);
    if (p != NULL && p->creator == c->place &&
        atomic_load_explicit(&p->refs, memory_order_acquire) == 0)
        parcel_destroy(c, p);
}

static int parcel_no_memory(ferry *f, const char *call, size_t size_bytes)
{
    return fy_fail(f, FERRY_ENOMEM,
                   "%s: a parcel of %zu bytes is more than the shared heap of rank %d has left "
                   "(FERRY_HEAP_BYTES)",
                   call, size_bytes, ferry_rank(f));
}

int ferry_parcel_create(ferry *f, size_t size_bytes, ferry_parcel *out, void **data)
{
    fy_cells *c = fy_cells_of(f);
    if (out == NULL)
        return fy_fail(f, FERRY_EINVAL, "parcel_create: the result is missing");
    fy_cells_check_peers(c);
    fy_parcel *p = fy_parcel_make(c, size_bytes);
    if (p == NULL)
        return parcel_no_memory(f, "parcel_create", size_bytes);
    out->word = atomic_load_explicit(&p->name, memory_order_relaxed);
    if (data != NULL)
        *data = fy_parcel_data(c, p);
    return 0;
}

const void *ferry_parcel_data(ferry *f, ferry_parcel parcel, size_t *size_bytes)
{
    const fy_cells *c = fy_cells_of(f);
    fy_parcel *p = fy_parcel_held(c, parcel.word);
    if (p == NULL)
        return NULL;
    if (size_bytes != NULL)
        *size_bytes = p->size_bytes;
    return fy_parcel_data(c, p);
}

static __attribute__((cold, noinline)) int copy_shared(fy_cells *c, fy_parcel *p,
                                                       ferry_parcel *parcel, void **data)
{
    fy_parcel *copy = fy_parcel_make(c, p->size_bytes);
    if (copy == NULL)
        return parcel_no_memory(c->f, "parcel_modify", p->size_bytes);
    /* Others do not write to it meanwhile: this rank's hold makes the parcel shared until
     * fy_parcel_drop, so they copy too. */
    memcpy(fy_parcel_data(c, copy), fy_parcel_data(c, p), p->size_bytes);
    fy_parcel_drop(c, p, c->place, 1);
    parcel->word = atomic_load_explicit(&copy->name, memory_order_relaxed);
    *data = fy_parcel_data(c, copy);
    return 0;
}

int ferry_parcel_modify(ferry *f, ferry_parcel *parcel, void **data)
{
    fy_cells *c = fy_cells_of(f);
    if (parcel == NULL || data == NULL)
        return fy_fail(f, FERRY_EINVAL, "parcel_modify: the result is missing");
    fy_parcel *p = fy_parcel_held(c, parcel->word);
    if (p == NULL)
        return fy_parcel_refused(f, "parcel_modify", parcel->word);
    /* acquire: pairs with the release in fy_change_apply: other ranks that dropped the parcel have
     * ended their reads. If all references are this rank's, no other rank can add one. */
    if (atomic_load_explicit(&p->refs, memory_order_acquire) != own_holds(c, p) ||
        (!fy_list_empty(&c->pending) && fy_pending_keeps(c, parcel->word)))
        return copy_shared(c, p, parcel, data);
    p->content = fy_content_next(c);
    *data = fy_parcel_data(c, p);
    return 0;
}

int ferry_parcel_release(ferry *f, ferry_parcel parcel)
{
    fy_cells *c = fy_cells_of(f);
    if (parcel.word == 0)
        return 0;
    fy_cells_check_peers(c);
    fy_parcel *p = fy_parcel_held(c, parcel.word);
    if (p == NULL)
        return fy_parcel_refused(f, "parcel_release", parcel.word);
    fy_parcel_drop(c, p, c->place, 1);
    return 0;
}

size_t ferry_parcel_count(ferry *f)
{
    fy_cells *c = fy_cells_of(f);
    fy_cells_check_peers(c);
    parcel_collect(c);
    return c->alive;
}
