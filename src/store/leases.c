/* Leases: places of this store that other ranks read. */
#include <stdlib.h>
#include <string.h>

#include <ferry/member.h>

#include "base/alloc.h"
#include "store/places.h"

static fy_stored *lent_at(fy_link *link)
{
    return (fy_stored *)(void *)((char *)link - offsetof(fy_stored, lent));
}

/* The reader `rank`; NULL: no memory. [lock held] */
static fy_reader *reader_of(ferry_store *s, int rank)
{
    if (s->readers == NULL)
        s->readers = fy_calloc((size_t)s->objects->ranks, sizeof *s->readers);
    return s->readers == NULL ? NULL : &s->readers[rank];
}

/* [lock held] */
static void set_due(fy_stored *item, uint64_t due_bytes)
{
    /* relaxed: changed under the lock; others guess */
    atomic_fetch_add_explicit(&item->store->due_bytes, due_bytes - item->due_bytes,
                              memory_order_relaxed);
    item->due_bytes = due_bytes;
}

static void lease_end(fy_stored *item)
{
    fy_list_remove(&item->lent);
    item->lease = 0;
    set_due(item, 0);
}

/* Whether the image is in the file alone. [lock held] */
static bool is_written(const fy_stored *item)
{
    return item->job.work == FY_WORK_NONE && !item->job.valid;
}

static bool accepts(const fy_reader *reader, unsigned type)
{
    return (reader->types[type / 64] >> type % 64 & 1) != 0;
}

/* Begins a lease if `rank` can read the file. If it was never asked, it will be. [lock held] */
static bool lend(ferry_store *s, fy_stored *item, int rank)
{
    fy_reader *reader = reader_of(s, rank);
    if (reader == NULL)
        return false;
    if (!reader->wanted) {
        reader->wanted = true;
        /* relaxed: the application thread looks in each poll */
        atomic_store_explicit(&s->offers, true, memory_order_relaxed);
    }
    if (!accepts(reader, item->record->type_index) || !is_written(item))
        return false;
    item->lease = ++s->leases;
    item->reader = rank;
    fy_list_insert(&s->lent, &item->lent);
    set_due(item, item->size_bytes);
    /* relaxed: as in set_due */
    atomic_store_explicit(&s->last_bytes, item->size_bytes, memory_order_relaxed);
    return true;
}

bool fy_place_lend(fy_stored *item)
{
    ferry_store *s = item->store;
    int rank = item->record->target;
    if (item->file != NULL)
        return item->file->rank == rank && !fy_file_is_gone(item->file);
    if (rank == s->objects->rank)
        return false;
    fy_crew_lock(&s->disk.crew);
    if (item->lease != 0)
        lease_end(item); /* it could not be sent then */
    bool lends = lend(s, item, rank);
    fy_crew_unlock(&s->disk.crew);
    return lends;
}

bool fy_place_is_leased(fy_stored *item, bool left)
{
    ferry_store *s = item->store;
    if (item->file != NULL)
        return false;
    fy_crew_lock(&s->disk.crew);
    if (item->lease != 0 && !left)
        lease_end(item);
    bool leased = item->lease != 0;
    fy_crew_unlock(&s->disk.crew);
    return leased;
}

/* If the object is gone and no thread uses its image, the place is free. */
static void recycle_parked(fy_stored *item)
{
    if (item->parked)
        fy_stored_recycle(item);
}

/* The item with this lease; NULL: none. Leases usually end in the order in which they began.
 * [lock held] */
static fy_stored *find(ferry_store *s, uint64_t lease)
{
    for (fy_link *link = s->lent.next; link != &s->lent; link = link->next)
        if (lent_at(link)->lease == lease)
            return lent_at(link);
    return NULL;
}

