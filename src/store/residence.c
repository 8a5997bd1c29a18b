/* Residence: which objects are in memory.
 *
 * An object goes out when it rests and the others take more than the budget: first one without
 * messages, the least recently used. If the 64 least recently used all have messages, the most
 * recently used goes: schedulers that take turns come to it last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "store/state.h"

enum { LOOKS = 64, PAUSE_NS = 100 * 1000 * 1000 };

static unsigned long long name_of(const fy_stored *item)
{
    return (unsigned long long)item->record->object.word;
}

static size_t shadow_packed_size(ferry *f, const void *data)
{
    fy_stored *item = (fy_stored *)(uintptr_t)data;
    char why[FY_STORE_WHY_BYTES];
    if (fy_stored_read(item, why))
        return item->size_bytes;
    if (item->untold)
        fy_log(f, "store: object %016llx stays on disk, it cannot be read: %s", name_of(item), why);
    item->untold = false;
    return SIZE_MAX; /* the migration finds no room for it */
}

static void shadow_pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    const fy_stored *item = data;
    (void)f;
    memcpy(buffer, fy_stored_packed(item), size_bytes);
}

/* The object's entry here is freed with its record. */
static void shadow_destroy(ferry *f, void *data)
{
    (void)f;
    (void)data;
}

static double shadow_load(ferry *f, const void *data, const ferry_message *message)
{
    (void)f;
    (void)message;
    return ((const fy_stored *)data)->load;
}

static double shadow_granularity(ferry *f, const void *data)
{
    (void)f;
    return ((const fy_stored *)data)->granularity;
}

fy_type *fy_store_shadow_create(const fy_type *type)
{
    fy_type *shadow = fy_malloc(sizeof *shadow);
    if (shadow == NULL)
        return NULL;
    *shadow = *type;
    shadow->ops = (ferry_object_ops){.size = sizeof shadow->ops,
                                     .name = shadow->name,
                                     .packed_size = shadow_packed_size,
                                     .pack = shadow_pack,
                                     .destroy = shadow_destroy,
                                     .load = type->ops.load != NULL ? shadow_load : NULL,
                                     .granularity =
                                         type->ops.granularity != NULL ? shadow_granularity : NULL};
    return shadow;
}

static void count_resident(ferry_store *s, uint64_t more_bytes, uint64_t less_bytes)
{
    s->stats.resident_bytes += more_bytes - less_bytes;
    if (s->stats.resident_bytes > s->stats.peak_bytes)
        s->stats.peak_bytes = s->stats.resident_bytes;
}

static void say_large(const ferry_store *s, const fy_stored *item)
{
    if (item->size_bytes > s->stats.budget_bytes)
        fy_log(s->f, "store: object %016llx has %llu bytes, more than the budget of %llu",
               name_of(item), (unsigned long long)item->size_bytes,
               (unsigned long long)s->stats.budget_bytes);
}

/* The object that ran last may have grown. */
static void measure_last(ferry_store *s)
{
    fy_stored *item = s->last;
    s->last = NULL;
    if (item == NULL || item->out)
        return;
    const fy_record *record = item->record;
    fy_object_state state = s->objects->calls->state(s->f, record);
    if (state != FY_RESTING && state != FY_RUNNING && state != FY_PINNED)
        return;
    uint64_t before = item->size_bytes;
    item->size_bytes = fy_packed_bytes(s->f, record->type, record->data);
    count_resident(s, item->size_bytes, before);
    if (before <= s->stats.budget_bytes)
        say_large(s, item);
}

static bool rests(const ferry_store *s, const fy_stored *item)
{
    return item->record != s->objects->running &&
           s->objects->calls->state(s->f, item->record) == FY_RESTING;
}

static fy_stored *victim(const ferry_store *s)
{
    int looks = 0;
    for (fy_link *link = s->resident.next; link != &s->resident && looks < LOOKS;
         link = link->next, looks++) {
        fy_stored *item = (fy_stored *)(void *)link;
        if (item->record->pending.count + item->record->early.count == 0 && rests(s, item))
            return item;
    }
    for (fy_link *link = s->resident.prev; link != &s->resident; link = link->prev) {
        fy_stored *item = (fy_stored *)(void *)link;
        if (rests(s, item))
            return item;
    }
    return NULL;
}

static void say_full(ferry_store *s, const fy_stored *item, int error)
{
    s->stats.write_errors++;
    s->pause_ns = ferry_now(s->f) + PAUSE_NS;
    if (!s->told_full)
        fy_log(s->f, "store: object %016llx stays in memory, it cannot be written: %s",
               name_of(item), strerror(error));
    s->told_full = true;
}

static void note_evicted(ferry_store *s, fy_stored *item)
{
    fy_record *record = item->record;
    const ferry_object_ops *ops = &record->type->ops;
    void *data = record->data;
    if (record->item.pending != 0)
        item->load = record->item.load / record->item.pending;
    if (ops->granularity != NULL)
        item->granularity = ops->granularity(s->f, data);
    record->type = s->shadows[record->type_index];
    record->data = item;
    item->out = true;
    item->untold = true;
    fy_list_remove(&item->link);
    fy_list_insert(&s->out, &item->link);
    count_resident(s, 0, item->size_bytes);
    s->stats.disk_bytes += item->size_bytes;
    s->stats.disk_objects++;
    s->told_full = false;
    ops->destroy(s->f, data);
}

/* False: it cannot be written. If it has begun to leave, it is no victim any more. */
static bool evict(ferry_store *s, fy_stored *item)
{
    if (!s->objects->calls->unlink(s->f, item->record))
        return true;
    int error = fy_stored_write(item);
    if (error == 0)
        note_evicted(s, item);
    else
        say_full(s, item, error);
    s->objects->calls->rest(s->f, item->record);
    return error == 0;
}

