/* Check: a rank of a test program ends the job with a status that no error of Ferry's has when
 * something is not so. */
#ifndef FY_TEST_CHECK_H
#define FY_TEST_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

static inline void check(ferry *f, bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "rank %d: %s (%s)\n", ferry_rank(f), what, ferry_error_message(f));
    exit(3);
}

#endif
