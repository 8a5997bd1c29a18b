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
 * `data` until submitted. Without it the data may be reused on return: Ferry copies it or, if it is
 * long and outside handlers, waits. `track` reports completed when a receive has all data,
 * FERRY_ETOOLONG when the receive was too short. FERRY_EAGAIN (docs/limits.md), FERRY_EINVAL
 * (FERRY_ANY_TAG too), FERRY_ENOMEM, FERRY_EPEER: nothing was sent. [app thread, handlers | may
 * block outside handlers | polls when it blocks] progressive-messages.txt 5.1.3 (mate_send). */
FERRY_API FERRY_MUST_USE int ferry_send(ferry *f, int rank, int32_t tag, const void *data,
                                        size_t size_bytes, const ferry_track *track);

/* Receives into `buffer` the first message from `rank` (or FERRY_ANY_RANK) with `tag` (or
 * FERRY_ANY_TAG) that no earlier receive has met. The message may have arrived already. `track`
 * must not be NULL. Keeps `buffer` until `track` reports the end; completed gives the message's
 * rank, tag and size. If the message has more than `size_max` bytes, the receive fails with
 * FERRY_ETOOLONG and writes nothing; the message is used up, and both sides learn both lengths.
 * [app thread, handlers | never blocks] progressive-messages.txt 5.1.3 (mate_recv). */
FERRY_API FERRY_MUST_USE int ferry_receive(ferry *f, int rank, int32_t tag, void *buffer,
                                           size_t size_max, const ferry_track *track);

#ifdef __cplusplus
}
#endif
#endif
