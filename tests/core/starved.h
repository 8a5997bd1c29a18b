/* Starved: sessions of two ranks, driven by one thread, in which one allocation fails. Needs
 * test_ranks and test_failing. */
#ifndef FY_TEST_STARVED_H
#define FY_TEST_STARVED_H

#include <ferry/ferry.h>

/* One session: sets up two ranks that have just been opened, with calls that may fail, and has them
 * work. Everything that the ranks refer to lives until the next session begins. */
typedef void starved_session(ferry *f[2]);

/* Runs the session under `scheduler` with no allocation failing, then with the first, second, ...
 * failing once, until one needs fewer: more than `allocations_min`. Where a rank cannot be opened
 * for it, there is no session. */
void starve(const char *scheduler, starved_session *session, long allocations_min);

/* Polls both until neither has anything to do. */
void settle_both(ferry *f[2]);

#endif
