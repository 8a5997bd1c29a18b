/* Why: the report of a rank about itself, when another process asks why the job makes no progress.
 *
 * `ferry why`, the launcher on SIGUSR1, and a stalled ferry_quiesce ask through the port, which
 * wakes the rank. If the port cannot do that, a stalled ferry_quiesce asks by frames, and every
 * rank prints its own report. No signal reaches the rank: the thread that notices the query reports
 * the data that it owns. A rank that waits or polls reports everything. While a task runs, the
 * helper thread reports the data that the balancing lock guards. A rank that can do neither is seen
 * from outside, by the activity that it has reported to the port. */
#ifndef FY_WHY_H
#define FY_WHY_H

#include "core/core.h"

struct fy_why {
    char text[FY_ANSWER_BYTES];
    size_t used;
};

/* Answers a query. [application thread, in polls] */
void fy_why_look(ferry *f);

/* Prints, when a frame has asked. [application thread, in polls] */
void fy_why_tell(ferry *f);
fy_verdict fy_why_deliver(ferry *f, int source, const fy_frame *frame);

/* This rank waits and nothing has changed for long: asks all ranks, and has their reports printed.
 * [application thread, in polls] */
void fy_why_ask(ferry *f);

#endif
