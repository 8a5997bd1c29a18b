/* Windows: puts, sums and fences, against bare memory and the one-sided operations of MPI.
 * docs/performance.md has the bounds. */
#include "common/compare.h"
#include "common/launchers.h"

enum { KIB = 1 << 10 };

#define OURS(...)                                                                                  \
    {                                                                                              \
        .program = "peers/windows", .ranks_variable = "FERRY_RANKS", __VA_ARGS__                   \
    }
#define OPENMPI                                                                                    \
    {                                                                                              \
        .peer = "openmpi", .program = "peers/windows_openmpi", .prefix = BENCH_OPEN_MPI            \
    }
#define MPICH                                                                                      \
    {                                                                                              \
        .peer = "mpich", .program = "peers/windows_mpich", .prefix = BENCH_MPICH                   \
    }
#define LIMIT OURS(.peer = "reference", .environment = {"BENCH_REFERENCE=1"})

static const bench_launcher direct[] = {OURS(.peer = "ferry"), LIMIT, OPENMPI, MPICH};
static const bench_launcher ordered[] = {OURS(.peer = "ferry", .environment = {"BENCH_ORDERED=1"}),
                                         LIMIT, OPENMPI, MPICH};

static const bench_case cases[] = {
    {.name = "put-8B",
     .kind = BENCH_WINDOW_PUT,
     .unit = BENCH_NS,
     .ranks = 2,
     .size_bytes = 8,
     .parts = 1,
     .aims = {{"reference", BENCH_OURS_MAX, 5}, {"*", BENCH_RATIO_MAX, 1}}},
    {.name = "put-64KiB",
     .kind = BENCH_WINDOW_PUT,
     .unit = BENCH_NS,
     .ranks = 2,
     .size_bytes = 64 * KIB,
     .parts = 1,
     .aims = {{"reference", BENCH_RATIO_MAX, 1.05}, {"*", BENCH_RATIO_MAX, 1}}},
    {.name = "fetch-add",
     .kind = BENCH_WINDOW_FETCH,
     .unit = BENCH_NS,
     .ranks = 2,
     .size_bytes = 8,
     .parts = 1,
     .aims = {{"reference", BENCH_RATIO_MAX, 2}, {"*", BENCH_RATIO_MAX, 1}}},
    {.name = "fence",
     .kind = BENCH_WINDOW_FENCE,
     .unit = BENCH_NS,
     .ranks = 2,
     .parts = 1,
     .aims = {{"reference", BENCH_RATIO_MAX, 2}, {"*", BENCH_RATIO_MAX, 1}}},
    {.name = "swap-1KiB",
     .kind = BENCH_WINDOW_SWAP,
     .unit = BENCH_NS,
     .ranks = 2,
     .size_bytes = 1 * KIB,
     .parts = 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {.name = "swap-16KiB",
     .kind = BENCH_WINDOW_SWAP,
     .unit = BENCH_NS,
     .ranks = 2,
     .size_bytes = 16 * KIB,
     .parts = 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {.name = "swap-256KiB",
     .kind = BENCH_WINDOW_SWAP,
     .unit = BENCH_NS,
     .ranks = 2,
     .size_bytes = 256 * KIB,
     .parts = 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
};

/* The same, where puts wait for the end of their epoch. */
static const bench_case ordered_cases[] = {
    {.name = "ordered-put-8B",
     .kind = BENCH_WINDOW_PUT,
     .unit = BENCH_NS,
     .ranks = 2,
     .size_bytes = 8,
     .parts = 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {.name = "ordered-fence",
     .kind = BENCH_WINDOW_FENCE,
     .unit = BENCH_NS,
     .ranks = 2,
     .parts = 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
};

int main(int argc, char **argv)
{
    const bench_group groups[] = {
        BENCH_GROUP(direct, cases), BENCH_GROUP(ordered, ordered_cases), {0}};
    return bench_compare_main(argc, argv, "windows", groups);
}
