/* Messages that do not reach an object here: they go on to another rank, or fail. */
#include "core/fail.h"
#include "core/operation.h"
#include "object/delivery.h"
#include "object/entry.h"
#include "object/wire.h"

void fy_message_end_op(ferry *f, int origin, uint32_t op, int error)
{
    if (origin == ferry_rank(f))
        fy_op_end(f, op, error);
    else
        fy_op_end_remote(f, origin, op, error);
}

__attribute__((cold)) void fy_message_bounce(ferry *f, const fy_envelope *envelope)
{
    if (envelope->origin != ferry_rank(f))
        fy_location_send(f, envelope->origin, envelope->object,
                         envelope->op == 0 ? FY_PLACE_LOST : FY_PLACE_NONE, envelope->movement);
    else if (envelope->op == 0)
        fy_log(f, "a message to object %016llx is lost: the object was destroyed",
               (unsigned long long)envelope->object.word);
    fy_message_end(f, envelope, FERRY_ENOENT);
}

int fy_message_forward(ferry *f, fy_envelope *envelope, const ferry_message *message, int rank,
                       uint32_t movement)
{
    fy_envelope next = *envelope;
    next.movement = movement;
    if (next.hops < FY_WIRE_HOPS_MAX)
        next.hops++;
    int error = fy_message_post(f, rank, &next, message);
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
