/* Tags: a poll for one tag keeps the frames with other tags here, in order, for later polls.
 *
 * Kept are requests, messages to objects, transfers with handlers, and puts and gets with a tag. A
 * frame without a tag is kept only if it is a put and a frame of its source is kept already. When a
 * frame is kept, its source is told the event that it waits for: the request has arrived, or the
 * put has completed. No rank may then see memory as it was before that put. So a get or an atomic
 * update carries out kept puts first.
 *
 * Invariant: frames with one tag from one source run in the order sent. A poll without a tag runs
 * all kept frames of a source before newer frames of it. Kept bytes count in `waiting_bytes`.
 * Beyond that limit frames stay in the port, and the poll says so. Application thread only.
 * prema.txt B.2.6. */
#ifndef FY_TAGS_H
#define FY_TAGS_H

#include "core/mail.h"

/* The tag of a put or get without one. */
enum { FY_NO_TAG = FERRY_ANY_TAG };

typedef struct fy_tags {
    fy_mail kept; /* a table as that of two-sided messages, with packets alone */
    size_t bytes; /* of kept packets, their data and their places in the table */
    uint32_t count, round;
    bool full;      /* this poll left a frame in the port */
    bool told_full; /* a log line about it was written */
} fy_tags;

void fy_tags_init(ferry *f);
void fy_tags_fini(ferry *f);

/* Runs a frame, keeps it, or leaves it in the port. Called while a poll is for one tag or frames
 * are kept. */
fy_verdict fy_tags_deliver(ferry *f, int source, const fy_frame *frame);

/* Runs the kept frames that this poll wants. Returns how many. */
int fy_tags_run(ferry *f);

/* Whether a kept frame from `source` has this tag; FERRY_ANY_TAG: any tag. */
static inline bool fy_tags_has(const fy_tags *tags, int source, int32_t tag)
{
    return tags->count != 0 && fy_item_find(&tags->kept, source, tag) != NULL;
}

#endif
