/* Events: deaths of other ranks, two-sided messages, and progress in the background.
 *
 * What becomes of an operation is told through its ferry_track (core.h). Here is what belongs to no
 * operation, and the send and receive that meet by tag. progressive-messages.txt 4-5. */
#ifndef FERRY_EVENT_H
#define FERRY_EVENT_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Peers. */

/* A rank that is gone, or has joined. */
typedef struct ferry_peer_event {
    int rank;
    bool died;   /* it was killed or ended without ferry_close; else it closed while others go on */
    bool joined; /* it has come (member.h) */
} ferry_peer_event;

/* Runs as a callback, once for each rank that joins, and once for each that goes, behind everything
 * that rank sent which is still handled, and before the `failed` of the operations that name it.
 * May do what handlers may. */
typedef void ferry_peer_fn(ferry *f, void *arg, const ferry_peer_event *event);

/* Calls `fn` when another rank goes, and lets the job survive it: when every rank that lives has
 * registered one, the launcher says which rank died and goes on, and its status does not count. A
 * job of which any rank has registered none ends with a line that says why, as always, and on ranks
 * that have registered none every collective fails from then on (core.h). On the others
 * every operation that names a rank that is gone fails with FERRY_EPEER; so do collectives, until a
 * ferry_quiesce has counted it out: those that follow are of the members that are left (member.h).
 * ferry_close waits for those that live and returns 0; it calls `fn` no more, as what `arg` stands
 * on may be gone. `fn` NULL: no longer. `arg` is kept until then. [app thread, handlers | never
 * blocks] progressive-messages.txt 3.4, 4.2. */
FERRY_API int ferry_on_peer(ferry *f, ferry_peer_fn *fn, void *arg);

/* Whether `rank` has gone, as far as this rank has been told. [app thread | never blocks] */
FERRY_API bool ferry_peer_is_gone(const ferry *f, int rank);

/* Two-sided messages. */

/* Sends `size_bytes` (0 too) at `data` to the receive of `rank` that meets it. Messages of one rank
 * to another meet receives in the order sent. Keeps `data` until `track` reports submitted; without
 * `track` it is copied, or, if it is long and outside handlers, waited for. `track` reports
 * completed when a receive has all of it, FERRY_ETOOLONG when that was shorter. FERRY_EAGAIN
 * (docs/limits.md), FERRY_EINVAL (FERRY_ANY_TAG too), FERRY_ENOMEM, FERRY_EPEER: nothing was sent.
 * [app thread, handlers | may block outside handlers | polls when it blocks]
 * progressive-messages.txt 5.1.3 (mate_send). */
FERRY_API FERRY_MUST_USE int ferry_send(ferry *f, int rank, int32_t tag, const void *data,
                                        size_t size_bytes, const ferry_track *track);

/* Receives into `buffer` the first message from `rank` (or FERRY_ANY_RANK) with `tag` (or
 * FERRY_ANY_TAG) that no earlier receive has met, arrived already or not. Keeps `buffer` until
 * `track`, which must be given, reports an end; completed tells the true rank, tag and size. Failed
 * with FERRY_ETOOLONG, and nothing written, when the message has more than `size_max` bytes: the
 * message is used up, and both sides learn both lengths. [app thread, handlers | never blocks]
 * progressive-messages.txt 5.1.3 (mate_recv). */
FERRY_API FERRY_MUST_USE int ferry_receive(ferry *f, int rank, int32_t tag, void *buffer,
                                           size_t size_max, const ferry_track *track);

/* Progress in the background. */

/* Hands this rank to a thread that polls and sleeps as ferry_wait does, until
 * ferry_background_end: handlers, callbacks and tasks run there, one at a time as ever, while the
 * caller computes. The rule: between the two calls the program calls nothing else with `f` outside
 * handlers and callbacks (the thesis lets it start operations; here one thread at a time has a
 * rank, so that no call takes a lock), and what those touch, it does not touch without a lock of
 * its own; before and after, everything they did is seen. FERRY_ESTATE: in a handler, or begun
 * already. FERRY_ENOTSUP: in the simulator. FERRY_ESYSTEM: no thread. [app thread, not in handlers
 * | may block] progressive-messages.txt 5.1.4, 5.3.3. */
FERRY_API FERRY_MUST_USE int ferry_background_begin(ferry *f);

/* Takes the rank back: waits for the handler that runs, if one does, and ends the thread.
 * FERRY_ESTATE: not begun. [the thread that began | may block] */
FERRY_API int ferry_background_end(ferry *f);

#ifdef __cplusplus
}
#endif
#endif