bool fy_lease_end(ferry_store *s, uint64_t lease, int reader)
{
    fy_crew_lock(&s->disk.crew);
    fy_stored *item = find(s, lease);
    bool ends = item != NULL && item->reader == reader;
    if (ends)
        lease_end(item);
    fy_crew_unlock(&s->disk.crew);
    if (ends)
        recycle_parked(item);
    return ends;
}

fy_stored *fy_lease_return(ferry_store *s, uint64_t lease, ferry_object object)
{
    fy_crew_lock(&s->disk.crew);
    fy_stored *item = find(s, lease);
    bool returns = item != NULL && item->parked && item->object == object.word;
    if (returns)
        lease_end(item);
    fy_crew_unlock(&s->disk.crew);
    if (!returns)
        return NULL;
    item->parked = false;
    return item;
}

void fy_leases_met(ferry_store *s, uint64_t object)
{
    fy_crew_lock(&s->disk.crew);
    for (fy_link *link = s->lent.next; link != &s->lent; link = link->next) {
        fy_stored *item = lent_at(link);
        if (item->object == object)
            set_due(item, 0);
    }
    fy_crew_unlock(&s->disk.crew);
}

uint64_t fy_leases_due(const ferry_store *s)
{
    /* relaxed, both: a guess is enough, and each poll asks */
    uint64_t due_bytes = atomic_load_explicit(&s->due_bytes, memory_order_relaxed);
    uint64_t most_bytes = atomic_load_explicit(&s->last_bytes, memory_order_relaxed);
    if (most_bytes < s->stats.budget_bytes / 2)
        most_bytes = s->stats.budget_bytes / 2;
    return due_bytes < most_bytes ? due_bytes : most_bytes;
}

void fy_lease_accept(ferry_store *s, int rank, const uint64_t types[FY_TYPE_WORDS])
{
    fy_crew_lock(&s->disk.crew);
    fy_reader *reader = reader_of(s, rank);
    if (reader != NULL)
        memcpy(reader->types, types, sizeof reader->types);
    fy_crew_unlock(&s->disk.crew);
}

bool fy_store_is_read_by(ferry_store *s, int rank)
{
    uint64_t types = 0;
    fy_crew_lock(&s->disk.crew);
    for (int i = 0; i < FY_TYPE_WORDS && s->readers != NULL; i++)
        types |= s->readers[rank].types[i];
    fy_crew_unlock(&s->disk.crew);
    return types != 0;
}

/* Ends a lease of a rank that is gone, and returns its item. NULL: there is none. */
static fy_stored *end_gone(ferry_store *s)
{
    fy_stored *found = NULL;
    fy_crew_lock(&s->disk.crew);
    for (fy_link *link = s->lent.next; link != &s->lent && found == NULL; link = link->next)
        if (ferry_peer_is_gone(s->f, lent_at(link)->reader))
            found = lent_at(link);
    if (found != NULL)
        lease_end(found);
    fy_crew_unlock(&s->disk.crew);
    return found;
}

bool fy_leases_sweep(ferry_store *s)
{
    s->objects->calls->lock(s->f);
    bool arrives = s->objects->arrivals != NULL;
    s->objects->calls->unlock(s->f);
    if (arrives)
        return false;
    for (fy_stored *item; (item = end_gone(s)) != NULL;)
        recycle_parked(item);
    fy_crew_lock(&s->disk.crew);
    for (int rank = 0; rank < s->objects->ranks && s->readers != NULL; rank++)
        if (ferry_peer_is_gone(s->f, rank))
            s->readers[rank] = (fy_reader){.wanted = false};
    fy_crew_unlock(&s->disk.crew);
    return true;
}

/* Frees the items whose objects are gone. Returns whether a place may come back. */
bool fy_leases_free(ferry_store *s)
{
    bool any = !fy_list_empty(&s->lent);
    for (fy_link *link = s->lent.next, *next; link != &s->lent; link = next) {
        next = link->next;
        fy_list_remove(link);
        if (lent_at(link)->parked)
            free(lent_at(link));
    }
    free(s->readers);
    return any;
}
