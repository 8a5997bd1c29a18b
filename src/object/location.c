/* Location notices: what ranks tell each other of the places of objects. */
#include "core/fail.h"
#include "core/outgoing.h"
#include "core/work.h"
#include "object/delivery.h"
#include "object/ends.h"
#include "object/kinds.h"
#include "object/protocol.h"

/* Writes a location notice. The notice is a hint. If it is lost, the next message of its target
 * takes a longer way, or fails at its own target. */
static void begin_word(fy_frame *frame, uint8_t word_count, ferry_object object, int place,
                       uint32_t movement)
{
    fy_frame_begin(frame, FY_KIND_LOCATION, 0, word_count);
    frame->words[0] = object.word;
    frame->words[1] = fy_place_word(place, movement);
}

void fy_location_send(ferry *f, int rank, ferry_object object, int place, uint32_t movement)
{
    fy_frame frame;
    begin_word(&frame, FY_PLACE_WORDS, object, place, movement);
    (void)fy_send(f, FY_DATA, rank, &frame);
}

void fy_location_send_as_work(ferry *f, int rank, ferry_object object, int place, uint32_t movement)
{
    fy_frame frame;
    begin_word(&frame, FY_PLACE_WORDS_COUNTED, object, place, movement);
    frame.words[FY_PLACE_WORDS] = 0;
    (void)fy_send_as_work(f, rank, &frame);
}

void fy_end_send(ferry *f, int rank, ferry_object object, uint32_t movement, const fy_source *ranks,
                 uint32_t count)
{
    fy_frame frame;
    begin_word(&frame, FY_PLACE_WORDS, object, FY_PLACE_NONE, movement);
    frame.data = ranks;
    frame.size_bytes = count * sizeof *ranks;
    (void)fy_send(f, FY_DATA, rank, &frame);
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

/* `counted`: the source takes this rank for the home. It may know of a death before this rank does.
 */
static fy_verdict hear_of_place(ferry *f, int source, ferry_object object, int place,
                                uint32_t movement, bool counted)
{
    fy_objects *objects = fy_objects_of(f);
    fy_entry *entry = fy_entry_find(objects, object);
    if (counted && !fy_object_is_ours(objects, object) &&
        fy_entry_make(objects, object, &entry) != 0)
        return FY_LEAVE;
    if (entry == NULL)
        entry = hear_first(objects, source, object);
    else if (counted)
        entry->inherited = 1;
    if (entry != NULL && movement == entry->movement)
        fy_entry_seen(objects, entry);
    /* A rank that has inherited the words of a move may say that the object is here, before it is.
     */
    if (entry == NULL || entry->dead || (int32_t)(movement - entry->movement) <= 0 ||
        place == objects->rank)
        return FY_TAKEN;
    bool awaited = entry->record != NULL && fy_record_state(f, entry->record) == FY_AWAITED;
    if (entry->record != NULL && !(counted && awaited))
        return fy_entry_leaves(f, entry) ? FY_LEAVE : FY_TAKEN;
    entry->guess = place;
    entry->movement = movement;
    fy_entry_seen(objects, entry);
    if (objects->told_successor != 0 && fy_entry_counts(entry))
        fy_location_send_as_work(f, objects->told_successor - 1, object, place, movement);
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
        place >= objects->ranks || frame->size_bytes % sizeof(fy_source) != 0) {
        fy_bad_frame(f, source, frame, "location");
        return FY_TAKEN;
    }
    if (place < 0)
        return fy_end_frame(f, source, frame);
    bool counted = frame->word_count == FY_PLACE_WORDS_COUNTED;
    fy_verdict verdict =
        hear_of_place(f, source, object, place, (uint32_t)frame->words[1], counted);
    if (verdict == FY_TAKEN && counted && fy_work_comes(f, source) != 0)
        verdict = FY_LEAVE;
    if (verdict == FY_TAKEN)
        fy_frame_done(f);
    return verdict;
}
