/* Background: a thread of Ferry polls for the rank while the program computes.
 *
 * progressive-messages.txt 5.1.4. */
#ifndef FERRY_BACKGROUND_H
#define FERRY_BACKGROUND_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts a thread that polls and sleeps for this rank, as ferry_wait does, until
 * ferry_background_end. Handlers, callbacks and tasks run on that thread, one at a time, while the
 * caller computes. Until the end, only handlers and callbacks may make calls with `f`. The program
 * protects data that it shares with them by a lock of its own. FERRY_ESTATE: in a handler, or begun
 * already. FERRY_ENOTSUP: in the simulator. FERRY_ESYSTEM: no thread. [app thread, not in handlers
 * | may block] progressive-messages.txt 5.1.4, 5.3.3. */
FERRY_API FERRY_MUST_USE int ferry_background_begin(ferry *f);

/* Waits for the handler that runs, if one does, and ends the thread. FERRY_ESTATE: there is no such
 * thread, or a handler on that thread calls it. [the thread that began | may block] */
FERRY_API int ferry_background_end(ferry *f);

#ifdef __cplusplus
}
#endif
#endif
