/* Goal: a group works on after a rank has joined and another has died at the same time: its ranks
 * count its calls alike, whichever of the two they heard of first. Method: ranks 0 to 2 have a
 * group, and rank 0 starts a rank. The fault plan kills rank 4 while a quiescence agrees on the new
 * rank, and stops rank 2 meanwhile. For the simulator: sim -n 5 -m 8 --faults
 * stop=2@85512ns:1000000ns,die=4@585512ns. */
#include <ferry/ferry.h>

#include "../support/check_at.h"
#include "../support/survive.h"

enum { MEMBERS = 3 };

static int rank_main(ferry *f, int argc, char **argv)
{
    ferry_collective barrier = FERRY_COLLECTIVE_DEFAULTS;
    int rank = ferry_rank(f), first;
    (void)argc, (void)argv;
    CHECK(f, survive_deaths(f) == 0);
    if (ferry_member_place(f, rank) >= 0)
        CHECK(f, ferry_group_split(f, NULL, rank < MEMBERS ? 0 : 1, 0, &barrier.group) == 0);
    if (rank == 0)
        CHECK(f, ferry_spawn(f, 1, NULL, &first) == 0);
    CHECK(f, survive_quiesce(f) == 0);
    ferry_compute(f, 3.0);
    (void)ferry_poll(f);
    CHECK(f, survive_quiesce(f) == 0);
    if (rank < MEMBERS)
        CHECK(f, ferry_collective_run(f, &barrier) == 0);
    CHECK(f, survive_quiesce(f) == 0);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
