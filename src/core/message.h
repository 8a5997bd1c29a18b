/* Message: messages to objects on the way from this rank. Some wait for room, for credit of their
 * target, or for earlier messages to the same object. */
#ifndef FY_MESSAGE_H
#define FY_MESSAGE_H

#include "core/head.h"

/* As fy_check_room for ferry_object_send, also outside handlers while fy_message_pace waits for
 * nothing. */
int fy_message_check(ferry *f);

/* The number of objects that the program took from this rank, will install here, or whose type it
 * has still to register. While there are any, fy_message_pace waits for nothing. [application
 * thread] */
static inline uint32_t *fy_carried_of(ferry *f)
{
    return &((fy_head *)(void *)f)->carried;
}

/* Outside handlers: polls, and runs tasks, until a message to `object`, which is on `rank`, may be
 * sent and has room. Returns whether it has polled. */
bool fy_message_pace(ferry *f, uint64_t object, int rank);

/* The queue in which this rank's own messages to an object wait, and the sender's knowledge of its
 * place: a slot of a table (route.c). */
typedef struct fy_route {
    uint64_t object;
    int32_t rank;
    uint32_t movement;
    uint32_t count;
} fy_route;

/* The route of an object to which messages wait; else NULL. Lends it until the next message is
 * sent.
 */
const fy_route *fy_route_find(const ferry *f, uint64_t object);

/* As fy_route_find. A message to `object` must follow those that wait, wherever the object is. */
static inline const fy_route *fy_message_route(const ferry *f, uint64_t object)
{
    return fy_head_of(f)->slow_lanes != 0 ? fy_route_find(f, object) : NULL;
}

/* Sends a message to an object on `rank` by the data lane, as fy_send does. From now on it counts
 * as work of `rank`. If this rank only passes it on, the caller counts it as finished here. `own`:
 * it is a message of this rank. While the rank's credit is withdrawn or other own messages wait, it
 * waits after them, and no other frame waits for it. If the object has a route
 * (fy_message_route), `rank` is the route's. */
int fy_message_send(ferry *f, int rank, bool own, const fy_frame *frame);

/* Gives `rank` tokens of an epoch, or takes some back (credit.c). FERRY_ENOMEM. */
int fy_credit_tell(ferry *f, int rank, int tokens, uint32_t epoch);

/* The epoch of tokens: how many ranks are known to have come and gone. Tokens of other epochs do
 * not count. */
uint32_t fy_credit_epoch(const ferry *f);

/* Bytes of messages from one rank that another holds before it gives it a token. */
size_t fy_credit_bytes(const ferry *f);

#endif
