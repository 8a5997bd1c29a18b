/* Goal: ranks that join while the members of the job close harm nobody. Those that go on are told
 * that they come too late, those that close as well end as the members do. Method: rank 0 starts
 * the new ranks and returns, as the other members do, some of them later. New ranks with odd
 * numbers, all or none call ferry_quiesce; the others return.
 *
 * Run as ferry run -n N -m M late odd|all|none SECONDS: rank 0 starts M - N ranks and computes so
 * long before it returns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

static int come(ferry *f, const char *which)
{
    bool goes_on =
        strcmp(which, "all") == 0 || (strcmp(which, "odd") == 0 && ferry_rank(f) % 2 == 1);
    int error = goes_on ? ferry_quiesce(f) : FERRY_EPEER;
    if (error == FERRY_EPEER && ferry_member_count(f) == 0)
        return 0;
    fprintf(stderr, "late: rank %d: %s, expected %s: %s\n", ferry_rank(f), ferry_strerror(error),
            ferry_strerror(FERRY_EPEER), ferry_error_message(f));
    return 1;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: late odd|all|none SECONDS\n");
        return 2;
    }
    int first = 0, members = ferry_member_count(f);
    if (members == 0)
        return come(f, argv[1]);
    if (ferry_barrier(f) != 0)
        return 1;
    if (ferry_rank(f) == 0 && ferry_spawn(f, ferry_ranks(f) - members, NULL, &first) != 0)
        return 1;
    if (ferry_rank(f) == 0)
        ferry_compute(f, atof(argv[2]));
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
