/* Home: the creator hears of every move, so that a first message is forwarded once, however often
 * the object has moved. */
#include "object/protocol.h"

static void arrived(ferry *f, const fy_record *record)
{
    fy_protocol_tell(f, fy_object_home(fy_objects_of(f), record->object), record->object,
                     record->movement);
}

static void found(ferry *f, uint32_t movement, const fy_envelope *envelope)
{
    fy_protocol_tell(f, envelope->origin, envelope->object, movement);
}

const fy_protocol fy_protocol_home = {.name = "home", .arrived = arrived, .found = found};
