/* Hand-off: passes one parcel between ranks 0 and 1, as cds.txt 7 measured it. The time does not
 * depend on the parcel's size, because nothing is copied.
 *
 *     ferry run -n 2 build/bench/papers/handoff [ROUNDS [BYTES]]
 */
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#include "common/parameters.h"

static void check(ferry *f, int error)
{
    if (error == 0)
        return;
    fprintf(stderr, "handoff: %s: %s\n", ferry_strerror(error), ferry_error_message(f));
    exit(1);
}

/* Each rank takes the parcel from its own cell and adds it to the other's. */
static double pass(ferry *f, size_t size_bytes, long rounds)
{
    const ferry_cell own = {ferry_rank(f), 0}, other = {1 - ferry_rank(f), 0};
    ferry_parcel parcel;
    if (ferry_rank(f) == 0) {
        check(f, ferry_parcel_create(f, size_bytes, &parcel, NULL));
        check(f, ferry_cell_enqueue(f, own, parcel, FERRY_GIVE, 0));
    }
    check(f, ferry_barrier(f));
    uint64_t start = ferry_now(f);
    for (long i = 0; i < rounds; i++) {
        check(f, ferry_cell_dequeue(f, own, &parcel, FERRY_FOREVER));
        check(f, ferry_cell_enqueue(f, other, parcel, FERRY_GIVE, FERRY_FOREVER));
    }
    double passed = (double)(ferry_now(f) - start);
    check(f, ferry_barrier(f));
    check(f, ferry_cell_clear(f, own));
    check(f, ferry_barrier(f));
    return passed / (double)(2 * rounds);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    long rounds = 100000, most = 1L << 30;
    const parameter table[] = {{"ROUNDS", "for each size", 1, 1e9, .whole = &rounds},
                               {"BYTES", "of the largest parcel", 64, 1L << 30, .whole = &most},
                               {0}};
    int status = parameters_read(f, argc, argv, "Two ranks pass a parcel to and fro.", table);
    if (status >= 0)
        return status;
    if (ferry_ranks(f) != 2) {
        if (ferry_rank(f) == 0)
            fprintf(stderr, "handoff: %d ranks: expected 2, as in ferry run -n 2 %s\n",
                    ferry_ranks(f), argv[0]);
        return 2;
    }
    pass(f, 64, rounds);
    for (size_t size = 64; size <= (size_t)most; size *= 8) {
        double ns = pass(f, size, rounds);
        if (ferry_rank(f) == 0)
            printf("%11zu bytes: %7.0f ns\n", size, ns);
    }
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
