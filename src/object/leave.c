/* Leaving: the part of objects. The objects that are here move to other ranks, in turn. The
 * knowledge of this rank about all objects that ever were here or were made here goes to its
 * successor. From then on, other ranks ask the successor.
 *
 * A message that looks for an object on a departed rank goes to the successor. There it finds an
 * entry that is newer than what its route knew: a rank that an object has left always has the newer
 * entry. That rank hands its entries over before any rank asks the successor. The handover may say
 * that the successor itself has an object. That object is still in flight to the successor, or has
 * been there. It is awaited, as if a message came first, and the home is asked whether it has
 * ended.
 *
 * An object that comes here, of a type that is not registered here, is sent on as it came. */
#include <stdlib.h>
#include <string.h>

#include "core/control.h"
#include "core/fail.h"
#include "core/membership.h"
#include "core/outgoing.h"
#include "core/work.h"
#include "object/delivery.h"
#include "object/ends.h"
#include "object/entry.h"
#include "object/execution.h"
#include "object/flat.h"
#include "object/kinds.h"
#include "object/moves.h"
#include "object/object.h"
#include "object/store_calls.h"

/* The words by which one rank tells another of an object. */
typedef struct handover {
    uint64_t object;
    int32_t place;
    uint32_t movement;
} handover;

enum { HANDOVER_COUNT = 32 };

bool fy_objects_settled(ferry *f, int rank)
{
    const fy_objects *objects = fy_objects_of(f);
    size_t index = 0;
    bool settled = true;
    fy_control_lock(f);
    for (fy_entry *entry; (entry = fy_table_next(&objects->directory, &index)) != NULL;) {
        const fy_record *record = entry->record;
        if (record != NULL && record->target == rank &&
            (record->state == FY_MIGRATING || record->state == FY_DEPARTED ||
             record->state == FY_RETURNED))
            settled = false;
    }
    fy_control_unlock(f);
    return settled;
}

static bool is_at_rest(ferry *f, const fy_record *record)
{
    fy_control_lock(f);
    bool rests = record->state == FY_RESTING;
    fy_control_unlock(f);
    return rests;
}

/* Moves an object that the caller has unlinked, or ends it if the store cannot give its data.
 * False: it has ended, and the directory has changed. */
static bool move_one(ferry *f, fy_record *record, int target)
{
    if (record->stored != NULL && !fy_objects_of(f)->store->spare(f, record)) {
        fy_record_end(f, record);
        return false;
    }
    if (fy_record_move(f, record, target) != 0)
        fy_leave_again(f); /* the object stays, and a later call moves it */
    return true;
}

/* Moves the objects that rest here. Returns whether none is left. */
static bool move_all(ferry *f)
{
    fy_objects *objects = fy_objects_of(f);
    size_t index = 0;
    bool none = true;
    int target = objects->rank;
    for (fy_entry *entry; (entry = fy_table_next(&objects->directory, &index)) != NULL;) {
        fy_record *record = entry->record;
        if (record == NULL || (record->due && record->late.count == 0))
            continue;
        target = fy_peer_taker(f, target);
        if (target >= 0 && is_at_rest(f, record) && fy_record_unlink(f, record) &&
            !move_one(f, record, target))
            return false;
        none = none && entry->record == NULL;
    }
    return none && objects->arrivals == NULL && objects->unregistered == NULL;
}

int fy_record_pass_on(ferry *f, int source, bool handed, fy_record *record, size_t data_bytes)
{
    const fy_type kind = {.ops = {.flags = handed ? FERRY_OBJECT_SHARED : 0,
                                  .pack = fy_flat_pack,
                                  .flat_bytes = data_bytes}};
    uint64_t count = (uint64_t)record->pending.count + record->early.count + 1;
    record->target = fy_peer_taker(f, ferry_rank(f));
    if (record->target < 0)
        return FERRY_EAGAIN; /* no rank takes it: it waits until the others have gone */
    if (fy_work_arrives(f, source, count) != 0)
        return FERRY_ENOMEM;
    record->type = &kind;
    int error = fy_record_send(f, record);
    record->type = NULL;
    record->data = NULL;
    if (error != 0) {
        (void)fy_work_arrives(f, source, 0 - count);
        return FERRY_EAGAIN;
    }
    fy_held_stay(f, record); /* its tokens went on with it, and were never counted here */
    record->worked = true;
    record->late = fy_record_settle(fy_objects_of(f), record);
    fy_record_depart(f, record, record->target);
    return 0;
}

