/* Check: ends the program, and says why, if a call of Ferry's has failed. */
#ifndef COMMON_CHECK_H
#define COMMON_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

static inline void check(ferry *f, int error)
{
    if (error == 0)
        return;
    fprintf(stderr, "%s: rank %d: %s: %s\n", program_invocation_short_name, ferry_rank(f),
            ferry_strerror(error), ferry_error_message(f));
    exit(1);
}

#endif
