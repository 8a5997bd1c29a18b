/* Goal: ranks that join while the members of the job close harm nobody. One that goes on is told
 * that it comes too late, one that closes as well ends as the members do. Method: rank 0 starts
 * two ranks and returns, as the other members do, some of them later. The first new rank calls
 * ferry_quiesce, and the second one returns.
 *
 * Run as ferry run -n 3 -m 5 late SECONDS: rank 0 computes so long before it returns. */
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

enum { NEW_RANKS = 2 };

static int come(ferry *f)
{
    if (ferry_rank(f) % NEW_RANKS == 0)
        return 0;
    int error = ferry_quiesce(f);
    if (error == FERRY_EPEER && ferry_member_count(f) == 0)
        return 0;
    fprintf(stderr, "late: rank %d: %s, expected %s: %s\n", ferry_rank(f), ferry_strerror(error),
            ferry_strerror(FERRY_EPEER), ferry_error_message(f));
    return 1;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    int first = 0;
    if (ferry_member_count(f) == 0)
        return come(f);
    if (ferry_barrier(f) != 0)
        return 1;
    if (ferry_rank(f) == 0 && ferry_spawn(f, NEW_RANKS, NULL, &first) != 0)
        return 1;
    if (ferry_rank(f) == 0 && argc > 1)
        ferry_compute(f, atof(argv[1]));
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
