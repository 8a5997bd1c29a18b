/* Messages that do not reach an object here: they go on to another rank, or fail. */
#include "core/fail.h"
#include "core/operation.h"
#include "core/why.h"
#include "object/delivery.h"
#include "object/ends.h"
#include "object/entry.h"
#include "object/wire.h"

void fy_message_end_op(ferry *f, int origin, uint32_t op, int error)
{
    if (origin == ferry_rank(f))
        fy_op_end(f, op, error);
    else
        fy_op_end_remote(f, origin, op, error);
}

__attribute__((cold)) void fy_message_bounce(ferry *f, const fy_envelope *envelope,
                                             ferry_handler handler)
{
    bool lost = envelope->op == 0 && handler.index != fy_objects_of(f)->keeper.silent;
    if (envelope->origin != ferry_rank(f))
        fy_location_send(f, envelope->origin, envelope->object,
                         lost ? FY_PLACE_LOST : FY_PLACE_NONE, envelope->movement);
    else if (lost)
        fy_log(f, "a message to object %016llx is lost: the object was destroyed",
               (unsigned long long)envelope->object.word);
    fy_message_end(f, envelope, FERRY_ENOENT);
}

/* If `rank` is gone, the object may have gone on before. Then a rank that has it has told the home
 * (ends.c), to which the message goes. The home first learns what this rank knows, so it never
 * sends the message back. The message's number is between those of the last two moves that this
 * rank knows: so reports of its way still have rising numbers (fy_op_moved_remote). */
int fy_message_forward(ferry *f, fy_envelope *envelope, const ferry_message *message, int rank,
                       uint32_t movement)
{
    fy_envelope next = *envelope;
    next.movement = movement;
    if (next.hops < FY_WIRE_HOPS_MAX)
        next.hops++;
    int home, error = fy_message_post(f, rank, &next, message);
    if (error == FERRY_EPEER &&
        (home = fy_object_home(fy_objects_of(f), envelope->object)) != ferry_rank(f)) {
        fy_location_send(f, home, envelope->object, rank, movement);
        rank = home;
        next.movement = --movement;
        error = fy_message_post(f, rank, &next, message);
    }
    if (error == FERRY_ENOMEM)
        return error;
    fy_held_passed_on(f, envelope->origin, rank);
    if (error != 0) {
        fy_message_end(f, envelope, error);
        return 0;
    }
    fy_work_finished(f, 1);
    if (envelope->op != 0)
        fy_op_moved_remote(f, envelope->origin, envelope->op, rank, movement);
    fy_stats(f)->messages_forwarded++;
    return 0;
}

/* Keeps a message for an object that is in flight here from `source`. But this rank may also have
 * had the object, and have forgotten it after its end. Only the creator can tell, so this rank asks
 * it. The creator answers if the object has ended. */
static fy_verdict message_await(ferry *f, int source, const fy_envelope *envelope,
                                const ferry_message *message)
{
    fy_objects *objects = fy_objects_of(f);
    fy_queued_message *queued =
        fy_queued_create(&objects->messages, envelope, message, fy_stamp(f), false);
    fy_record *record = queued == NULL ? NULL : fy_record_create(objects, envelope->object);
    fy_entry *entry = NULL;
    if (record == NULL || fy_entry_make(objects, envelope->object, &entry) != 0) {
        if (record != NULL)
            fy_record_destroy(objects, record);
        if (queued != NULL)
            fy_queued_destroy(&objects->messages, queued);
        return FY_LEAVE;
    }
    entry->record = record;
    record->from = source;
    fy_queued_list_push(&record->late, queued);
    fy_gaps_watch(f);
    fy_home_ask(f, envelope->object, envelope->movement);
    return FY_TAKEN;
}

/* Sends a message on to where its object went. If `source` had only forwarded the message, it
 * learns the newer place, so that the next message takes a shorter way. It does not learn a place
 * to which the object left from here and from which no rank has reported it. */
static fy_verdict message_pass_on(ferry *f, int source, fy_entry *entry, int rank,
                                  fy_envelope *envelope, const ferry_message *message)
{
    bool tell = envelope->hops > 0 && source != envelope->origin && !entry->left;
    fy_entry_expect(fy_objects_of(f), entry);
    if (fy_message_forward(f, envelope, message, rank, entry->movement) != 0)
        return FY_LEAVE;
    if (tell)
        fy_location_send(f, source, envelope->object, entry->guess, entry->movement);
    fy_frame_done(f);
    return FY_TAKEN;
}

fy_verdict fy_message_miss(ferry *f, int source, fy_entry *entry, fy_envelope *envelope,
                           const ferry_message *message)
{
    const fy_objects *objects = fy_objects_of(f);
    if (entry != NULL && entry->movement == 0 && !entry->dead)
        entry = NULL; /* this rank has only sent to the object */
    if (entry == NULL ? fy_object_is_ours(objects, envelope->object) : entry->dead) {
        fy_message_bounce(f, envelope, message->handler);
        return FY_TAKEN;
    }
    int32_t newer = entry == NULL ? -1 : (int32_t)(entry->movement - envelope->movement);
    /* With 0 or an odd number the sender took this rank for the home. It knew of a death before
     * this rank did, or the object has ended, or was lost. */
    bool sought = envelope->movement == 0 || envelope->movement % FY_MOVE_STEP != 0;
    if (newer < 0 && !sought)
        return message_await(f, source, envelope, message);
    if (newer < 0) {
        fy_message_end(f, envelope, FERRY_EPEER);
        return FY_TAKEN;
    }
    int rank = fy_entry_route(objects, entry);
    if (newer == 0 || rank == objects->rank) {
        fy_log(f, "rank %d and this one disagree about object %016llx", source,
               (unsigned long long)envelope->object.word);
        fy_message_end(f, envelope, FERRY_ENOENT);
        return FY_TAKEN;
    }
    return message_pass_on(f, source, entry, rank, envelope, message);
}
