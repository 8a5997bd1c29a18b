/* Lazy: who sends to an old place learns the new one; nobody else does. After a longer detour the
 * creator learns it too, so that others who ask it find a short way. */
#include "object/protocol.h"

static void found(ferry *f, uint32_t movement, const fy_envelope *envelope)
{
    int creator = fy_object_home(fy_objects_of(f), envelope->object);
    fy_protocol_tell(f, envelope->origin, envelope->object, movement);
    if (envelope->hops > 1 && creator != envelope->origin)
        fy_protocol_tell(f, creator, envelope->object, movement);
}

const fy_protocol fy_protocol_lazy = {.name = "lazy", .found = found};
