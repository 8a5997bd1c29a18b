/* Home: the creator learns of every move. So a first message is forwarded once, however often the
 * object has moved. */
#include "object/protocol.h"

static void home_arrived(ferry *f, ferry_object object, uint32_t movement)
{
    ferry_directory_tell(f, ferry_directory_home(f, object), object, movement, ferry_rank(f));
}

void fy_protocol_tell_origin(ferry *f, ferry_object object, uint32_t movement, int origin,
                             uint32_t hops)
{
    (void)hops;
    ferry_directory_tell(f, origin, object, movement, ferry_rank(f));
}

const ferry_directory_protocol fy_protocol_home = {.size = sizeof(ferry_directory_protocol),
                                                   .name = "home",
                                                   .arrived = home_arrived,
                                                   .found = fy_protocol_tell_origin};
