/* Outgoing: frames that leave this rank on the data lane, or wait for room. Also the limit of all
 * that waits here, and data that are lent instead of copied. */
#ifndef FY_OUTGOING_H
#define FY_OUTGOING_H

#include "base/shared.h"
#include "core/head.h"

/* Sends a frame from the application thread. Never blocks and keeps order: without room the frame
 * is copied to the peer's backlog, which polls send. FERRY_EPEER, FERRY_ENOMEM. */
FY_SHARED int fy_send(ferry *f, fy_lane lane, int rank, const fy_frame *frame);

/* As fy_send on the control lane, but keeps nothing, and passes by the frames that wait for room.
 * FERRY_EAGAIN: there is none now. */
int fy_send_now(ferry *f, int rank, const fy_frame *frame);

/* The count to which the layers above add the bytes that they keep. `waiting_bytes` limits all that
 * waits on this rank, tasks included. */
size_t *fy_kept_bytes(ferry *f);

/* For a call in a handler that would keep its message here. Returns 0, or FERRY_EAGAIN with a
 * reason if that limit is passed. [application thread] */
int fy_check_room(ferry *f, const char *call);

/* As fy_check_room, in handlers or not. `why` ends the reason. */
int fy_check_kept(ferry *f, const char *call, const char *why);

/* The queues of a peer: by lane, and FY_PACED. */
enum { FY_PACED = FY_LANES, FY_BACKLOGS };

/* Whether frames for `rank` wait in its queue of this kind. */
bool fy_has_backlog(const ferry *f, int kind, int rank);

/* Bytes that wait for room on the data lane of `rank`. */
size_t fy_backlog_bytes(const ferry *f, int rank);

/* As fy_send in the data lane. But outside handlers it polls until there is room. In handlers a
 * frame that would have to wait is checked as by fy_check_room, for `call`. If `call` is NULL it is
 * not checked, because earlier frames of the operation have left. */
int fy_send_paced(ferry *f, int rank, const fy_frame *frame, const char *call);

/* As fy_send_paced. But outside handlers large data that would be copied are left in place, and the
 * call polls until the port has read them. That is no sooner than the target takes them up. */
int fy_send_lent(ferry *f, int rank, const fy_frame *frame, const char *call);

/* A layer may pace frames of its own in the data lane. They wait for its permission, and after what
 * waits for room; no other frame waits for them. One layer does so: its `open` sets fy_head.pacing.
 */
typedef struct fy_pacing {
    bool (*withheld)(ferry *f);                             /* whether none of them may leave now */
    int (*join)(ferry *f, int rank, const fy_frame *frame); /* it will wait, for `rank`. ENOMEM */
    void (*leave)(ferry *f, const fy_frame *frame);         /* it waits no longer */
} fy_pacing;

/* Has a copy of a frame wait as a paced one. FERRY_ENOMEM. */
int fy_paced_keep(ferry *f, int rank, const fy_frame *frame);

/* Polls, runs tasks, and sleeps, while `waits` says so: a call cannot send to `rank` yet. */
void fy_paced_wait(ferry *f, int rank, bool (*waits)(ferry *f, int rank));

/* Counts a message as sent since the control lane was looked at. */
static inline void fy_unseen_count(ferry *f, size_t size_bytes)
{
    enum { MESSAGE_BYTES = 256 };
    ((fy_head *)(void *)f)->unseen_bytes += MESSAGE_BYTES + size_bytes;
}

/* As fy_send in the data lane, but a frame that would have to wait is checked, as by fy_send_paced.
 */
static inline int fy_send_checked(ferry *f, int rank, const fy_frame *frame, const char *call)
{
    return fy_in_handler(f) ? fy_send_paced(f, rank, frame, call)
                            : fy_send(f, FY_DATA, rank, frame);
}

/* Stands in a frame instead of the data that are lent. */
typedef struct fy_loan {
    uint64_t address, size_bytes, kind;
} fy_loan;

/* Whether data of an operation are lent to `rank` rather than copied (lend.c): only where its
 * target tells its end after it has read them. */
bool fy_may_lend(const ferry *f, int rank, const void *data, size_t size_bytes, uint32_t op);

/* Makes the operation report submitted when its target has told its end. Turns the frame into one
 * that names its data, by `loan`. */
void fy_lend(ferry *f, fy_frame *frame, fy_loan *loan);

#endif
