/* Background: a thread of Ferry polls for the rank while the program computes.
 *
 * progressive-messages.txt 5.1.4. */
#ifndef FERRY_BACKGROUND_H
#define FERRY_BACKGROUND_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Hands this rank to a thread that polls and sleeps as ferry_wait does, until ferry_background_end.
 * Handlers, callbacks and tasks run there, one at a time, while the caller computes. Between the
 * two calls the program calls nothing else with `f` outside handlers and callbacks. It locks data
 * that it shares with them, by a lock of its own. FERRY_ESTATE: in a handler, or begun already.
 * FERRY_ENOTSUP: in the simulator. FERRY_ESYSTEM: no thread. [app thread, not in handlers | may
 * block] progressive-messages.txt 5.1.4, 5.3.3. */
FERRY_API FERRY_MUST_USE int ferry_background_begin(ferry *f);

/* Takes the rank back: waits for the handler that runs, if one does, and ends the thread.
 * FERRY_ESTATE: not begun. [the thread that began | may block] */
FERRY_API int ferry_background_end(ferry *f);

#ifdef __cplusplus
}
#endif
#endif
