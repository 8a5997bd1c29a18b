/* Eager: every rank hears of every move, and only messages that were under way meanwhile are
 * forwarded. The news go by the creator: what it says of an object, it says in the order of the
 * moves, and nothing after its end. */
#include "object/protocol.h"

static void tell_all(ferry *f, ferry_object object, int place, uint32_t movement)
{
    const fy_objects *objects = fy_objects_of(f);
    for (int rank = 0; rank < objects->ranks; rank++)
        if (rank != objects->rank && rank != place)
            fy_location_send(f, rank, object, place, movement);
}

static void arrived(ferry *f, const fy_record *record)
{
    int rank = ferry_rank(f);
    if (fy_object_home(fy_objects_of(f), record->object) == rank)
        tell_all(f, record->object, rank, record->movement);
    else
        fy_protocol_tell(f, fy_object_home(fy_objects_of(f), record->object), record->object,
                         record->movement);
}

static void found(ferry *f, uint32_t movement, const fy_envelope *envelope)
{
    fy_protocol_tell(f, envelope->origin, envelope->object, movement);
}

static void learnt(ferry *f, const fy_entry *entry)
{
    tell_all(f, (ferry_object){entry->object}, entry->guess, entry->movement);
}

const fy_protocol fy_protocol_eager = {
    .name = "eager", .arrived = arrived, .found = found, .learnt = learnt, .everyone = true};
