/* Room: which objects go to disk, and which are read ahead, so that memory holds what is used next.
 *
 * While the objects take more than the budget, an object that rests goes out: of those without
 * messages the one used least recently. If the 64 objects used least recently all have messages,
 * the object used most recently goes: a scheduler that takes its objects in turn comes to it last.
 * Objects that run next stay.
 *
 * The store reads ahead the objects that run next, in the order of the scheduler, up to an eighth
 * of the budget, or two objects. */
#include <stdlib.h>
#include <string.h>

#include "balance/balance.h"
#include "core/fail.h"
#include "object/flat.h"
#include "store/places.h"

enum {
    LOOKS = 64,
    PAUSE_NS = 100 * 1000 * 1000,
    AHEAD_PART = 8,
    AHEAD_OBJECTS = 2,
    SPARE_PART = 16,
};

void fy_store_count(ferry_store *s, uint64_t more_bytes, uint64_t less_bytes)
{
    s->stats.resident_bytes += more_bytes - less_bytes;
    if (s->stats.resident_bytes > s->stats.peak_bytes)
        s->stats.peak_bytes = s->stats.resident_bytes;
    fy_buffers_trim(s);
}

void fy_stored_uncount(fy_stored *item)
{
    ferry_store *s = item->store;
    fy_store_count(s, 0, item->image_bytes);
    s->leaving_bytes -= item->leaving ? item->image_bytes : 0;
    s->ahead_bytes -= item->ahead ? item->image_bytes : 0;
    s->kept_count -= item->kept;
    item->image_bytes = 0;
    item->leaving = item->ahead = item->kept = false;
}

void fy_stored_say_large(const fy_stored *item)
{
    const ferry_store *s = item->store;
    if (item->size_bytes > s->stats.budget_bytes)
        fy_log(s->f, "store: object %016llx has %llu bytes, more than the budget of %llu",
               fy_stored_name(item), (unsigned long long)item->size_bytes,
               (unsigned long long)s->stats.budget_bytes);
}

/* Measures the object that ran last: it may have grown. */
static void measure_last(ferry_store *s)
{
    fy_stored *item = s->last;
    s->last = NULL;
    if (item == NULL || item->record->out)
        return;
    const fy_record *record = item->record;
    fy_object_state state = s->objects->calls->state(s->f, record);
    if (state != FY_RESTING && state != FY_RUNNING && state != FY_PINNED)
        return;
    uint64_t before = item->size_bytes;
    fy_stored_measured(item, fy_packed_bytes(s->f, record->type, record->data));
    fy_store_count(s, item->size_bytes, before);
    if (before <= s->stats.budget_bytes)
        fy_stored_say_large(item);
}

/* Whether the object can go out. An object that is still being written has just come back. */
static bool may_leave(const ferry_store *s, const fy_stored *item)
{
    return item->record != s->objects->running && item->image == NULL &&
           s->objects->calls->state(s->f, item->record) == FY_RESTING;
}

static bool has_messages(const fy_stored *item)
{
    return item->record->pending.count + item->record->early.count != 0;
}

static fy_stored *victim(const ferry_store *s)
{
    int looks = 0;
    for (fy_link *link = s->resident.next; link != &s->resident && looks < LOOKS;
         link = link->next, looks++)
        if ((s->blind || !has_messages(fy_stored_at(link))) && may_leave(s, fy_stored_at(link)))
            return fy_stored_at(link);
    fy_stored *last = NULL; /* the last of the objects that run next */
    looks = 0;
    for (fy_link *link = s->resident.prev; link != &s->resident && looks < LOOKS;
         link = link->prev, looks += last != NULL) {
        fy_stored *item = fy_stored_at(link);
        if (!may_leave(s, item))
            continue;
        if (item->look < s->look)
            return item;
        if (last == NULL || item->look > last->look)
            last = item;
    }
    return last;
}

static void say_full(ferry_store *s, const fy_stored *item, int error)
{
    s->stats.write_errors++;
    s->pause_ns = ferry_now(s->f) + PAUSE_NS;
    if (!s->told_full)
        fy_log(s->f, "store: object %016llx stays in memory, it cannot be written: %s",
               fy_stored_name(item), strerror(error));
    s->told_full = true;
}

