/* Oracle: what programs for the simulator share that hold the truth outside the ranks and end the
 * job when it is not kept. */
#ifndef FY_TEST_ORACLE_H
#define FY_TEST_ORACLE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#include "../support/random.h"

/* Exit statuses of the job: a promise was broken; memory ran out, where that may be. */
enum { WRONG_STATUS = 3, LACK_STATUS = 4 };

static inline _Noreturn void wrong(ferry *f, const char *what, uint64_t a, uint64_t b)
{
    fprintf(stderr, "oracle: rank %d at %" PRIu64 " ns: %s: %" PRIu64 ", %" PRIu64 "\n",
            ferry_rank(f), ferry_now(f), what, a, b);
    exit(WRONG_STATUS);
}

static inline void must(ferry *f, int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "oracle: rank %d at %" PRIu64 " ns: %s: %s: %s\n", ferry_rank(f), ferry_now(f),
            what, ferry_strerror(error), ferry_error_message(f));
    exit(error == FERRY_ENOMEM ? LACK_STATUS : WRONG_STATUS);
}

/* Where draws of a rank begin: others for each rank and each seed of the simulator. */
static inline uint64_t first_random(int rank)
{
    const char *seed = getenv("FERRY_SIM_SEED");
    uint64_t number = seed == NULL ? 1 : strtoull(seed, NULL, 10) * 2 + 1;
    return (number * 1000003 + (uint64_t)rank) * 0x9e3779b97f4a7c15u + 1;
}

#endif
