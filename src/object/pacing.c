/* The way of messages to objects from this rank to the port, see pacing.h. */
#include "object/pacing.h"

#include "core/control.h"
#include "core/peer.h"

__attribute__((cold)) int fy_message_check_kept(ferry *f)
{
    return fy_check_kept(f, "object_send",
                         fy_in_handler(f)
                             ? ""
                             : "; an uninstalled object is not installed yet, or its type "
                               "is not registered");
}

/* Whether this rank's own messages to objects on `rank` have to wait. */
static inline bool must_wait(ferry *f, int rank)
{
    return fy_credit_is_withdrawn(f) ||
           (fy_head_of(f)->slow_lanes != 0 &&
            (fy_has_backlog(f, FY_PACED, rank) || fy_has_backlog(f, FY_DATA, rank)));
}

static __attribute__((noinline)) int send_slowly(ferry *f, int rank, bool own,
                                                 const fy_frame *frame)
{
    if (!own)
        return fy_send(f, FY_DATA, rank, frame);
    if (rank == fy_head_of(f)->rank || !must_wait(f, rank))
        return fy_send_checked(f, rank, frame, "object_send");
    int error = fy_message_check(f);
    return error != 0 ? error : fy_paced_keep(f, rank, frame);
}

int fy_message_send(ferry *f, int rank, bool own, const fy_frame *frame)
{
    const fy_head *head = fy_head_of(f);
    fy_peer *peer = fy_peer_of(f, rank);
    int error = FERRY_EAGAIN;
    if (peer == NULL)
        return FERRY_ENOMEM;
    /* The fast path of send_slowly. */
    if (head->profile == NULL && head->detours == 0 && rank != head->rank &&
        (!own || fy_credit_is_plenty(f)))
        error = head->ops->transport.send(head->port, FY_APP, FY_DATA, rank, frame);
    if (error != 0)
        error = send_slowly(f, rank, own, frame);
    if (error != 0)
        return error;
    peer->work_sent++;
    fy_unseen_count(f, frame->size_bytes);
    return 0;
}

static bool waits(ferry *f, int rank)
{
    return fy_objects_of(f)->carried == 0 && must_wait(f, rank);
}

/* A rank that never finds its ring full never polls, and would not learn that it has lost credit.
 * So it looks at the control lane whenever it has sent a part of what its credit allows. */
static __attribute__((cold, noinline)) bool pace(ferry *f, uint64_t object, int rank, bool look)
{
    const fy_route *route = fy_route_find(f, object);
    if (route != NULL)
        rank = route->rank;
    if (look)
        (void)fy_control_look(f);
    if (!must_wait(f, rank))
        return look;
    fy_paced_wait(f, rank, waits);
    return true;
}

bool fy_message_pace(ferry *f, uint64_t object, int rank)
{
    bool look = fy_pace_is_due(f);
    return (look || fy_head_of(f)->slow_lanes != 0 || !fy_credit_is_plenty(f)) &&
           pace(f, object, rank, look);
}

const fy_pacing fy_message_pacing = {fy_credit_is_withdrawn, fy_route_join, fy_route_leave};
