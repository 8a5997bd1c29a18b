/* Tags: frames that a poll for one tag does not want are kept here, in order, until a poll wants
 * them.
 *
 * Requests, messages to objects, transfers with handlers, and puts and gets with a tag are kept. A
 * frame without a tag is kept only if it is a put, and comes after a frame of its source that is
 * kept. When a frame is kept, its source is told of the event that it waits for: that a request has
 * arrived, that a put has. No rank may see memory as it was before a put that is kept; so a get or
 * remote word runs the puts first.
 *
 * Invariant: frames with one tag from one source run in the order sent; a poll without a tag runs
 * all kept frames of a source before newer frames of it. Kept bytes count with all else that waits
 * on the rank (`waiting_bytes`). Frames beyond that limit stay in the port, and the poll says so.
 * Application thread only. prema.txt B.2.6. */
#ifndef FY_TAGS_H
#define FY_TAGS_H

#include "core/mail.h"

/* A put or get of no tag. */
enum { FY_NO_TAG = FERRY_ANY_TAG };

typedef struct fy_tags {
    fy_mail kept; /* the table of two-sided messages, of packets alone */
    size_t bytes; /* of packets, data and their places in the table */
    uint32_t count, round;
    bool full;      /* a frame of this poll had to be left in the port */
    bool told_full; /* a log line about it was written */
} fy_tags;

void fy_tags_init(ferry *f);
void fy_tags_fini(ferry *f);

/* Decides what becomes of a frame while a tag is polled for or frames are kept. */
fy_verdict fy_tags_deliver(ferry *f, int source, const fy_frame *frame);

/* Runs what is kept, as far as the poll wants it. Returns how many frames. */
int fy_tags_run(ferry *f);

/* Whether a frame from `source` is kept that a poll for `tag` would run, or one of any tag. */
static inline bool fy_tags_has(const fy_tags *tags, int source, int32_t tag)
{
    return tags->count != 0 && fy_item_find(&tags->kept, source, tag) != NULL;
}

#endif
