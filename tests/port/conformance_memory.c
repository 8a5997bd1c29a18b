/* Memory that ranks share, where a port has such. */
#include "cases.h"

#define KIND_GIVEN 254 /* a block handed over */

/* Blocks of each sort that rank 0 hands to rank 1. */
enum { BLOCKS = 300 };

/* What rank 1 does with the address that rank 0 sends it. */
static fy_verdict use_block(void *context, int source, const fy_frame *frame)
{
    fy_port *port = ((tally *)context)->port;
    void *block = (void *)(uintptr_t)frame->words[0];
    if (frame->kind == KIND_LAST)
        return FY_LEAVE; /* of the meeting that follows */
    if (frame->kind == KIND_GIVEN) {
        fy_expect(frame->size_bytes == 5000 && ((const char *)frame->data)[4999] == 42);
        fy_expect(port->ops->heap.owner(port, FY_APP, frame->data, 5000) == source);
    } else {
        fy_expect(port->ops->heap.owner(port, FY_APP, block, 1000) == source);
        fy_expect(port->ops->heap.owner(port, FY_APP, block, 1001) == -1);
        fy_expect(((char *)block)[999] == 17);
        fy_expect(port->ops->heap.release(port, block) == 0);
        /* Before the last block its owner may have given this one out again. */
        fy_expect(((tally *)context)->last < 2 * BLOCKS - 2 ||
                  port->ops->heap.release(port, block) == FERRY_EINVAL);
    }
    ((tally *)context)->last++;
    return FY_TAKEN;
}

/* Goal: memory from `alloc` is at the same address everywhere, may be asked about and released by
 * anyone, once, and be handed over. Method: as said, repeatedly, and wild addresses. */
void fy_case_memory(fy_port *port)
{
    tally t = {.port = port};
    fy_port_info info = fy_info_of(port);
    if (!info.shares_memory) {
        fy_skipped(port, "the port shares no memory");
        return;
    }
    for (uint64_t round = 0; round < BLOCKS && info.rank == 0; round++) {
        char *block = port->ops->heap.alloc(port, 1000, -1),
             *given = port->ops->heap.alloc(port, 5000, -1);
        fy_expect(block != NULL && given != NULL);
        block[999] = 17;
        given[4999] = 42;
        fy_frame frame = {.kind = 1, .word_count = 1, .words = {(uintptr_t)block}};
        fy_tally_send(&t, FY_DATA, 1, &frame);
        frame = (fy_frame){.kind = KIND_GIVEN, .data = given, .size_bytes = 5001};
        fy_expect(port->ops->heap.send_block(port, FY_APP, FY_DATA, 1, &frame) == FERRY_EINVAL);
        frame.size_bytes = 5000;
        int error;
        while ((error = port->ops->heap.send_block(port, FY_APP, FY_DATA, 1, &frame)) ==
               FERRY_EAGAIN)
            fy_tally_poll(&t);
        fy_expect(error == 0);
    }
    while (info.rank == 1 && t.last < 2 * BLOCKS)
        port->ops->transport.poll(port, FY_DATA, 16, use_block, &t);
    char outside;
    fy_expect(port->ops->heap.owner(port, FY_APP, &outside, 1) == -1);
    fy_expect(port->ops->heap.owner(port, FY_APP, NULL, 0) == -1);
    fy_expect(port->ops->heap.release(port, &outside) == FERRY_EINVAL);
    t.last = 0;
    fy_tally_meet(&t, 1);
}
