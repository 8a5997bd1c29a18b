/* Collectives, against those of MPI. docs/performance.md has the bounds. */
#include "common/compare.h"
#include "common/launchers.h"

enum { KIB = 1 << 10 };

static const bench_launcher launchers[] = {
    {.peer = "ferry", .program = "peers/collectives", .ranks_variable = "FERRY_RANKS"},
    {.peer = "openmpi",
     .program = "peers/collectives_openmpi",
     .prefix = BENCH_OPEN_MPI,
     .oversubscribed = {"--mca", "mpi_yield_when_idle", "1"}},
    {.peer = "mpich",
     .program = "peers/collectives_mpich",
     .prefix = BENCH_MPICH,
     .oversubscribed = {"-genv", "MPIR_CVAR_POLLS_BEFORE_YIELD", "1"}},
};

#define ROW(case_name, what, count, bytes)                                                         \
    {                                                                                              \
        .name = (case_name), .kind = (what), .unit = BENCH_US, .ranks = (count),                   \
        .size_bytes = (bytes), .parts = 1, .aims = {{"*", BENCH_RATIO_MAX, 1}},                    \
    }

static const bench_case cases[] = {
    ROW("broadcast-2-8B", BENCH_BROADCAST, 2, 8),
    ROW("broadcast-2-64KiB", BENCH_BROADCAST, 2, 64 * KIB),
    ROW("broadcast-2-1MiB", BENCH_BROADCAST, 2, 1024 * KIB),
    ROW("allreduce-2-8B", BENCH_ALLREDUCE, 2, 8),
    ROW("allreduce-2-64KiB", BENCH_ALLREDUCE, 2, 64 * KIB),
    ROW("allreduce-2-1MiB", BENCH_ALLREDUCE, 2, 1024 * KIB),
    ROW("alltoall-2-8B", BENCH_ALLTOALL, 2, 8),
    ROW("alltoall-2-64KiB", BENCH_ALLTOALL, 2, 64 * KIB),
    ROW("gatherv-2-8B", BENCH_GATHERV, 2, 8),
    ROW("gatherv-2-64KiB", BENCH_GATHERV, 2, 64 * KIB),
    ROW("reduce-scatter-2-8B", BENCH_REDUCE_SCATTER, 2, 8),
    ROW("reduce-scatter-2-64KiB", BENCH_REDUCE_SCATTER, 2, 64 * KIB),
    ROW("broadcast-4-64KiB", BENCH_BROADCAST, 4, 64 * KIB),
    ROW("allreduce-4-64KiB", BENCH_ALLREDUCE, 4, 64 * KIB),
    ROW("alltoall-4-64KiB", BENCH_ALLTOALL, 4, 64 * KIB),
};

int main(int argc, char **argv)
{
    const bench_group groups[] = {BENCH_GROUP(launchers, cases), {0}};
    return bench_compare_main(argc, argv, "collectives", groups);
}
