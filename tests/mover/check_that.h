/* Check that: a rank of a test program aborts, and says where, when a condition does not hold. `f`
 * is the rank of the caller. */
#ifndef FY_TEST_CHECK_THAT_H
#define FY_TEST_CHECK_THAT_H

#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#define CHECK(condition) check_that(f, condition, #condition, __FILE__, __LINE__)

static inline void check_that(ferry *f, bool condition, const char *text, const char *file,
                              int line)
{
    if (condition)
        return;
    fprintf(stderr, "%s:%d: rank %d: CHECK failed: %s (%s)\n", file, line, ferry_rank(f), text,
            ferry_error_message(f));
    abort();
}

#endif
