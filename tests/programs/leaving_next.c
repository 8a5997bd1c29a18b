/* Goal: a rank may leave when its part in a collective is done, though others come to that call
 * after it has gone. Method: in each round all members make a call that the rank which leaves after
 * it can finish before others begin it: leaving_next broadcast | gather. Run with 3 ranks or more.
 */
#include <string.h>

#include <ferry/collective.h>

#include "../support/check.h"

enum { RANKS_MAX = 64 };

static int run(ferry *f, int argc, char **argv)
{
    int ranks = ferry_ranks(f), self = ferry_rank(f), told = 7, all[RANKS_MAX];
    check(f, argc == 2 && ranks <= RANKS_MAX && ferry_barrier(f) == 0, "begin");
    for (int leaver = 1; leaver < ranks - 1; leaver++) {
        int error = strcmp(argv[1], "gather") == 0 ? ferry_gather(f, 0, &self, sizeof(self), all)
                                                   : ferry_broadcast(f, 0, &told, sizeof(told));
        check(f, error == 0, argv[1]);
        if (self == leaver) {
            check(f, ferry_leave(f) == 0, "leave");
            return 0;
        }
        check(f, ferry_quiesce(f) == 0, "quiesce");
        check(f, ferry_member_count(f) == ranks - leaver, "members are missing");
    }
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
