/* Residence: how objects come into memory, how they arrive on this rank and leave it. room.c
 * decides which go to disk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "object/flat.h"
#include "store/places.h"

/* Unpacks the data. If memory is short, writes other objects to disk first. */
static void *item_unpack(ferry_store *s, fy_stored *item)
{
    const fy_record *record = item->record;
    const ferry_object_ops *ops = &s->objects->types[record->type_index].ops;
    void *data = NULL;
    if (s->objects->types[record->type_index].plain && fy_image_is_small(s, item->size_bytes))
        data = fy_stored_adopt(item);
    for (int tries = 0; tries < 10 && data == NULL; tries++) {
        if (tries != 0)
            fy_store_make_room(s, s->stats.budget_bytes);
        data = ops->unpack(s->f, record->object, item->image, item->size_bytes);
    }
    return data;
}

/* Notes that the object could not be read: it stays out. An image that is not on disk is kept. */
static void note_unread(fy_stored *item, const char *why)
{
    ferry_store *s = item->store;
    if (!item->kept && !item->leaving && fy_stored_forget(item, false))
        fy_stored_uncount(item);
    (void)fy_fail(s->f, FERRY_ESYSTEM, "store: object %016llx cannot be read back: %s",
                  fy_stored_name(item), why);
    if (item->untold)
        fy_log(s->f, "store: object %016llx cannot be read back: %s", fy_stored_name(item), why);
    item->untold = false;
}

static void note_loaded(fy_stored *item, void *data)
{
    ferry_store *s = item->store;
    fy_record *record = item->record;
    s->stats.ahead_reads += item->ahead;
    record->out = record->placed = false;
    if (item->file != NULL)
        fy_place_release(item);
    else
        (void)fy_place_is_leased(item, false);
    record->type = &s->objects->types[record->type_index];
    record->data = data;
    fy_list_remove(&item->link);
    fy_list_insert(&s->resident, &item->link);
    if (fy_stored_forget(item, false))
        fy_stored_uncount(item);
    fy_store_count(s, item->size_bytes, 0);
    s->stats.disk_bytes -= item->size_bytes;
    s->stats.disk_objects--;
}

bool fy_stored_load(fy_stored *item, char why[FY_STORE_WHY_BYTES])
{
    ferry_store *s = item->store;
    uint64_t begun_ns = ferry_now(s->f);
    bool read = fy_stored_read(item, why);
    s->stats.wait_ns += ferry_now(s->f) - begun_ns;
    void *data = read ? item_unpack(s, item) : NULL;
    if (read && data == NULL)
        (void)snprintf(why, FY_STORE_WHY_BYTES, "its unpack has returned NULL ten times");
    if (data == NULL)
        note_unread(item, why);
    else
        note_loaded(item, data);
    return data != NULL;
}

/* Brings the object into memory, before one of its handlers runs. */
static int fetch(ferry *f, fy_record *record)
{
    char why[FY_STORE_WHY_BYTES];
    fy_stored *item = record->stored;
    ferry_store *s = item->store;
    bool out = record->out;
    item->look = 0;
    fy_store_make_room(s, out && item->image_bytes == 0 ? item->size_bytes : 0);
    (void)fy_store_read_ahead(s);
    fy_jobs_start(s, item);
    if (!out) {
        fy_list_remove(&item->link);
        fy_list_insert(&s->resident, &item->link);
    } else if (!fy_stored_load(item, why)) {
        s->objects->calls->note_loss(
            f, FERRY_ELOST,
            "a message to object %016llx was dropped: it cannot be read back from disk: %s",
            fy_stored_name(item), why);
        return FERRY_ESYSTEM;
    }
    fy_record *running = s->objects->running;
    s->objects->running = record; /* it stays */
    fy_store_spare(s);
    fy_jobs_start(s, NULL);
    s->objects->running = running;
    s->last = item;
    return 0;
}

