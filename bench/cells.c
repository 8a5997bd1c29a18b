/* Cells: handing a parcel over, against the hand-off of a cache line and MPI's send of as many
 * bytes; what one process pays; waking; eight producers and eight consumers. docs/cell.md says what
 * each case is and where its bound comes from. */
#include "common/compare.h"
#include "common/launchers.h"

enum { KIB = 1 << 10, MIB = 1 << 20, GIB = 1 << 30 };

#define CELLS                                                                                      \
    {                                                                                              \
        .peer = "ferry", .program = "peers/cells", .ranks_variable = "FERRY_RANKS",                \
    }
#define REFERENCE                                                                                  \
    {                                                                                              \
        .peer = "reference", .program = "peers/cells", .ranks_variable = "FERRY_RANKS",            \
        .environment = {"BENCH_REFERENCE=1"},                                                      \
    }

/* Where MPI has a counterpart, and buffers for it. */
static const bench_launcher launchers[] = {
    CELLS,
    REFERENCE,
    {.peer = "openmpi", .program = "peers/openmpi", .prefix = BENCH_OPEN_MPI},
    {.peer = "mpich", .program = "peers/mpich", .prefix = BENCH_MPICH},
    {.peer = "iceoryx", .program = "peers/iceoryx", .ranks_variable = "BENCH_RANKS"},
};

static const bench_launcher alone[] = {CELLS, REFERENCE};

/* The reference of a hand-off is two hand-offs of a cache line. */
static const bench_case sent[] = {
    {"handoff-64B", BENCH_REQUEST, BENCH_US, 2, 64, 2,
     .aims = {{"reference", BENCH_MORE_MAX, 0.1}}},
    {"handoff-1KiB", BENCH_REQUEST, BENCH_US, 2, 1 * KIB, 2,
     .aims = {{"reference", BENCH_MORE_MAX, 0.1}}},
    {"handoff-64KiB", BENCH_REQUEST, BENCH_US, 2, 64 * KIB, 2,
     .aims = {{"reference", BENCH_MORE_MAX, 0.1}, {"*", BENCH_RATIO_MAX, 1}}},
    {"handoff-1MiB", BENCH_REQUEST, BENCH_US, 2, 1 * MIB, 2,
     .aims = {{"reference", BENCH_MORE_MAX, 0.1},
              {"openmpi", BENCH_RATIO_MAX, 0.1},
              {"mpich", BENCH_RATIO_MAX, 0.1},
              {"iceoryx", BENCH_RATIO_MAX, 1}}},
};

static const bench_case cases[] = {
    {"handoff-64MiB", BENCH_REQUEST, BENCH_US, 2, 64 * MIB, 2,
     .aims = {{"reference", BENCH_MORE_MAX, 0.1}}},
    {"handoff-1GiB", BENCH_REQUEST, BENCH_US, 2, 1 * GIB, 2,
     .aims = {{"reference", BENCH_MORE_MAX, 0.1}}},
    {"wake", BENCH_WAKE, BENCH_US, 2, 0, 1, .against = "futex",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.3}}},
    {"pass-own", BENCH_LOCAL, BENCH_NS, 1, 0, 1, .against = "atomics",
     .aims = {{"reference", BENCH_OURS_MAX, 40}}},
    {"mod-unshared", BENCH_LOOKUP, BENCH_NS, 1, 0, 1, .against = "load",
     .aims = {{"reference", BENCH_OURS_MAX, 5}}},
    {"crowd-16", BENCH_RATE, BENCH_MPS, 16, 0, 1, .against = "mutex"},
    {"fairness-16", BENCH_SHARES, BENCH_PERCENT, 16, 0, 1, .against = "mutex"},
};

int main(int argc, char **argv)
{
    const bench_group groups[] = {BENCH_GROUP(launchers, sent), BENCH_GROUP(alone, cases), {0}};
    return bench_compare_main(argc, argv, "cells", groups);
}
