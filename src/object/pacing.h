/* Pacing: messages to objects that leave this rank. Its own messages may wait for room, for credit,
 * or for earlier messages to the same object. Messages that it forwards wait for room alone. */
#ifndef FY_OBJECT_PACING_H
#define FY_OBJECT_PACING_H

#include "core/outgoing.h"
#include "object/object.h"

/* As fy_check_room for ferry_object_send, also outside handlers while fy_message_pace waits for
 * nothing. */
int fy_message_check_kept(ferry *f);
static inline int fy_message_check(ferry *f)
{
    return fy_in_handler(f) || fy_objects_of(f)->carried != 0 ? fy_message_check_kept(f) : 0;
}

/* Outside handlers: polls, and runs tasks, until a message to `object`, which is on `rank`, may be
 * sent and has room. Returns whether it has polled. */
bool fy_message_pace(ferry *f, uint64_t object, int rank);

/* Sends a message to an object on `rank` by the data lane, as fy_send does. From now on it counts
 * as work of `rank`. If this rank only passes it on, the caller counts it as finished here. `own`:
 * it is a message of this rank. While the rank's credit is withdrawn or other own messages wait, it
 * waits after them, and no other frame waits for it. If the object has a route
 * (fy_message_route), `rank` is the route's. */
int fy_message_send(ferry *f, int rank, bool own, const fy_frame *frame);

extern const fy_pacing fy_message_pacing;

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

/* A message joins the queue for `rank`, or has left it (route.c). FERRY_ENOMEM. */
int fy_route_join(ferry *f, int rank, const fy_frame *frame);
void fy_route_leave(ferry *f, const fy_frame *frame);

/* A token may have come that this rank has not seen, because a handler that goes on sending does
 * not poll. So when this rank has sent as much as its credit allows, messages wait for the next
 * look at the control lane too. */
static inline bool fy_credit_is_plenty(const ferry *f)
{
    const fy_objects *objects = fy_objects_of(f);
    /* relaxed: a sender looks again and again, and no other data depend on the word */
    return atomic_load_explicit(&objects->credit.tokens, memory_order_relaxed) <= 0 &&
           fy_head_of(f)->unseen_bytes <= objects->messages.limit_bytes;
}

/* Whether this rank has sent so much that it should look for tokens, outside handlers. */
static inline bool fy_pace_is_due(const ferry *f)
{
    enum { PARTS = 8 };
    return fy_head_of(f)->unseen_bytes >= fy_objects_of(f)->messages.limit_bytes / PARTS;
}

/* Whether messages of this rank may not be sent now. */
bool fy_credit_is_withdrawn(ferry *f);

/* Gives `rank` tokens of an epoch, or takes some back (credit.c). FERRY_ENOMEM. */
int fy_credit_tell(ferry *f, int rank, int tokens, uint32_t epoch);

fy_kind_fn fy_credit_frame;

#endif