void fy_store_make_room(ferry_store *s, uint64_t more_bytes)
{
    uint64_t budget_bytes = s->stats.budget_bytes;
    uint64_t limit_bytes = more_bytes < budget_bytes ? budget_bytes - more_bytes : 0;
    measure_last(s);
    if (s->stats.resident_bytes <= limit_bytes ||
        (s->pause_ns != 0 && ferry_now(s->f) < s->pause_ns))
        return;
    s->pause_ns = 0;
    while (s->stats.resident_bytes > limit_bytes) {
        fy_stored *item = victim(s);
        if (item == NULL || !evict(s, item))
            break;
    }
}

/* Makes the data; without memory for them other objects go out first. */
static void *unpack(ferry_store *s, const fy_stored *item)
{
    const fy_record *record = item->record;
    const ferry_object_ops *ops = &s->objects->types[record->type_index].ops;
    void *data = NULL;
    for (int tries = 0; tries < 10 && data == NULL; tries++) {
        if (tries != 0)
            fy_store_make_room(s, s->stats.budget_bytes);
        data = ops->unpack(s->f, record->object, fy_stored_packed(item), item->size_bytes);
    }
    return data;
}

bool fy_stored_load(fy_stored *item, char why[FY_STORE_WHY_BYTES])
{
    ferry_store *s = item->store;
    fy_record *record = item->record;
    bool read = fy_stored_read(item, why);
    void *data = read ? unpack(s, item) : NULL;
    free(item->image);
    item->image = NULL;
    if (data == NULL) {
        if (read)
            (void)snprintf(why, FY_STORE_WHY_BYTES, "its unpack has returned NULL ten times");
        (void)fy_fail(s->f, FERRY_ESYSTEM, "store: object %016llx cannot be read back: %s",
                      name_of(item), why);
        if (item->untold)
            fy_log(s->f, "store: object %016llx cannot be read back: %s", name_of(item), why);
        item->untold = false;
        return false;
    }
    record->type = &s->objects->types[record->type_index];
    record->data = data;
    item->out = false;
    fy_list_remove(&item->link);
    fy_list_insert(&s->resident, &item->link);
    count_resident(s, item->size_bytes, 0);
    s->stats.disk_bytes -= item->size_bytes;
    s->stats.disk_objects--;
    return true;
}

/* Before a handler of the object runs. */
static int fetch(ferry *f, fy_record *record)
{
    char why[FY_STORE_WHY_BYTES];
    fy_stored *item = record->stored;
    ferry_store *s = item->store;
    fy_store_make_room(s, item->out ? item->size_bytes : 0);
    if (!item->out) {
        fy_list_remove(&item->link);
        fy_list_insert(&s->resident, &item->link);
    } else if (!fy_stored_load(item, why)) {
        s->objects->calls->note_loss(
            f, FERRY_ELOST,
            "a message to object %016llx was dropped: it cannot be read back from disk: %s",
            name_of(item), why);
        return FERRY_ESYSTEM;
    }
    s->last = item;
    return 0;
}

/* The image that is read here goes along. */
static bool spare(ferry *f, fy_record *record)
{
    fy_stored *item = record->stored;
    char why[FY_STORE_WHY_BYTES];
    if (!item->out || fy_stored_read(item, why))
        return true;
    fy_log(f, "store: object %016llx is lost, it cannot be read as this rank leaves: %s",
           name_of(item), why);
    item->store->objects->calls->note_loss(
        f, FERRY_ELOST,
        "object %016llx is lost: rank %d has left, where it could not be read back from disk: %s",
        name_of(item), ferry_rank(f), why);
    return false;
}

void fy_store_keep(ferry *f, fy_record *record)
{
    ferry_store *s = fy_store_of(f);
    if (record->stored != NULL || s->shadows[record->type_index] == NULL)
        return;
    fy_stored *item = fy_calloc(1, sizeof *item);
    if (item == NULL)
        return;
    item->record = record;
    item->store = s;
    item->load = record->load;
    item->size_bytes = fy_packed_bytes(f, record->type, record->data);
    record->stored = item;
    fy_list_insert(&s->resident, &item->link);
    s->stats.objects++;
    count_resident(s, item->size_bytes, 0);
    say_large(s, item);
    /* Objects of other ranks arrive in a poll. But a program that creates an object may have
     * borrowed others. */
    if (record->state == FY_AWAITED)
        fy_store_make_room(s, 0);
}

/* Its place is for another object. */
static void gone(fy_record *record)
{
    fy_stored *item = record->stored;
    ferry_store *s = item->store;
    record->stored = NULL;
    item->record = NULL;
    fy_list_remove(&item->link);
    if (s->last == item)
        s->last = NULL;
    s->stats.objects--;
    s->stats.disk_objects -= item->out;
    s->stats.disk_bytes -= item->out ? item->size_bytes : 0;
    count_resident(s, 0, item->out ? 0 : item->size_bytes);
    free(item->image);
    item->image = NULL;
    if (item->size_class == 0)
        free(item);
    else
        fy_list_insert(&s->places[item->size_class], &item->link);
}

static void *absent(ferry *f, ferry_object object)
{
    (void)fy_fail(f, FERRY_ESTATE, "object_data: object %016llx is not in memory, a store has it",
                  (unsigned long long)object.word);
    return NULL;
}

static void progress(ferry *f)
{
    fy_store_make_room(fy_store_of(f), 0);
}

static void end(ferry *f)
{
    fy_store_destroy(fy_store_of(f));
}

const fy_object_store fy_store_hooks = {.keep = fy_store_keep,
                                        .absent = absent,
                                        .fetch = fetch,
                                        .spare = spare,
                                        .gone = gone,
                                        .progress = progress,
                                        .end = end};
