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

#include "base/shared.h"
#include "core/head.h"
#include "core/layer.h"

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

/* Adds a line to what a rank tells of itself. Text without room is left out. */
FY_SHARED void fy_why_line(fy_why *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* When the clock was last read for the account: a time for uses that need no precise one.
 * [application thread] */
static inline uint64_t fy_stamp(const ferry *f)
{
    return fy_head_of(f)->account.stamp_ns;
}

/* The seconds since a time of fy_stamp. [application thread] */
FY_SHARED double fy_why_age(const ferry *f, uint64_t since_ns);

/* Answers for the rank while a task runs, if somebody has asked (why.h). [helper thread, control
 * lock held] */
void fy_why_helper(ferry *f);

/* Adds the lines about what this rank waits for (core/why/waits.h). If the plug-in cannot be
 * opened, one line says so. [application thread] */
void fy_why_waits(ferry *f, fy_why *why);

#endif
