/* Lazy: a rank that sends to an old place learns the new one; no other rank does. After more than
 * one forward the creator learns it too; the thesis tells the sender alone. A rank that knows
 * nothing asks the creator, and would otherwise follow all moves since the creator last sent.
 * tests/object/directory_thesis.c is the thesis's protocol. prema.txt 4.2.4.1. */
#include "object/protocol.h"

static void found(ferry *f, ferry_object object, uint32_t movement, int origin, uint32_t hops)
{
    int here = ferry_rank(f), home = ferry_directory_home(f, object);
    ferry_directory_tell(f, origin, object, movement, here);
    if (hops > 1 && home != origin)
        ferry_directory_tell(f, home, object, movement, here);
}

const ferry_directory_protocol fy_protocol_lazy = {
    .size = sizeof(ferry_directory_protocol), .name = "lazy", .found = found};