/* Notes that only the object's image is left in memory. */
static void note_evicted(ferry_store *s, fy_stored *item)
{
    fy_record *record = item->record;
    const ferry_object_ops *ops = &record->type->ops;
    void *data = record->data;
    if (record->item.pending != 0)
        item->load = record->item.load / record->item.pending;
    if (ops->granularity != NULL)
        item->granularity = ops->granularity(s->f, data);
    record->out = true;
    record->type = s->shadows[record->type_index];
    record->data = item;
    item->untold = true;
    fy_list_remove(&item->link);
    fy_list_insert(&s->out, &item->link);
    s->stats.disk_bytes += item->size_bytes;
    s->stats.disk_objects++;
    if (data != item->image)
        ops->destroy(s->f, data);
}

static void write_image(ferry_store *s, fy_stored *item)
{
    s->kept_count -= item->kept;
    item->kept = false;
    item->leaving = true;
    s->leaving_bytes += item->image_bytes;
    if (!fy_job_write(item))
        fy_store_reap(s);
}

/* Packs an object, so that it goes out. If it has begun to migrate, it stays. */
static void evict(ferry_store *s, fy_stored *item)
{
    if (!s->objects->calls->unlink(s->f, item->record))
        return;
    int error = fy_stored_pack(item);
    if (error == 0) {
        item->image_bytes = item->size_bytes;
        note_evicted(s, item);
        write_image(s, item); /* from here on the helper may migrate it, and reads a valid image */
    } else {
        say_full(s, item, error);
    }
    s->objects->calls->rest(s->f, item->record);
}

static bool is_paused(ferry_store *s)
{
    if (s->pause_ns != 0 && ferry_now(s->f) >= s->pause_ns)
        s->pause_ns = 0;
    return s->pause_ns != 0;
}

/* Whether memory is still full when all writes in flight have ended. */
static bool exceeds(const ferry_store *s, uint64_t more_bytes)
{
    return s->stats.resident_bytes - s->leaving_bytes + more_bytes > s->stats.budget_bytes;
}

/* Tries again to write the images that could not be written. */
static void write_kept(ferry_store *s, uint64_t more_bytes)
{
    for (fy_link *link = s->out.next; s->kept_count != 0 && link != &s->out; link = link->next) {
        fy_stored *item = fy_stored_at(link);
        if (!exceeds(s, more_bytes) || is_paused(s))
            return;
        if (item->kept)
            write_image(s, item);
    }
}

void fy_store_evict(ferry_store *s, uint64_t more_bytes)
{
    measure_last(s);
    if (!exceeds(s, more_bytes) || is_paused(s))
        return;
    write_kept(s, more_bytes);
    while (exceeds(s, more_bytes) && !is_paused(s)) {
        fy_stored *item = victim(s);
        if (item == NULL)
            break;
        evict(s, item);
    }
}

void fy_store_spare(ferry_store *s)
{
    uint64_t spare_bytes = s->stats.budget_bytes / SPARE_PART, count = s->stats.disk_objects;
    bool spares = !s->blind && count != 0 && s->stats.disk_bytes / count <= spare_bytes &&
                  s->ahead_bytes < spare_bytes;
    uint64_t due_bytes = s->serves ? fy_leases_due(s) : 0;
    spare_bytes = spares ? spare_bytes - s->ahead_bytes : 0;
    fy_store_evict(s, spare_bytes > due_bytes ? spare_bytes : due_bytes);
}

void fy_stored_recycle(fy_stored *item)
{
    if (item->file != NULL)
        fy_place_release(item);
    item->parked = item->lease != 0;
    if (item->parked)
        return;
    if (item->size_class == 0)
        free(item);
    else
        fy_list_insert(&item->store->places[item->size_class], &item->link);
}

/* Handles the end of a write. */
static void room_finish(ferry_store *s, fy_stored *item)
{
    bool out = item->record->out;
    if (item->job.error == 0) {
        s->stats.writes++;
        s->stats.written_bytes += item->image_bytes;
        s->told_full = false;
    }
    if (item->job.error != 0 && out) {
        say_full(s, item, item->job.error);
        s->leaving_bytes -= item->image_bytes;
        s->kept_count++;
        item->leaving = false;
        item->kept = true;
    } else if (fy_stored_forget(item, out)) {
        fy_stored_uncount(item);
    } else {
        s->leaving_bytes -= item->image_bytes;
        item->leaving = false;
    }
}

void fy_store_reap(ferry_store *s)
{
    for (fy_stored *item; (item = fy_jobs_reap(s)) != NULL;) {
        if (item->record != NULL) {
            room_finish(s, item);
            continue;
        }
        (void)fy_stored_forget(item, false);
        fy_stored_uncount(item);
        fy_stored_recycle(item);
    }
}

