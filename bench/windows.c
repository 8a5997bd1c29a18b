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
    {"put-8B", BENCH_WINDOW_PUT, BENCH_NS, 2, 8, 1,
     .aims = {{"reference", BENCH_OURS_MAX, 5}, {"*", BENCH_RATIO_MAX, 1}}},
    {"put-64KiB", BENCH_WINDOW_PUT, BENCH_NS, 2, 64 * KIB, 1,
     .aims = {{"reference", BENCH_RATIO_MAX, 1.05}, {"*", BENCH_RATIO_MAX, 1}}},
    {"fetch-add", BENCH_WINDOW_FETCH, BENCH_NS, 2, 8, 1,
     .aims = {{"reference", BENCH_RATIO_MAX, 2}, {"*", BENCH_RATIO_MAX, 1}}},
    {"fence", BENCH_WINDOW_FENCE, BENCH_NS, 2, 0, 1,
     .aims = {{"reference", BENCH_RATIO_MAX, 2}, {"*", BENCH_RATIO_MAX, 1}}},
    {"swap-1KiB", BENCH_WINDOW_SWAP, BENCH_NS, 2, 1 * KIB, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"swap-16KiB", BENCH_WINDOW_SWAP, BENCH_NS, 2, 16 * KIB, 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"swap-256KiB", BENCH_WINDOW_SWAP, BENCH_NS, 2, 256 * KIB, 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
};

/* The same, where puts wait for the end of their epoch. */
static const bench_case ordered_cases[] = {
    {"ordered-put-8B", BENCH_WINDOW_PUT, BENCH_NS, 2, 8, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {"ordered-fence", BENCH_WINDOW_FENCE, BENCH_NS, 2, 0, 1, .aims = {{"*", BENCH_RATIO_MAX, 1}}},
};

int main(int argc, char **argv)
{
    const bench_group groups[] = {
        BENCH_GROUP(direct, cases), BENCH_GROUP(ordered, ordered_cases), {0}};
    return bench_compare_main(argc, argv, "windows", groups);
}
