/* Movers: exchanges of ghost cells, redistribution and transposition, against plain copies and
 * against MPI by hand, packed and with derived datatypes; and whole programs that differ in their
 * communication alone. docs/lab/movers.md says what each case
 * is and where its bound comes from. */
#include "common/compare.h"
#include "common/launchers.h"

/* Ferry first. The reference copies as many bytes with the same strides and waits for nobody. */
static const bench_launcher launchers[] = {
    {.peer = "ferry",
     .program = "peers/mover",
     .ranks_variable = "FERRY_RANKS",
     .environment = {"OPENBLAS_NUM_THREADS=1"}},
    {.peer = "reference", .program = "peers/mover_limit", .ranks_variable = "BENCH_RANKS"},
    {.peer = "openmpi",
     .program = "peers/mover_openmpi",
     .prefix = BENCH_OPEN_MPI,
     .environment = {"OPENBLAS_NUM_THREADS=1"}},
    {.peer = "mpich",
     .program = "peers/mover_mpich",
     .prefix = BENCH_MPICH,
     .oversubscribed = {"-genv", "MPIR_CVAR_POLLS_BEFORE_YIELD", "1"},
     .environment = {"OPENBLAS_NUM_THREADS=1"}},
    {.peer = "openmpi-types",
     .program = "peers/mover_openmpi",
     .prefix = BENCH_OPEN_MPI,
     .environment = {"BENCH_VARIANT=types"}},
    {.peer = "mpich-types",
     .program = "peers/mover_mpich",
     .prefix = BENCH_MPICH,
     .oversubscribed = {"-genv", "MPIR_CVAR_POLLS_BEFORE_YIELD", "1"},
     .environment = {"BENCH_VARIANT=types"}},
};

static const bench_case cases[] = {
    {"halo-16", BENCH_HALO, BENCH_US, 2, 16, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"halo-32", BENCH_HALO, BENCH_US, 2, 32, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"halo-64", BENCH_HALO, BENCH_US, 2, 64, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"halo-128", BENCH_HALO, BENCH_US, 2, 128, 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}, {"reference", BENCH_RATIO_MAX, 1.2}}},
    {"halo-256", BENCH_HALO, BENCH_US, 2, 256, 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}, {"reference", BENCH_RATIO_MAX, 1.2}}},
    {"halo-16x8", BENCH_HALO_8, BENCH_US, 2, 16, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"halo-32x8", BENCH_HALO_8, BENCH_US, 2, 32, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"halo-64x8", BENCH_HALO_8, BENCH_US, 2, 64, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"halo-128x8", BENCH_HALO_8, BENCH_US, 2, 128, 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}, {"reference", BENCH_RATIO_MAX, 1.2}}},
    {"transpose-32", BENCH_TRANSPOSE, BENCH_GBPS, 2, 262144, 1,
     .aims = {{"*", BENCH_RATIO_MIN, 1.5}}},
    {"transpose-64", BENCH_TRANSPOSE, BENCH_GBPS, 2, 2097152, 1,
     .aims = {{"*", BENCH_RATIO_MIN, 1.5}}},
    {"transpose-128", BENCH_TRANSPOSE, BENCH_GBPS, 2, 16777216, 1,
     .aims = {{"*", BENCH_RATIO_MIN, 1.5}}},
    {"transpose-256", BENCH_TRANSPOSE, BENCH_GBPS, 2, 134217728, 1,
     .aims = {{"*", BENCH_RATIO_MIN, 1.5}}},
    {"redistribute-32", BENCH_REDISTRIBUTE, BENCH_GBPS, 2, 262144, 1,
     .aims = {{"*", BENCH_RATIO_MIN, 1.5}}},
    {"redistribute-64", BENCH_REDISTRIBUTE, BENCH_GBPS, 2, 2097152, 1,
     .aims = {{"*", BENCH_RATIO_MIN, 1.5}}},
    {"redistribute-128", BENCH_REDISTRIBUTE, BENCH_GBPS, 2, 16777216, 1,
     .aims = {{"*", BENCH_RATIO_MIN, 1.5}}},
    {"redistribute-256", BENCH_REDISTRIBUTE, BENCH_GBPS, 2, 134217728, 1,
     .aims = {{"*", BENCH_RATIO_MIN, 1.5}}},
    {"redblack-32", BENCH_REDBLACK, BENCH_US, 2, 32, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"redblack-64", BENCH_REDBLACK, BENCH_US, 2, 64, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"redblack-128", BENCH_REDBLACK, BENCH_US, 2, 128, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"mg-S", BENCH_MG, BENCH_US, 2, 32, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"mg-W", BENCH_MG, BENCH_US, 2, 128, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"mg-A", BENCH_MG, BENCH_US, 2, 256, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"ft-S", BENCH_FT, BENCH_US, 2, 64, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"ft-W", BENCH_FT, BENCH_US, 2, 128, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"ft-A", BENCH_FT, BENCH_US, 2, 256, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"summa-256", BENCH_SUMMA, BENCH_US, 2, 256, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"summa-512", BENCH_SUMMA, BENCH_US, 2, 512, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"summa-1024", BENCH_SUMMA, BENCH_US, 2, 1024, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"laplace-20", BENCH_LAPLACE, BENCH_US, 2, 20, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"laplace-2", BENCH_LAPLACE, BENCH_US, 2, 2, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"amr-8", BENCH_AMR, BENCH_US, 2, 8, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"amr-16", BENCH_AMR, BENCH_US, 2, 16, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"amr-32", BENCH_AMR, BENCH_US, 2, 32, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"exposed-128x8", BENCH_EXPOSED, BENCH_PERCENT, 2, 128, .aims = {{"*", BENCH_OURS_MAX, 10}}},
    {"exposed-sleep-128x8", BENCH_EXPOSED_SLEEP, BENCH_PERCENT, 2, 128,
     .aims = {{"*", BENCH_OURS_MAX, 10}}},
    {"exposed-free-core-192x8", BENCH_EXPOSED, BENCH_PERCENT, 1, 192,
     .aims = {{"*", BENCH_OURS_MAX, 10}}},
    {"plan-100000", BENCH_PLAN, BENCH_US, 1, 100000, 1, .aims = {{"*", BENCH_OURS_MAX, 1000000}}},
    {"plan-100000-64", BENCH_PLAN_SHARE, BENCH_US, 1, 100000, 1,
     .aims = {{"*", BENCH_OURS_MAX, 1000000}}},
    {"plan-1000000-64", BENCH_PLAN_SHARE, BENCH_US, 1, 1000000, .parts = 1},
    {"plan-memory-100000-64", BENCH_PLAN_MEMORY, BENCH_MIB, 1, 100000, .parts = 1},
    {"plan-memory-1000000-64", BENCH_PLAN_MEMORY, BENCH_MIB, 1, 1000000, .parts = 1},
    {"start-wait", BENCH_START_WAIT, BENCH_NS, 1, 0, 1, .aims = {{"*", BENCH_OURS_MAX, 200}}},
};

int main(int argc, char **argv)
{
    const bench_group groups[] = {BENCH_GROUP(launchers, cases), {0}};
    return bench_compare_main(argc, argv, "movers", groups);
}
