/* Objects: the operations of prema.txt Table 4.2, each against what it is made of.
 * docs/performance.md says what each case is and where its bound comes from. */
#include "common/compare.h"

#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* Objects, and the reference: bare requests, copies and calls. */
static const bench_launcher launchers[] = {
    {.peer = "ferry", .program = "peers/objects", .ranks_variable = "FERRY_RANKS"},
    {.peer = "limit",
     .program = "peers/objects",
     .ranks_variable = "FERRY_RANKS",
     .environment = {"BENCH_REFERENCE=1"}},
};

static const bench_case cases[] = {
    {.name = "lookup-1M",
     .kind = BENCH_LOOKUP,
     .unit = BENCH_NS,
     .ranks = 1,
     .parts = 1,
     .aims = {{"limit", BENCH_OURS_MAX, 15}}},
    {.name = "update-1M",
     .kind = BENCH_UPDATE,
     .unit = BENCH_NS,
     .ranks = 1,
     .parts = 1,
     .aims = {{"limit", BENCH_OURS_MAX, 40}}},
    {.name = "local-8B",
     .kind = BENCH_LOCAL,
     .unit = BENCH_NS,
     .ranks = 1,
     .parts = 1,
     .against = "call",
     .aims = {{"limit", BENCH_MORE_MAX, 60}}},
    {.name = "remote-8B",
     .kind = BENCH_REMOTE,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 8,
     .parts = 2,
     .against = "request",
     .aims = {{"limit", BENCH_RATIO_MAX, 1.15}}},
    {.name = "remote-1KiB",
     .kind = BENCH_REMOTE,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 1 * KIB,
     .parts = 2,
     .against = "request",
     .aims = {{"limit", BENCH_RATIO_MAX, 1.15}}},
    {.name = "remote-64KiB",
     .kind = BENCH_REMOTE,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64 * KIB,
     .parts = 2,
     .against = "request",
     .aims = {{"limit", BENCH_RATIO_MAX, 1.15}}},
    {.name = "forward-8B",
     .kind = BENCH_FORWARD,
     .unit = BENCH_US,
     .ranks = 3,
     .parts = 1,
     .against = "requests",
     .aims = {{"limit", BENCH_MORE_MAX, 0.1}}},
    {.name = "migrate-64B",
     .kind = BENCH_MIGRATE,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64,
     .parts = 2,
     .against = "pack",
     .aims = {{"limit", BENCH_RATIO_MAX, 1.2}}},
    {.name = "migrate-1KiB",
     .kind = BENCH_MIGRATE,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 1 * KIB,
     .parts = 2,
     .against = "pack",
     .aims = {{"limit", BENCH_RATIO_MAX, 1.2}}},
    {.name = "migrate-64KiB",
     .kind = BENCH_MIGRATE,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64 * KIB,
     .parts = 2,
     .against = "pack",
     .aims = {{"limit", BENCH_RATIO_MAX, 1.2}}},
    {.name = "migrate-1MiB",
     .kind = BENCH_MIGRATE,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 1 * MIB,
     .parts = 2,
     .against = "pack",
     .aims = {{"limit", BENCH_RATIO_MAX, 1.2}}},
    {.name = "migrate-64MiB",
     .kind = BENCH_MIGRATE,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64 * MIB,
     .parts = 2,
     .against = "pack",
     .aims = {{"limit", BENCH_RATIO_MAX, 1.2}}},
    {.name = "hand-over-64B",
     .kind = BENCH_HAND_OVER,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64,
     .parts = 2,
     .against = "request-8B",
     .aims = {{"limit", BENCH_OURS_MAX, 3}}},
    {.name = "hand-over-64KiB",
     .kind = BENCH_HAND_OVER,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64 * KIB,
     .parts = 2,
     .against = "request-8B",
     .aims = {{"limit", BENCH_OURS_MAX, 3}}},
    {.name = "hand-over-1MiB",
     .kind = BENCH_HAND_OVER,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 1 * MIB,
     .parts = 2,
     .against = "request-8B",
     .aims = {{"limit", BENCH_OURS_MAX, 3}}},
    {.name = "hand-over-64MiB",
     .kind = BENCH_HAND_OVER,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64 * MIB,
     .parts = 2,
     .against = "request-8B",
     .aims = {{"limit", BENCH_OURS_MAX, 3}}},
};

static const char *name_of(int index)
{
    return index < (int)(sizeof cases / sizeof *cases) ? cases[index].name : NULL;
}

int main(int argc, char **argv)
{
    bench_options options;
    int status = bench_options_read(argc, argv, "objects", name_of, 41, 9, &options);
    if (status >= 0)
        return status;
    bench_compare *compare = bench_compare_create(&options, "objects", launchers,
                                                  (int)(sizeof launchers / sizeof *launchers));
    if (!compare)
        return 1;
    bench_report_head(&options, "objects");
    for (int ranks = 1; ranks <= BENCH_RANKS_MAX; ranks++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            if (cases[i].ranks == ranks && bench_wanted(&options, cases[i].name))
                bench_compare_case(compare, &cases[i]);
    bench_compare_destroy(compare);
    return 0;
}