static int send_handover(ferry *f, int successor, const handover *items, size_t count)
{
    const fy_frame frame = {
        .kind = FY_KIND_HANDOVER, .data = items, .size_bytes = count * sizeof *items};
    return count == 0 ? 0 : fy_send(f, FY_DATA, successor, &frame);
}

static int tell_successor(ferry *f, int successor)
{
    fy_objects *objects = fy_objects_of(f);
    handover items[HANDOVER_COUNT];
    size_t index = 0, count = 0;
    int error = 0;
    for (fy_entry *entry;
         error == 0 && (entry = fy_table_next(&objects->directory, &index)) != NULL;) {
        /* The creator knows of an end. An entry of mere notices is not handed over. */
        if (entry->dead || !fy_entry_counts(entry))
            continue;
        fy_entry_expect(objects, entry); /* the successor will pass on its messages */
        items[count++] =
            (handover){.object = entry->object, .place = entry->guess, .movement = entry->movement};
        if (count < HANDOVER_COUNT)
            continue;
        error = send_handover(f, successor, items, count);
        count = 0;
    }
    return error == 0 ? send_handover(f, successor, items, count) : error;
}

bool fy_objects_leave(ferry *f, int successor)
{
    fy_objects *objects = fy_objects_of(f);
    if (!move_all(f))
        return false;
    uint64_t out = fy_stats(f)->objects_out;
    if (objects->told_successor == successor + 1 && objects->told_out == out)
        return true;
    if (tell_successor(f, successor) != 0) {
        fy_leave_again(f);
        return false;
    }
    objects->told_successor = successor + 1;
    objects->told_out = out;
    return true;
}

/* Takes over what a leaving rank knows of an object. FERRY_ENOMEM: nothing has happened, so the
 * same handover can be handled again. */
static int inherit(ferry *f, int source, const handover *item)
{
    fy_objects *objects = fy_objects_of(f);
    const ferry_object object = {item->object};
    fy_entry *entry = fy_entry_find(objects, object);
    if (entry != NULL && (entry->record != NULL || entry->dead))
        return 0;
    /* The rank that leaves may not have learned of the end of an object of this rank. */
    if (fy_object_creator(object) == objects->rank && !fy_names_alive(&objects->names, object))
        return 0;
    if (entry == NULL && fy_entry_make(objects, object, &entry) != 0)
        return FERRY_ENOMEM;
    entry->inherited = 1;
    if ((int32_t)(item->movement - entry->movement) <= 0)
        return 0;
    if (item->place == objects->rank) {
        entry->record = fy_record_create(objects, object);
        if (entry->record == NULL)
            return FERRY_ENOMEM;
        entry->record->from = source;
        fy_home_ask(f, object, item->movement);
        return 0;
    }
    fy_entry_seen(objects, entry);
    entry->left = FY_LEFT; /* the rank that leaves may have sent it there just now */
    entry->movement = item->movement;
    entry->guess = item->place;
    return 0;
}

fy_verdict fy_handover_frame(ferry *f, int source, const fy_frame *frame)
{
    const handover *items = frame->data;
    size_t count = frame->size_bytes / sizeof *items;
    if (frame->word_count != 0 || frame->size_bytes % sizeof *items != 0)
        count = 0;
    for (size_t i = 0; i < count; i++) {
        handover item;
        memcpy(&item, &items[i], sizeof item);
        ferry_object object = {item.object};
        if (!fy_object_is_name(fy_objects_of(f), object) || item.place < 0 ||
            item.place >= fy_objects_of(f)->ranks)
            fy_bad_frame(f, source, frame, "a handover");
        else if (inherit(f, source, &item) != 0)
            return FY_LEAVE;
    }
    if (count == 0)
        fy_bad_frame(f, source, frame, "a handover");
    return FY_TAKEN;
}
