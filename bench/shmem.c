/* OpenSHMEM: the calls of shmem.h on Ferry against Open MPI's. docs/lab/windows.md has figures. */
#include "common/compare.h"
#include "common/launchers.h"

enum { KIB = 1 << 10 };

#define OURS                                                                                       \
    {                                                                                              \
        .peer = "ferry", .program = "peers/shmem", .prefix = { BENCH_FERRY, "run" }                \
    }
/* The bounds are those of windows. */
#define LIMIT                                                                                      \
    {                                                                                              \
        .peer = "reference", .program = "peers/windows", .ranks_variable = "FERRY_RANKS",          \
        .environment = {                                                                           \
            "BENCH_REFERENCE=1"                                                                    \
        }                                                                                          \
    }
/* It can register 32 writable mappings of memory, and random addresses part what is one mapping. */
#define OPENMPI                                                                                    \
    {                                                                                              \
        .peer = "openmpi", .program = "peers/shmem_openmpi",                                       \
        .prefix = {"setarch",         "-R",        "oshrun", "--allow-run-as-root",                \
                   "--oversubscribe", "--bind-to", "none"},                                        \
        .environment = {                                                                           \
            "MALLOC_ARENA_MAX=1"                                                                   \
        }                                                                                          \
    }

static const bench_launcher sides[] = {OURS, LIMIT, OPENMPI};

static const bench_case cases[] = {
    {"put-8B", BENCH_WINDOW_PUT, BENCH_NS, 2, 8, 1,
     .aims = {{"reference", BENCH_OURS_MAX, 5}, {"*", BENCH_RATIO_MAX, 1}}},
    {"put-64KiB", BENCH_WINDOW_PUT, BENCH_NS, 2, 64 * KIB, 1,
     .aims = {{"reference", BENCH_RATIO_MAX, 1.05}, {"*", BENCH_RATIO_MAX, 1}}},
    {"fetch-add", BENCH_WINDOW_FETCH, BENCH_NS, 2, 8, 1,
     .aims = {{"reference", BENCH_RATIO_MAX, 2}, {"*", BENCH_RATIO_MAX, 1}}},
    {"barrier", BENCH_WINDOW_FENCE, BENCH_NS, 2, 0, 1,
     .aims = {{"reference", BENCH_RATIO_MAX, 2}, {"*", BENCH_RATIO_MAX, 1}}},
    {"swap-1KiB", BENCH_WINDOW_SWAP, BENCH_NS, 2, 1 * KIB, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"swap-256KiB", BENCH_WINDOW_SWAP, BENCH_NS, 2, 256 * KIB, 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
};

int main(int argc, char **argv)
{
    const bench_group groups[] = {BENCH_GROUP(sides, cases), {0}};
    return bench_compare_main(argc, argv, "shmem", groups);
}
