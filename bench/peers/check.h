/* Check: ends the team, and says why, if a call of Ferry's has failed. */
#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

static inline void check(ferry *f, int error)
{
    if (error >= 0)
        return;
    fprintf(stderr, "bench: rank %d: %s: %s\n", ferry_rank(f), ferry_strerror(error),
            ferry_error_message(f));
    exit(1);
}

#endif
