/* Outlets: messages without data are written where their target reads them (port/outlet.h). */
#ifndef FY_OUTLETS_H
#define FY_OUTLETS_H

#include "core/peer.h"
#include "port/outlet.h"

/* Where to write a message without data for `rank` in place of sending it, and the record in which
 * it counts; NULL: it must be sent. [application thread] */
static inline fy_outlet *fy_outlet_of(const ferry *f, int rank, fy_peer **peer)
{
    const fy_head *head = fy_head_of(f);
    fy_peer *page = head->peer_pages[rank >> FY_PEER_PAGE_BITS];
    if (page == NULL || head->detours != 0)
        return NULL;
    *peer = &page[rank & (FY_PEER_PAGE - 1)];
    return fy_outlet_is_ready((*peer)->outlet) ? (*peer)->outlet : NULL;
}

/* Does what is left for a frame that was written and published. Returns 0. */
int fy_outlet_follow(ferry *f, fy_outlet *outlet);

#endif
