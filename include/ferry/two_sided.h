/* Two-sided messages: a send and a receive that meet by rank and tag.
 *
 * Messages of one rank to another meet receives in the order sent. progressive-messages.txt 5.1.3.
 */
#ifndef FERRY_TWO_SIDED_H
#define FERRY_TWO_SIDED_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sends `size_bytes` (0 too) at `data` to the receive of `rank` that meets it. With `track` keeps
 * `data` until submitted; completed comes when a receive has all data, FERRY_ETOOLONG when it was
 * too short. Without, outside handlers, it waits for the receive if the data have more than
 * ring_bytes / 8 (8 KiB), or 128 KiB wait at `rank` already; else it copies. FERRY_EAGAIN
 * (docs/limits.md), FERRY_EINVAL (FERRY_ANY_TAG too), FERRY_ENOMEM, FERRY_EPEER: nothing was sent.
 * [app thread, handlers | may block outside handlers | polls when it blocks]
 * progressive-messages.txt 5.1.3 (mate_send). */
FERRY_API FERRY_MUST_USE int ferry_send(ferry *f, int rank, int32_t tag, const void *data,
                                        size_t size_bytes, const ferry_track *track);

/* Receives into `buffer` the first message from `rank` (or FERRY_ANY_RANK) with `tag` (or
 * FERRY_ANY_TAG) that no earlier receive has met. It may be there already. Keeps `buffer` until
 * `track`, not NULL, reports the end; completed gives the message's rank, tag and size.
 * FERRY_ETOOLONG: the message has more than `size_max` bytes; nothing is written, it is used up,
 * and both sides learn both lengths. FERRY_EINVAL, FERRY_ENOMEM, FERRY_EPEER (`rank` has gone and
 * left no such message): nothing was started. [app thread, handlers | never blocks]
 * progressive-messages.txt 5.1.3 (mate_recv). */
FERRY_API FERRY_MUST_USE int ferry_receive(ferry *f, int rank, int32_t tag, void *buffer,
                                           size_t size_max, const ferry_track *track);

#ifdef __cplusplus
}
#endif
#endif
