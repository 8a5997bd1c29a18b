/* Crash: the report that is printed when a rank's process crashes, or calls exit too early.
 *
 * A thread that runs a rank gets a signal stack. At the start of the stack are the data that the
 * signal handler needs. So there is no global variable, and a stack overflow can be reported too.
 * The handler prints which rank crashed, what it did and a backtrace. Then the signal ends the
 * process as it would without the handler. If the program has its own handler for a signal, it
 * keeps that. */
#ifndef FY_CRASH_H
#define FY_CRASH_H

#include <signal.h>
#include <stddef.h>

#include "base/shared.h"

typedef struct fy_crash fy_crash;

/* Writes which rank runs on the calling thread and what it does, such as "rank 2, in a barrier".
 * `address` is the one of the signal; NULL: the process called exit. It may end the process. Called
 * in a signal handler: without locks or memory. */
typedef void fy_crash_fn(void *arg, const void *address, char *out, size_t size);

/* Watches the calling thread, until fy_crash_unwatch is called with the result. Keeps `arg` until
 * then. NULL: no memory; nothing is watched. */
FY_SHARED fy_crash *fy_crash_watch(fy_crash_fn *describe, void *arg);
FY_SHARED void fy_crash_unwatch(fy_crash *crash);

/* The signal stack of the calling thread, if that is watched. A thread that runs the rank in its
 * place passes it to sigaltstack, and is then watched too. If both crash at the same time, the
 * second crash ends the process without a report. `ss_flags` is SS_DISABLE: nothing is watched. */
stack_t fy_crash_stack(void);

#endif