/* The object is about to migrate: reads its image, which travels with it. */
static bool spare(ferry *f, fy_record *record)
{
    fy_stored *item = record->stored;
    char why[FY_STORE_WHY_BYTES];
    if (!record->out || fy_stored_read(item, why))
        return true;
    fy_log(f, "store: object %016llx is lost, it cannot be read as this rank leaves: %s",
           fy_stored_name(item), why);
    item->store->objects->calls->note_loss(
        f, FERRY_ELOST,
        "object %016llx is lost: rank %d has left, where it could not be read back from disk: %s",
        fy_stored_name(item), ferry_rank(f), why);
    return false;
}

fy_stored *fy_stored_create(ferry_store *s, ferry_object object)
{
    fy_stored *item = fy_calloc(1, sizeof *item);
    if (item == NULL)
        return NULL;
    item->object = object.word;
    item->store = s;
    item->job.item = item;
    fy_list_init(&item->job.link);
    fy_list_init(&item->lent);
    return item;
}

void fy_store_keep(ferry *f, fy_record *record)
{
    ferry_store *s = fy_store_of(f);
    if (record->stored != NULL || s->shadows[record->type_index] == NULL)
        return;
    fy_stored *item = fy_stored_create(s, record->object);
    if (item == NULL)
        return;
    item->record = record;
    item->load = record->load;
    fy_stored_measured(item, fy_packed_bytes(f, record->type, record->data));
    record->stored = item;
    fy_list_insert(&s->resident, &item->link);
    s->stats.objects++;
    fy_store_count(s, item->size_bytes, 0);
    fy_stored_say_large(item);
    /* An object of another rank arrives in a poll, when the program has borrowed no data. But if
     * the program creates an object, it may have borrowed the data of others, so none may go
     * out. */
    if (record->state == FY_AWAITED) {
        if (s->serves)
            fy_leases_met(s, item->object);
        fy_store_make_room(s, 0);
        fy_jobs_start(s, NULL);
    }
}

/* The object is gone: another object may get its place. */
static void gone(fy_record *record)
{
    fy_stored *item = record->stored;
    ferry_store *s = item->store;
    bool left = record->state == FY_DEPARTED && record->placed;
    s->stats.lent += fy_place_is_leased(item, left);
    item->returned = left && item->file != NULL;
    record->stored = NULL;
    item->record = NULL;
    fy_list_remove(&item->link);
    if (s->last == item)
        s->last = NULL;
    s->stats.objects--;
    s->stats.disk_objects -= record->out;
    s->stats.disk_bytes -= record->out ? item->size_bytes : 0;
    fy_store_count(s, 0, record->out ? 0 : item->size_bytes);
    if (!fy_stored_abandon(item))
        return;
    fy_stored_uncount(item);
    fy_stored_recycle(item);
}

static void *absent(ferry *f, ferry_object object)
{
    (void)fy_fail(f, FERRY_ESTATE, "object_data: object %016llx is not in memory, a store has it",
                  (unsigned long long)object.word);
    return NULL;
}

/* Whether the balancing layer runs the first of the next tasks later in this poll. */
static bool runs_task_next(const ferry_store *s)
{
    return !s->serves && s->objects->running == NULL && fy_list_empty(&s->objects->round) &&
           fy_list_empty(&s->objects->ready);
}

/* Waits for writes only if memory holds more than a little above the budget: then objects come
 * faster than they can be written. */
static void residence_progress(ferry *f)
{
    enum { SPARE_PART = 16 };
    ferry_store *s = fy_store_of(f);
    uint64_t budget_bytes = s->stats.budget_bytes;
    fy_places_progress(s);
    if (s->stats.resident_bytes > budget_bytes + budget_bytes / SPARE_PART)
        fy_store_make_room(s, 0);
    else
        fy_store_spare(s);
    const fy_stored *first = fy_store_read_ahead(s);
    if (s->serves)
        fy_jobs_serve(s);
    fy_jobs_start(s, runs_task_next(s) ? first : NULL);
}

static void residence_end(ferry *f)
{
    fy_store_destroy(fy_store_of(f));
}

const fy_object_store fy_store_hooks = {.keep = fy_store_keep,
                                        .absent = absent,
                                        .fetch = fetch,
                                        .spare = spare,
                                        .gone = gone,
                                        .progress = residence_progress,
                                        .end = residence_end};
