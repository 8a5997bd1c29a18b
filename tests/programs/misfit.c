/* Goal: if the size of a piece differs between its two ranks, every rank learns of it, also a rank
 * whose call had returned 0 by then. Method: rank 1 takes its piece of ferry_gatherv or
 * ferry_scatterv, the argument, for 8 bytes, and rank 0 for 4. On each of them the call must fail,
 * or the next ferry_quiesce. */
#include <string.h>

#include "../support/check.h"

enum { RANKS_MAX = 16 };

static int run(ferry *f, int argc, char **argv)
{
    size_t sizes[RANKS_MAX];
    char in[RANKS_MAX * 8] = {0}, out[RANKS_MAX * 8];
    size_t own = ferry_rank(f) == 1 ? 8 : 4;
    check(f, argc == 2 && ferry_ranks(f) <= RANKS_MAX, "usage");
    for (int i = 0; i < RANKS_MAX; i++)
        sizes[i] = 4;
    bool gathers = strcmp(argv[1], "gatherv") == 0;
    const char *expected = gathers ? "rank 1 sends 8 bytes to rank 0, which expects 4"
                                   : "rank 0 sends 4 bytes to rank 1, which expects 8";
    int error = gathers ? ferry_gatherv(f, 0, in, own, out, sizes)
                        : ferry_scatterv(f, 0, in, sizes, out, own);
    bool told = error != 0;
    if (!told)
        error = ferry_quiesce(f);
    check(f, error == FERRY_EINVAL, "neither the call nor ferry_quiesce tells");
    check(f, strstr(ferry_error_message(f), expected) != NULL, "another text");
    check(f, !told || ferry_quiesce(f) == 0, "the rank that was told cannot go on");
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