/* Drops the images that were read ahead. */
static void drop_ahead(ferry_store *s)
{
    for (fy_link *link = s->out.next; s->ahead_bytes != 0 && link != &s->out; link = link->next) {
        fy_stored *item = fy_stored_at(link);
        if (item->ahead && fy_stored_forget(item, true))
            fy_stored_uncount(item);
    }
}

static bool is_full(const ferry_store *s, uint64_t more_bytes)
{
    return s->stats.resident_bytes + more_bytes > s->stats.budget_bytes;
}

void fy_store_make_room(ferry_store *s, uint64_t more_bytes)
{
    if (s->leaving_bytes + s->ahead_bytes != 0)
        fy_store_reap(s);
    fy_store_evict(s, more_bytes);
    uint64_t begun_ns = 0;
    while (is_full(s, more_bytes) && s->leaving_bytes != 0) {
        begun_ns = begun_ns == 0 ? ferry_now(s->f) : begun_ns;
        fy_jobs_wait(s);
        fy_store_reap(s);
        fy_store_evict(s, more_bytes);
    }
    if (begun_ns != 0)
        s->stats.wait_ns += ferry_now(s->f) - begun_ns;
    if (is_full(s, more_bytes) && s->ahead_bytes != 0)
        drop_ahead(s);
}

/* Begins to read `item` if there is room. Otherwise has room made for the next look.
 * `*wanted_bytes` is the room that earlier items lack. */
static void read_one(ferry_store *s, fy_stored *item, uint64_t *wanted_bytes)
{
    *wanted_bytes += item->size_bytes;
    fy_store_evict(s, *wanted_bytes);
    if (*wanted_bytes != item->size_bytes || is_full(s, item->size_bytes) || !fy_job_read(item))
        return;
    *wanted_bytes = 0;
    item->ahead = true;
    item->image_bytes = item->size_bytes;
    s->ahead_bytes += item->size_bytes;
    fy_store_count(s, item->size_bytes, 0);
}

/* Gives the records whose messages and tasks run next, in their order. Returns how many. */
static int look_ahead(const ferry_store *s, fy_record *out[LOOKS])
{
    fy_objects *objects = s->objects;
    ferry_scheduling *scheduling = fy_scheduling_of(s->f);
    const ferry_scheduler *scheduler = scheduling->scheduler;
    fy_link *const lists[] = {&objects->round, &objects->ready};
    int count = 0;
    for (int i = 0; i < 2; i++)
        for (fy_link *link = lists[i]->next; link != lists[i] && count < LOOKS; link = link->next)
            out[count++] = (fy_record *)(void *)link;
    if (scheduler == NULL || scheduler->ahead == NULL)
        return count;
    objects->calls->lock(s->f);
    for (ferry_schedulable *item = NULL; count < LOOKS; out[count++] = fy_record_of(item)) {
        item = scheduler->ahead(scheduling, scheduling->state, item);
        if (item == NULL)
            break;
    }
    objects->calls->unlock(s->f);
    return count;
}

/* Whether `item` is near enough to be read ahead. `*large` counts items that exceed the limit. */
static bool is_near(const ferry_store *s, const fy_stored *item, uint64_t wanted_bytes, int *large)
{
    uint64_t budget_bytes = s->stats.budget_bytes;
    if (s->ahead_bytes + wanted_bytes + item->size_bytes <= budget_bytes / AHEAD_PART)
        return true;
    return item->size_bytes <= budget_bytes / 4 && (*large)++ < AHEAD_OBJECTS;
}

fy_stored *fy_store_read_ahead(ferry_store *s)
{
    fy_record *next[LOOKS];
    uint64_t wanted_bytes = 0;
    int large = 0;
    fy_stored *first = NULL;
    if (s->stats.disk_objects == 0 || s->blind ||
        (s->disk.limit == 0 && s->disk.simulator == NULL) ||
        s->ahead_bytes > s->stats.budget_bytes / AHEAD_PART / 4 * 3)
        return NULL;
    fy_store_reap(s);
    s->look += LOOKS;
    int count = look_ahead(s, next);
    for (int i = 0; i < count; i++)
        if (next[i]->stored != NULL)
            next[i]->stored->look = s->look + (uint64_t)i;
    for (int i = 0; i < count; i++) {
        fy_stored *item = next[i]->stored;
        if (item == NULL || !next[i]->out || item->image_bytes != 0)
            continue;
        if (!is_near(s, item, wanted_bytes, &large))
            break;
        read_one(s, item, &wanted_bytes);
        first = i == 0 && item->ahead ? item : first;
    }
    return first;
}
