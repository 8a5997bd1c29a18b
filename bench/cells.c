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
    {.name = "handoff-64B",
     .kind = BENCH_REQUEST,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64,
     .parts = 2,
     .aims = {{"reference", BENCH_MORE_MAX, 0.1}}},
    {.name = "handoff-1KiB",
     .kind = BENCH_REQUEST,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 1 * KIB,
     .parts = 2,
     .aims = {{"reference", BENCH_MORE_MAX, 0.1}}},
    {.name = "handoff-64KiB",
     .kind = BENCH_REQUEST,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64 * KIB,
     .parts = 2,
     .aims = {{"reference", BENCH_MORE_MAX, 0.1}, {"*", BENCH_RATIO_MAX, 1}}},
    {.name = "handoff-1MiB",
     .kind = BENCH_REQUEST,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 1 * MIB,
     .parts = 2,
     .aims = {{"reference", BENCH_MORE_MAX, 0.1},
              {"openmpi", BENCH_RATIO_MAX, 0.1},
              {"mpich", BENCH_RATIO_MAX, 0.1},
              {"iceoryx", BENCH_RATIO_MAX, 1}}},
};

static const bench_case cases[] = {
    {.name = "handoff-64MiB",
     .kind = BENCH_REQUEST,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64 * MIB,
     .parts = 2,
     .aims = {{"reference", BENCH_MORE_MAX, 0.1}}},
    {.name = "handoff-1GiB",
     .kind = BENCH_REQUEST,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 1 * GIB,
     .parts = 2,
     .aims = {{"reference", BENCH_MORE_MAX, 0.1}}},
    {.name = "wake",
     .kind = BENCH_WAKE,
     .unit = BENCH_US,
     .ranks = 2,
     .parts = 1,
     .against = "futex",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.3}}},
    {.name = "pass-own",
     .kind = BENCH_LOCAL,
     .unit = BENCH_NS,
     .ranks = 1,
     .parts = 1,
     .against = "atomics",
     .aims = {{"reference", BENCH_OURS_MAX, 40}}},
    {.name = "mod-unshared",
     .kind = BENCH_LOOKUP,
     .unit = BENCH_NS,
     .ranks = 1,
     .parts = 1,
     .against = "load",
     .aims = {{"reference", BENCH_OURS_MAX, 5}}},
    {.name = "crowd-16",
     .kind = BENCH_RATE,
     .unit = BENCH_MPS,
     .ranks = 16,
     .parts = 1,
     .against = "mutex"},
    {.name = "fairness-16",
     .kind = BENCH_SHARES,
     .unit = BENCH_PERCENT,
     .ranks = 16,
     .parts = 1,
     .against = "mutex"},
};

int main(int argc, char **argv)
{
    const bench_group groups[] = {BENCH_GROUP(launchers, sent), BENCH_GROUP(alone, cases), {0}};
    return bench_compare_main(argc, argv, "cells", groups);
}
