/* Why: what a rank tells about itself when somebody asks why the job does not go on.
 *
 * `ferry why`, the launcher on SIGUSR1, and a stalled ferry_quiesce ask through the port, which
 * wakes the rank; where the port cannot, a stalled ferry_quiesce asks by frames, and every rank
 * prints for itself. No signal reaches it: the thread that notices tells what it owns. A rank that
 * waits or polls tells all. While a task runs the helper thread tells what the balancing lock
 * guards. A rank that can do neither is seen from outside, by what it told the port it does. */
#ifndef FY_WHY_H
#define FY_WHY_H

#include "core/core.h"

struct fy_why {
    char text[FY_ANSWER_BYTES];
    size_t used;
};

/* Answers when somebody has asked. [application thread, in polls] */
void fy_why_look(ferry *f);

/* Prints, when a frame has asked. [application thread, in polls] */
void fy_why_tell(ferry *f);
fy_verdict fy_why_deliver(ferry *f, int source, const fy_frame *frame);

/* This rank waits and nothing has changed for long: asks all ranks, and has it printed.
 * [application thread, in polls] */
void fy_why_ask(ferry *f);

#endif
