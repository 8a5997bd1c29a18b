/* Operation: operations as the layers that carry them out see them.
 *
 * fy_op_start makes a record from `track` (0 when it is NULL) for a frame's `op` field; the
 * target's layer answers with fy_op_end_remote; local ends use fy_op_end. Each started operation
 * ends once, in a poll. */
#ifndef FY_OPERATION_H
#define FY_OPERATION_H

#include <ferry/core.h>

#include "base/shared.h"
#include "port/port.h"

FY_SHARED int fy_op_start(ferry *f, const ferry_track *track, int rank, int tag, size_t size_bytes,
                          uint32_t *op);
FY_SHARED void fy_op_submitted(ferry *f, uint32_t op);

/* Whether the program learns of the end of the operation that `track` describes. If not, its target
 * need not tell the end: the operation ends when it has been submitted. progressive-messages.txt
 * 5.2. */
static inline bool fy_track_asks(const ferry_track *track)
{
    return track->size != sizeof(*track) || track->completed != NULL || track->failed != NULL ||
           track->timed_out != NULL || track->op != NULL;
}

FY_SHARED void fy_op_end(ferry *f, uint32_t op, int error);
/* As fy_op_end. The rank's last error text is the reason. */
FY_SHARED void fy_op_end_explained(ferry *f, uint32_t op, int error);
/* Removes an operation whose call fails. Nothing is reported of it, whatever happens to its frames.
 */
FY_SHARED void fy_op_drop(ferry *f, uint32_t op);
/* Says whether the call that starts it polls. If so, its callbacks wait until that call returns.
 * Returns the previous value. fy_send_paced says so itself for the frame's `op`. */
bool fy_op_hold(ferry *f, uint32_t op, bool held);
bool fy_op_is_pending(const ferry *f, uint32_t op);
/* Sends a frame for which another rank's operation waits. With the memory of fy_op_end_reserve it
 * does not fail. */
FY_SHARED void fy_op_tell(ferry *f, int rank, const fy_frame *frame);
void fy_op_end_remote(ferry *f, int rank, uint32_t op, int error);

/* In an operation's name: it ends when its target takes it up. */
#define FY_OP_ON_ARRIVAL 0x80000000u

/* The other values of a receipt. */
typedef struct fy_op_about {
    ferry_handler handler;
    ferry_object object;
    void *local_address;
    uint64_t remote_address;
} fy_op_about;
FY_SHARED void fy_op_describe(ferry *f, uint32_t op, const fy_op_about *about);

/* `gone` is called when a pending operation is cancelled, times out or loses its peer. Its layer
 * then frees `arg` and does not end the operation any more. fy_op_owned gives `arg` while the
 * operation is pending with this same `gone`, otherwise NULL. */
typedef void fy_op_gone_fn(ferry *f, void *arg, uint32_t op, int error);
FY_SHARED void fy_op_own(ferry *f, uint32_t op, fy_op_gone_fn *gone, void *arg);
void *fy_op_owned(const ferry *f, uint32_t op, fy_op_gone_fn *gone);

/* ferry_quiesce does not wait for this operation: the program of another rank may do its part
 * later. */
FY_SHARED void fy_op_aside(ferry *f, uint32_t op);

/* Closing does not wait either: the program of another rank may never do its part. */
FY_SHARED void fy_op_lazy(ferry *f, uint32_t op);

/* A receive has matched its message. */
void fy_op_matched(ferry *f, uint32_t op, int rank, int tag, size_t size_bytes);

/* Ends with FERRY_ETOOLONG: the receive allowed `size_max` bytes. */
void fy_op_too_long(ferry *f, uint32_t op, size_t size_max);
void fy_op_too_long_remote(ferry *f, int rank, uint32_t op, size_t size_max);

/* The message of `op`, an operation of `rank`, was forwarded to `new_rank`, which its object
 * reached with its `movement`-th move. Both the rank that forwards it (`giver`) and the rank that
 * gets it say so. Until `new_rank` has said so, the operation fails if either of them dies.
 * Afterwards it fails if `new_rank` dies. */
void fy_op_moved_remote(ferry *f, int rank, uint32_t op, int new_rank, uint32_t movement);

/* Whether there is memory for one call each of fy_op_end_remote and fy_op_moved_remote, if nothing
 * else is sent before. If there is none, a kind answers FY_LEAVE, and a later poll asks it again.
 */
FY_SHARED bool fy_op_end_reserve(ferry *f);

/* Keeps the memory for one end while application code sends, between the two calls. The next end
 * that is told then gets it. NULL: there is none, unless fy_op_end_reserve has just said that there
 * is. */
void *fy_op_end_hold(ferry *f);
void fy_op_end_release(ferry *f, void *held);

#endif
