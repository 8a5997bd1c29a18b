/* Goal: ranks that disagree about a collective can go on. Method: one rank, the argument, misses a
 * call, which fails on the others. It learns of that in ferry_quiesce, at once or in none. Then all
 * ranks make the same calls, and these succeed. */
#include <stdlib.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"

static int rank_main(ferry *f, int argc, char **argv)
{
    CHECK(f, argc == 2);
    bool misses = ferry_rank(f) == atoi(argv[1]);
    int32_t sum = 1;
    for (int round = 0; round < 2; round++) {
        if (!misses)
            CHECK(f, ferry_allreduce(f, FERRY_INT32, FERRY_SUM, &sum, &sum, 1) == FERRY_EINVAL);
        int error = ferry_quiesce(f);
        CHECK(f, error == 0 || (misses && error == FERRY_EINVAL));
        CHECK(f, error == 0 || ferry_quiesce(f) == 0);
        sum = 1;
        CHECK(f, ferry_allreduce(f, FERRY_INT32, FERRY_SUM, &sum, &sum, 1) == 0);
        CHECK(f, sum == ferry_ranks(f));
    }
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
