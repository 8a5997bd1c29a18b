/* Check: a rank of a test program ends the job with a status that no error of Ferry's has when
 * something is not so. The exit of one rank would be a death, and a job that has said that it goes
 * on after deaths would end with 0. */
#ifndef FY_TEST_CHECK_H
#define FY_TEST_CHECK_H

#include <stdio.h>

#include <ferry/ferry.h>

#ifndef CHECK_STATUS
#define CHECK_STATUS 3
#endif

static inline void check(ferry *f, bool condition, const char *what)
{
    if (condition)
        return;
    char reason[512];
    (void)snprintf(reason, sizeof(reason), "%s (%s)", what, ferry_error_message(f));
    ferry_abort(f, CHECK_STATUS, reason);
}

#endif
