/* Messaging: requests, buffers, one-sided copies, collectives, waiting with more ranks than cores,
 * start, memory and size, against loops over bare memory and other libraries. docs/lab/messaging.md
 * says what each case is and where its bound comes from. */
#include "common/compare.h"
#include "common/launchers.h"

#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* Ferry first. Each peer as its documentation advises for one machine: without binding, since the
 * ranks bind themselves, and yielding when there are more ranks than cores. */
static const bench_launcher launchers[] = {
    {.peer = "ferry", .program = "peers/ferry", .ranks_variable = "FERRY_RANKS", .starts = true},
    {.peer = "reference", .program = "peers/limit", .ranks_variable = "BENCH_RANKS"},
    {.peer = "attach",
     .program = "peers/limit",
     .ranks_variable = "BENCH_RANKS",
     .environment = {"BENCH_WAY=attach"},
     .ranks_max = 2},
    {.peer = "pipe",
     .program = "peers/limit",
     .ranks_variable = "BENCH_RANKS",
     .environment = {"BENCH_WAY=pipe"},
     .ranks_max = 2},
    {.peer = "openmpi",
     .program = "peers/openmpi",
     .starts = true,
     .prefix = BENCH_OPEN_MPI,
     .oversubscribed = {"--mca", "mpi_yield_when_idle", "1"}},
    {.peer = "mpich",
     .program = "peers/mpich",
     .starts = true,
     .prefix = BENCH_MPICH,
     .oversubscribed = {"-genv", "MPIR_CVAR_POLLS_BEFORE_YIELD", "1"}},
    {.peer = "ucx", .program = "peers/ucx", .ranks_variable = "BENCH_RANKS", .ranks_max = 2},
};

/* Cases with as many ranks stand together: their teams are started once. */
static const bench_case cases[] = {
    {"request-8B", BENCH_REQUEST, BENCH_US, 2, 8, 2,
     .aims = {{"reference", BENCH_RATIO_MAX, 1.35}, {"*", BENCH_RATIO_MAX, 1}}},
    {"request-64B", BENCH_REQUEST, BENCH_US, 2, 64, 2, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"request-1KiB", BENCH_REQUEST, BENCH_US, 2, 1 * KIB, 2,
     .aims = {{"gasnet", BENCH_RATIO_MAX, 1}, {"*", BENCH_RATIO_MAX, 1}}},
    {"request-8KiB", BENCH_REQUEST, BENCH_US, 2, 8 * KIB, 2,
     .aims = {{"gasnet", BENCH_RATIO_MAX, 1}, {"*", BENCH_RATIO_MAX, 1}}},
    {"rate-8B", BENCH_RATE, BENCH_MPS, 2, 8, 1,
     .aims = {{"reference", BENCH_RATIO_MIN, 0.25}, {"*", BENCH_RATIO_MIN, 3}}},
    {"rate-1KiB", BENCH_RATE, BENCH_GBPS, 2, 1 * KIB, 1, .aims = {{"*", BENCH_RATIO_MIN, 1}}},
    {"buffer-64KiB", BENCH_BUFFER, BENCH_GBPS, 2, 64 * KIB, 1,
     .aims = {{"reference", BENCH_RATIO_MIN, 0.7},
              {"attach", BENCH_RATIO_MIN, 1},
              {"pipe", BENCH_RATIO_MIN, 1},
              {"openmpi", BENCH_RATIO_MIN, 3},
              {"mpich", BENCH_RATIO_MIN, 3}}},
    {"buffer-1MiB", BENCH_BUFFER, BENCH_GBPS, 2, 1 * MIB, 1,
     .aims = {{"reference", BENCH_RATIO_MIN, 0.7},
              {"attach", BENCH_RATIO_MIN, 1},
              {"pipe", BENCH_RATIO_MIN, 1},
              {"openmpi", BENCH_RATIO_MIN, 3},
              {"mpich", BENCH_RATIO_MIN, 3}}},
    {"buffer-4MiB", BENCH_BUFFER, BENCH_GBPS, 2, 4 * MIB, 1,
     .aims = {{"reference", BENCH_RATIO_MIN, 0.7},
              {"attach", BENCH_RATIO_MIN, 1},
              {"pipe", BENCH_RATIO_MIN, 1},
              {"openmpi", BENCH_RATIO_MIN, 3},
              {"mpich", BENCH_RATIO_MIN, 3}}},
    {"put-8B", BENCH_PUT, BENCH_NS, 2, 8, 1, .aims = {{"reference", BENCH_OURS_MAX, 5}}},
    {"put-64KiB", BENCH_PUT, BENCH_NS, 2, 64 * KIB, 1,
     .aims = {{"reference", BENCH_RATIO_MAX, 1.05}}},
    {"get-8B", BENCH_GET, BENCH_NS, 2, 8, 1, .aims = {{"reference", BENCH_OURS_MAX, 5}}},
    {"get-64KiB", BENCH_GET, BENCH_NS, 2, 64 * KIB, 1,
     .aims = {{"reference", BENCH_RATIO_MAX, 1.05}}},
    {"barrier-2", BENCH_BARRIER, BENCH_US, 2, 0, 1, .aims = {{"reference", BENCH_RATIO_MAX, 2}}},
    {"barrier-4", BENCH_BARRIER, BENCH_US, 4, 0, 1,
     .aims = {{"gasnet", BENCH_RATIO_MAX, 1}, {"*", BENCH_RATIO_MAX, 1}}},
    {"barrier-8", BENCH_BARRIER, BENCH_US, 8, 0, 1,
     .aims = {{"gasnet", BENCH_RATIO_MAX, 1}, {"*", BENCH_RATIO_MAX, 1}}},
    {"barrier-16", BENCH_BARRIER, BENCH_US, 16, 0, 1,
     .aims = {{"gasnet", BENCH_RATIO_MAX, 1}, {"*", BENCH_RATIO_MAX, 1}}},
    {"allreduce-2", BENCH_ALLREDUCE, BENCH_US, 2, 8, 1,
     .aims = {{"reference", BENCH_RATIO_MAX, 2}}},
    {"allreduce-4", BENCH_ALLREDUCE, BENCH_US, 4, 8, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"allreduce-8", BENCH_ALLREDUCE, BENCH_US, 8, 8, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"ring-4", BENCH_RING, BENCH_US, 4, 8, 0, .aims = {{"reference", BENCH_RATIO_MAX, 1.1}}},
    {"ring-8", BENCH_RING, BENCH_US, 8, 8, 0, .aims = {{"reference", BENCH_RATIO_MAX, 1.1}}},
    {"ring-4-busy", BENCH_RING_BUSY, BENCH_US, 4, 8, 0, .beside = BENCH_ALL_COMPUTE,
     .aims = {{"reference", BENCH_RATIO_MAX, 1.5}}},
    {"ring-8-busy", BENCH_RING_BUSY, BENCH_US, 8, 8, 0, .beside = BENCH_ALL_COMPUTE,
     .aims = {{"reference", BENCH_RATIO_MAX, 1.5}}},
    {"wake-8B", BENCH_WAKE, BENCH_US, 2, 8, .parts = 1},
    {"poll-2", BENCH_IDLE, BENCH_NS, 2, 0, 1, .aims = {{"openmpi", BENCH_RATIO_MAX, 1}}},
    {"poll-8", BENCH_IDLE, BENCH_NS, 8, 0, 1, .aims = {{"openmpi", BENCH_RATIO_MAX, 1}}},
    {"poll-16", BENCH_IDLE, BENCH_NS, 16, 0, 1, .aims = {{"openmpi", BENCH_RATIO_MAX, 1}}},
    {"poll-32", BENCH_IDLE, BENCH_NS, 32, 0, 1, .aims = {{"openmpi", BENCH_RATIO_MAX, 1}}},
    {"start-2", BENCH_KINDS, BENCH_MS, 2, 0, 1, .start = true, .aims = {{"*", BENCH_OURS_MAX, 10}}},
    {"start-8", BENCH_KINDS, BENCH_MS, 8, 0, 1, .start = true, .aims = {{"*", BENCH_OURS_MAX, 20}}},
    {"memory-2", BENCH_MEMORY, BENCH_MIB, 2, 0, 1, .aims = {{"*", BENCH_OURS_MAX, 1}}},
    {"library", BENCH_LIBRARY, BENCH_KIB, 2, 0, 1, .aims = {{"*", BENCH_OURS_MAX, 300}}},
};

