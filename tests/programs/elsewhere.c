/* Goal: a rank that waits in a collective of a group is told if another rank of the group waits
 * elsewhere for all ranks, on every port. Method: rank 0 makes a barrier of a group. The other
 * ranks do what the argument says: quiesce, return (from the main function) or all (a barrier of
 * all ranks). The group has the ranks 0 and 1, or with a second argument all ranks. Ranks that are
 * told end with status 5. */
#include <string.h>

#include "../support/check.h"

enum { TOLD = 5 };

static int tell(ferry *f, int error)
{
    check(f, error == FERRY_EINVAL || error == FERRY_EPEER, "another error");
    if (error == FERRY_EINVAL)
        fprintf(stderr, "told: %s\n", ferry_error_message(f));
    return TOLD;
}

static int run(ferry *f, int argc, char **argv)
{
    ferry_group *group;
    ferry_collective barrier = FERRY_COLLECTIVE_DEFAULTS;
    check(f, argc >= 2, "usage");
    check(f, ferry_group_split(f, NULL, argc > 2 || ferry_rank(f) < 2 ? 0 : 1, 0, &group) == 0,
          "split");
    barrier.group = group;
    if (ferry_rank(f) == 0)
        return tell(f, ferry_collective_run(f, &barrier));
    if (strcmp(argv[1], "quiesce") == 0)
        return tell(f, ferry_quiesce(f));
    return strcmp(argv[1], "all") == 0 ? tell(f, ferry_barrier(f)) : 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
