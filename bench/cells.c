/* Cells: handing a parcel over, against the hand-off of a cache line and MPI's send of as many
 * bytes; what one process pays; waking; eight producers and eight consumers. docs/cell.md says what
 * each case is and where its bound comes from. */
#include "common/compare.h"

#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20, GIB = 1 << 30, MPI_BYTES_MAX = 4 * MIB };

/* Cells, the reference, and where the sizes allow it the MPIs. */
static const bench_launcher launchers[] = {
    {.peer = "ferry", .program = "peers/cells", .ranks_variable = "FERRY_RANKS"},
    {.peer = "limit",
     .program = "peers/cells",
     .ranks_variable = "FERRY_RANKS",
     .environment = {"BENCH_REFERENCE=1"}},
    {.peer = "openmpi",
     .program = "peers/openmpi",
     .prefix = {"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                "--mca", "pml", "ob1", "--mca", "btl", "self,vader"}},
    {.peer = "mpich", .program = "peers/mpich", .prefix = {"mpiexec.mpich"}},
};

/* The reference of a hand-off is two hand-offs of a cache line. */
static const bench_case cases[] = {
    {.name = "handoff-64B",
     .kind = BENCH_REQUEST,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64,
     .parts = 2,
     .aims = {{"limit", BENCH_MORE_MAX, 0.1}}},
    {.name = "handoff-1KiB",
     .kind = BENCH_REQUEST,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 1 * KIB,
     .parts = 2,
     .aims = {{"limit", BENCH_MORE_MAX, 0.1}}},
    {.name = "handoff-64KiB",
     .kind = BENCH_REQUEST,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64 * KIB,
     .parts = 2,
     .aims = {{"limit", BENCH_MORE_MAX, 0.1}, {"*", BENCH_RATIO_MAX, 1}}},
    {.name = "handoff-1MiB",
     .kind = BENCH_REQUEST,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 1 * MIB,
     .parts = 2,
     .aims = {{"limit", BENCH_MORE_MAX, 0.1}, {"*", BENCH_RATIO_MAX, 0.1}}},
    {.name = "handoff-64MiB",
     .kind = BENCH_REQUEST,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64 * MIB,
     .parts = 2,
     .aims = {{"limit", BENCH_MORE_MAX, 0.1}}},
    {.name = "handoff-1GiB",
     .kind = BENCH_REQUEST,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 1 * GIB,
     .parts = 2,
     .aims = {{"limit", BENCH_MORE_MAX, 0.1}}},
    {.name = "wake",
     .kind = BENCH_WAKE,
     .unit = BENCH_US,
     .ranks = 2,
     .parts = 1,
     .against = "futex",
     .aims = {{"limit", BENCH_RATIO_MAX, 1.3}}},
    {.name = "pass-own",
     .kind = BENCH_LOCAL,
     .unit = BENCH_NS,
     .ranks = 1,
     .parts = 1,
     .against = "atomics",
     .aims = {{"limit", BENCH_OURS_MAX, 40}}},
    {.name = "mod-unshared",
     .kind = BENCH_LOOKUP,
     .unit = BENCH_NS,
     .ranks = 1,
     .parts = 1,
     .against = "load",
     .aims = {{"limit", BENCH_OURS_MAX, 5}}},
    {.name = "crowd-16", .kind = BENCH_RATE, .unit = BENCH_MPS, .ranks = 16, .parts = 1},
};

enum { CASES = sizeof cases / sizeof *cases, LAUNCHERS = sizeof launchers / sizeof *launchers };

static const char *name_of(int index)
{
    return index < CASES ? cases[index].name : NULL;
}

/* Whether MPI has a counterpart, and buffers for it. */
static bool has_peers(const bench_case *which)
{
    return which->kind == BENCH_REQUEST && which->size_bytes <= MPI_BYTES_MAX;
}

/* Runs the cases that have peers, or those that have not. */
static int run(const bench_options *options, bool peers)
{
    bench_compare *compare =
        bench_compare_create(options, "cells", launchers, peers ? LAUNCHERS : 2);
    if (!compare)
        return 1;
    for (int ranks = 1; ranks <= BENCH_RANKS_MAX; ranks++)
        for (size_t i = 0; i < CASES; i++)
            if (cases[i].ranks == ranks && has_peers(&cases[i]) == peers &&
                bench_wanted(options, cases[i].name))
                bench_compare_case(compare, &cases[i]);
    bench_compare_destroy(compare);
    return 0;
}

int main(int argc, char **argv)
{
    bench_options options;
    int status = bench_options_read(argc, argv, "cells", name_of, 41, 9, &options);
    if (status >= 0)
        return status;
    bench_report_head(&options, "cells");
    return run(&options, true) || run(&options, false);
}
