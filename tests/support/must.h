/* Must: a test of processes aborts, with the reason, when something is not so. */
#ifndef FY_TEST_MUST_H
#define FY_TEST_MUST_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

static inline void must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "process %d: %s: %s (%s)\n", (int)getpid(), what, strerror(errno),
            fy_error_text());
    abort();
}

#endif
