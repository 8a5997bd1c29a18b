/* Membership: the ranks that have gone, that leave, and that take objects. */
#ifndef FY_MEMBERSHIP_H
#define FY_MEMBERSHIP_H

#include "core/head.h"

/* Whether `rank` has died or left, and everything it sent has been handled. */
FY_SHARED bool fy_peer_is_gone(const ferry *f, int rank);

/* The rank to ask in place of `rank`: its successor if it has left by ferry_leave, otherwise
 * `rank`. */
static inline int fy_peer_successor(const ferry *f, int rank)
{
    const int32_t *successors = fy_head_of(f)->successors;
    while (successors != NULL && successors[rank] >= 0)
        rank = successors[rank];
    return rank;
}

/* Whether objects may be sent to `rank`. It must be another rank that is present and does not
 * leave. If it joined later, it must have called ferry_quiesce, so that it knows their types. */
bool fy_peer_takes(const ferry *f, int rank);

/* How many ranks are known to have come, and to have gone: equal on ranks that know the same. */
uint32_t fy_peer_shifts(const ferry *f);

/* Whether `rank`, which may be this one, has begun to leave. */
bool fy_peer_leaves(const ferry *f, int rank);

/* Whether another rank has begun to leave, and has not gone. */
bool fy_others_leave(const ferry *f);

/* Something that has to do with a rank that leaves was not sent for lack of memory: polls try again
 * after a pause. */
void fy_leave_again(ferry *f);

/* The next rank after `after`, around the ring of ranks, to which objects may be sent; -1: there is
 * none. */
int fy_peer_taker(const ferry *f, int after);

#endif
