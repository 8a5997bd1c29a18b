/* Eager: every rank learns of every move, and only messages that were in flight meanwhile are
 * forwarded. The creator tells the new place. It reports an object's moves in their order, and
 * nothing after its end. */
#include "object/protocol.h"

static void learnt(ferry *f, ferry_object object, uint32_t movement, int place)
{
    for (int rank = 0; rank < ferry_ranks(f); rank++)
        if (rank != place)
            ferry_directory_tell(f, rank, object, movement, place);
}

static void eager_arrived(ferry *f, ferry_object object, uint32_t movement)
{
    int here = ferry_rank(f), home = ferry_directory_home(f, object);
    if (home == here)
        learnt(f, object, movement, here);
    else
        ferry_directory_tell(f, home, object, movement, here);
}

const ferry_directory_protocol fy_protocol_eager = {.size = sizeof(ferry_directory_protocol),
                                                    .name = "eager",
                                                    .arrived = eager_arrived,
                                                    .found = fy_protocol_tell_origin,
                                                    .learnt = learnt,
                                                    .everyone = true};
