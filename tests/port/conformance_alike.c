/* Frames that are alike: a port that leaves out what it has said before must not leave out more. */
#include "cases.h"
#include "port/port.h"

#include <string.h>

static uint64_t mixed(uint64_t x)
{
    x = (x + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 31) * UINT64_C(0xd1342543de82ef95);
    return x ^ x >> 32;
}

/* The frame of a number, much like those before: five have the same fields, and the next five
 * others in some of them. */
static fy_frame alike(uint64_t number)
{
    uint64_t bits = mixed(number / 5), own = mixed(number);
    fy_frame frame = {
        .kind = (uint8_t)(1 + (bits & 1)),
        .word_count = (uint8_t)(own % (FY_FRAME_WORDS + 1)),
        .handler = (uint16_t)(bits >> 1 & 1),
        .op = (uint32_t)(bits >> 2 & 1),
        .tag = -(int32_t)(bits >> 3 & 1),
        .aux = (uint32_t)(bits >> 4 & 1) << 31,
    };
    for (unsigned i = 0; i < frame.word_count; i++)
        frame.words[i] = number * 8 + i;
    if (own >> 8 & 1) {
        frame.data = "eight by eight by eight bytes of it";
        frame.size_bytes = own >> 9 & 31;
    }
    return frame;
}

/* The frames of these that came on one lane. */
typedef struct alikes {
    uint64_t next, goal; /* the goal is known from the last */
} alikes;

static fy_verdict take_alike(void *context, int source, const fy_frame *frame)
{
    alikes *a = context;
    (void)source;
    if (frame->kind == KIND_LAST) {
        a->goal = frame->words[0];
        fy_expect(frame->word_count == 1 && a->next == a->goal);
        return FY_TAKEN;
    }
    fy_frame wanted = alike(a->next++);
    fy_expect(frame->kind == wanted.kind && frame->word_count == wanted.word_count);
    fy_expect(frame->handler == wanted.handler && frame->op == wanted.op);
    fy_expect(frame->tag == wanted.tag && frame->aux == wanted.aux);
    fy_expect(frame->size_bytes == wanted.size_bytes);
    for (unsigned i = 0; i < wanted.word_count; i++)
        fy_expect(frame->words[i] == wanted.words[i]);
    if (wanted.size_bytes > 0)
        fy_expect(memcmp(frame->data, wanted.data, wanted.size_bytes) == 0);
    return FY_TAKEN;
}

static void poll_alike(fy_port *port, alikes came[FY_LANES])
{
    for (int lane = 0; lane < FY_LANES; lane++)
        port->ops->transport.poll(port, (fy_lane)lane, 16, take_alike, &came[lane]);
}

/* Goal: no field of a frame is taken from another, however alike they are. Method: two ranks send
 * each other frames that differ little, on both lanes. */
void fy_case_alike(fy_port *port)
{
    enum { FRAMES = 4000 };
    alikes came[FY_LANES] = {{.goal = UINT64_MAX}, {.goal = UINT64_MAX}};
    fy_port_info info = fy_info_of(port);
    uint64_t start = port->ops->host.now(port), number = 0;
    for (bool last = false; !last; number++) {
        last = fy_is_enough(port, start, number, FRAMES);
        fy_frame frame = last ? (fy_frame){.kind = KIND_LAST, .word_count = 1, .words = {number}}
                              : alike(number);
        for (int lane = 0; lane < FY_LANES; lane++)
            while (port->ops->transport.send(port, FY_APP, (fy_lane)lane, 1 - info.rank, &frame) ==
                   FERRY_EAGAIN)
                poll_alike(port, came);
        if (number % 3 == 0)
            poll_alike(port, came);
    }
    fy_waits_for(port, "the last frames of the other rank, on both lanes");
    while (came[FY_DATA].next != came[FY_DATA].goal ||
           came[FY_CONTROL].next != came[FY_CONTROL].goal)
        poll_alike(port, came);
}
