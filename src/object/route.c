/* Routes of waiting messages.
 *
 * Messages of this rank's own to an object that wait in a queue are numbered already. A later one
 * that left before them would be held where the object is until they come. Held messages take
 * credit, which the earlier ones may wait for. So while messages to an object wait in the queue for
 * a rank, all later ones join that queue, wherever the object is known to be by now. They leave in
 * the order of their numbers, and a message that has left waits for no credit any more
 * (docs/decisions/0017).
 *
 * Invariant: an object has a route exactly while `count` messages to it wait in the queue of
 * `route->rank`. Application thread only. */
#include "object/pacing.h"

/* Frames of objects name theirs, and what the sender knew of its place (object/wire.h). */
static inline uint64_t object_of(const fy_frame *frame)
{
    return frame->words[0];
}

const fy_route *fy_route_find(const ferry *f, uint64_t object)
{
    const fy_table *routes = &fy_objects_of(f)->routes;
    return routes->slots == NULL ? NULL : fy_table_find(routes, object);
}

int fy_route_join(ferry *f, int rank, const fy_frame *frame)
{
    void *slot = NULL;
    fy_table *routes = &fy_objects_of(f)->routes;
    if (routes->slots == NULL && fy_table_init(routes, sizeof(fy_route)) != 0)
        return FERRY_ENOMEM;
    if (fy_table_insert(routes, object_of(frame), &slot) != 0)
        return FERRY_ENOMEM;
    fy_route *route = slot;
    if (route->count++ == 0) {
        route->rank = rank;
        route->movement = (uint32_t)frame->words[1];
    }
    return 0;
}

void fy_route_leave(ferry *f, const fy_frame *frame)
{
    fy_table *routes = &fy_objects_of(f)->routes;
    fy_route *route = fy_table_find(routes, object_of(frame));
    if (--route->count == 0)
        fy_table_remove(routes, route);
}
