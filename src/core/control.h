/* Control: the control lane, and the lock of the two threads that may poll it.
 *
 * The helper thread enters core only through fy_send_control and fy_control_poll, and so through
 * the kinds of the control lane that say so where they are defined. */
#ifndef FY_CONTROL_H
#define FY_CONTROL_H

#include "core/layer.h"

/* Sends a control frame from the helper thread. Waits for room, which the control lane always gets.
 * While the helper serves the control lane it polls the lane meanwhile, because two helpers may
 * wait for each other. `block`: the data are a block of the port's alloc, and are handed over. The
 * application thread may call it too, with `thread` FY_APP. */
int fy_send_control(ferry *f, fy_thread thread, int rank, const fy_frame *frame, bool block);

/* Polls the control lane. The caller holds the balancing lock when a helper exists. Returns frames
 * taken. */
int fy_control_poll(ferry *f);

/* Takes what has come in the control lane. [application thread] */
int fy_control_look(ferry *f);

/* The lock that says who polls the control lane; taken by poll and by the helper. */
void fy_control_lock(ferry *f);
void fy_control_unlock(ferry *f);

/* Says whether a helper exists: true before it is started, false after it has been joined. Without
 * one, polls do not take the lock. [application thread] */
void fy_control_share(ferry *f, bool shared);

/* Says how the helper polls the control lane from now on; NULL: it does not. [application thread,
 * lock held] */
void fy_control_serve(ferry *f, void (*poll)(ferry *f));
bool fy_control_is_shared(const ferry *f);

#endif