/* MPICH 4.0.2 of Debian 12 cannot spawn (docs/decisions/0009-members.md). Open MPI reaches
 * processes of another launch by TCP only. */
static const bench_launcher spawners[] = {
    {.peer = "ferry",
     .program = "peers/spawn",
     .ranks_variable = "FERRY_RANKS",
     .environment = {"FERRY_RANKS_MAX=256"}},
    {.peer = "reference",
     .program = "peers/spawn",
     .ranks_variable = "BENCH_RANKS",
     .environment = {"BENCH_WAY=exec"}},
    {.peer = "openmpi",
     .program = "peers/spawn_openmpi",
     .prefix = {"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                "--mca", "btl", "self,tcp"}},
};

static const bench_case spawn_cases[] = {
    {"spawn-1", BENCH_SPAWN, BENCH_US, 1, 0, .parts = 1},
};

/* A quiescence after one message of each rank, beside a barrier of the same ranks. */
static const bench_launcher resting[] = {
    {.peer = "ferry", .program = "peers/ferry", .ranks_variable = "FERRY_RANKS"},
    {.peer = "barrier",
     .program = "peers/ferry",
     .ranks_variable = "FERRY_RANKS",
     .environment = {"BENCH_WAY=barrier"}},
};

#define RESTING(count)                                                                             \
    {                                                                                              \
        "quiesce-" #count, BENCH_REST, BENCH_US, count, 0, 1, .aims = {                            \
            {"barrier", BENCH_RATIO_MAX, 2}                                                        \
        }                                                                                          \
    }

static const bench_case resting_cases[] = {
    RESTING(2), RESTING(4), RESTING(8), RESTING(16), RESTING(32),
};

int main(int argc, char **argv)
{
    const bench_group groups[] = {BENCH_GROUP(launchers, cases),
                                  BENCH_GROUP(spawners, spawn_cases),
                                  BENCH_GROUP(resting, resting_cases),
                                  {0}};
    return bench_compare_main(argc, argv, "messaging", groups);
}
