/* Directory: what this rank knows of objects that are elsewhere. ends.c has how it forgets them.
 *
 * A rank makes an entry when it sends to an object, or when the object visits it. If the protocol
 * has `everyone`, it also makes one when the creator tells it where the object is. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "core/outgoing.h"
#include "core/work.h"
#include "object/ends.h"
#include "object/entry.h"
#include "object/kinds.h"
#include "object/protocol.h"
#include "object/store_calls.h"

int fy_entry_make(fy_objects *objects, ferry_object object, fy_entry **out)
{
    void *slot = NULL;
    size_t count = objects->directory.count;
    int error = fy_table_insert(&objects->directory, object.word, &slot);
    if (error != 0)
        return error;
    fy_entry *entry = slot;
    if (objects->directory.count != count)
        entry->guess = fy_object_creator(object);
    *out = entry;
    return 0;
}

/* Sends a location notice. `ranks`: if the object has ended, the ranks that have dealt with it. */
static void send_word(ferry *f, int rank, ferry_object object, int place, uint32_t movement,
                      const fy_source *ranks, uint32_t count)
{
    fy_frame frame = {.kind = FY_KIND_LOCATION,
                      .word_count = FY_PLACE_WORDS,
                      .words = {object.word, fy_place_word(place, movement)},
                      .data = ranks,
                      .size_bytes = count * sizeof *ranks};
    /* The notice is a hint. If it is lost, the next message of `rank` takes a longer way, or fails
     * at its target. */
    (void)fy_send(f, FY_DATA, rank, &frame);
}

void fy_location_send(ferry *f, int rank, ferry_object object, int place, uint32_t movement)
{
    send_word(f, rank, object, place, movement, NULL, 0);
}

void fy_end_send(ferry *f, int rank, ferry_object object, uint32_t movement, const fy_source *ranks,
                 uint32_t count)
{
    send_word(f, rank, object, FY_PLACE_NONE, movement, ranks, count);
}

/* Sets the fields one by one, which is fast: the first message of an object that arrives waits for
 * this. */
static void directory_fill(fy_record *record, ferry_object object)
{
    fy_list_init(&record->link);
    record->state = FY_AWAITED;
    record->scheduled = record->out = record->placed = record->handed = record->destroy_pending =
        record->worked = record->due = record->travels = record->doubted = false;
    record->target = -1;
    record->from = 0;
    record->movement = 0;
    record->object = object;
    record->type = NULL;
    record->type_index = 0;
    record->data = NULL;
    record->stored = NULL;
    record->left_ns = record->pack_ns = 0;
    record->load = 0;
    record->unasked = 0;
    record->affinity = NULL;
    record->item = (ferry_schedulable){.object = object};
    record->sources.many = NULL;
    record->sources.capacity = record->sources.count = 0;
    record->pending = record->early = record->late = (fy_queued_list){0};
}

fy_record *fy_record_create(fy_objects *objects, ferry_object object)
{
    fy_record *record = (fy_record *)(void *)fy_list_pop(&objects->spares);
    if (record != NULL)
        objects->spare_count--;
    else
        record = fy_malloc(sizeof *record);
    if (record != NULL)
        directory_fill(record, object);
    return record;
}

static __attribute__((noinline)) void queued_free(fy_objects *objects, fy_queued_list *messages)
{
    for (fy_queued_message *queued; (queued = fy_queued_list_pop(messages)) != NULL;)
        fy_queued_destroy(&objects->messages, queued);
}

void fy_record_destroy(fy_objects *objects, fy_record *record)
{
    if (record->stored != NULL)
        objects->store->gone(record);
    if (record->pending.count != 0)
        queued_free(objects, &record->pending);
    if (record->early.count != 0)
        queued_free(objects, &record->early);
    if (record->late.count != 0)
        queued_free(objects, &record->late);
    if (record->sources.many != NULL)
        fy_sources_fini(&record->sources);
    if (record->affinity != NULL)
        free(record->affinity);
    if (objects->spare_count == FY_SPARES_MAX) {
        free(record);
        return;
    }
    objects->spare_count++;
    fy_list_insert(&objects->spares, &record->link);
}

/* On a rank that does not know the object: makes an entry if the protocol tells all ranks, and the
 * notice comes from the creator. NULL: this rank does not need the notice. */
static __attribute__((cold)) fy_entry *hear_first(fy_objects *objects, int source,
                                                  ferry_object object)
{
    fy_entry *entry = NULL;
    if (objects->protocol.everyone && source == fy_object_home(objects, object))
        (void)fy_entry_make(objects, object, &entry);
    return entry;
}

static fy_verdict hear_of_place(ferry *f, int source, ferry_object object, int place,
                                uint32_t movement)
{
    fy_objects *objects = fy_objects_of(f);
    fy_entry *entry = fy_entry_find(objects, object);
    if (entry == NULL)
        entry = hear_first(objects, source, object);
    if (entry != NULL && movement == entry->movement)
        fy_entry_seen(objects, entry);
    if (entry == NULL || entry->dead || (int32_t)(movement - entry->movement) <= 0)
        return FY_TAKEN;
    if (entry->record != NULL)
        return fy_entry_leaves(f, entry) ? FY_LEAVE : FY_TAKEN;
    entry->guess = place;
    entry->movement = movement;
    fy_entry_seen(objects, entry);
    if (objects->protocol.learnt != NULL && fy_object_home(objects, object) == objects->rank)
        objects->protocol.learnt(f, object, movement, entry->guess);
    return FY_TAKEN;
}

fy_verdict fy_location_frame(ferry *f, int source, const fy_frame *frame)
{
    const fy_objects *objects = fy_objects_of(f);
    ferry_object object = {frame->words[0]};
    int32_t place = (int32_t)(uint32_t)(frame->words[1] >> 32);
    if (frame->word_count < FY_PLACE_WORDS || frame->word_count > FY_PLACE_WORDS_COUNTED ||
        !fy_object_is_name(objects, object) || place < FY_PLACE_CARRIED ||
        place >= objects->ranks || frame->size_bytes % sizeof(fy_source) != 0 ||
        (place == FY_PLACE_ASK && fy_object_home(objects, object) != objects->rank)) {
        fy_bad_frame(f, source, frame, "location");
        return FY_TAKEN;
    }
    if (place < 0)
        return fy_end_frame(f, source, frame);
    fy_verdict verdict = hear_of_place(f, source, object, place, (uint32_t)frame->words[1]);
    if (verdict == FY_TAKEN && frame->word_count == FY_PLACE_WORDS_COUNTED &&
        fy_work_comes(f, source) != 0)
        verdict = FY_LEAVE;
    if (verdict == FY_TAKEN)
        fy_frame_done(f);
    return verdict;
}
