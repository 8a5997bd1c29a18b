/* Failed: a rank of a test program goes on when a call fails, and counts. */
#ifndef FY_TEST_FAILED_H
#define FY_TEST_FAILED_H

#include <stdio.h>

#include <ferry/ferry.h>

/* Whether a call failed, with a line that says why. */
static inline bool failed(ferry *f, int error)
{
    if (error >= 0)
        return false;
    fprintf(stderr, "rank %d: %s\n", ferry_rank(f), ferry_error_message(f));
    return true;
}

#endif
