/* Goal: after a death ranks may make different calls, because only some know of it. They get
 * FERRY_EPEER, and never FERRY_EINVAL. Method: all ranks repeat an allgather. After the first
 * FERRY_EPEER a rank makes a barrier, as ferry_window_free does, and then calls ferry_quiesce. The
 * simulator lets a rank die while ranks are in different calls. Argument: the number of calls. */
#include <stdlib.h>

#include "../support/check.h"
#include "../support/survive.h"

enum { RANKS_MAX = 32 };

static int run(ferry *f, int argc, char **argv)
{
    int own = ferry_rank(f), all[RANKS_MAX], error;
    long calls = argc > 1 ? strtol(argv[1], NULL, 10) : 60;
    check(f, ferry_ranks(f) <= RANKS_MAX, "at most 32 ranks");
    check(f, survive_deaths(f) == 0, "watch");
    error = ferry_quiesce(f);
    for (long i = 0; i < calls && error == 0; i++)
        error = ferry_allgather(f, &own, sizeof own, all);
    if (error == FERRY_EPEER)
        error = ferry_barrier(f);
    while (error == FERRY_EPEER)
        error = ferry_quiesce(f);
    check(f, error == 0, "neither 0 nor FERRY_EPEER");
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
