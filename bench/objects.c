/* Objects: the operations of prema.txt Table 4.2, each against what it is made of.
 * docs/lab/objects.md says what each case is and where its bound comes from. */
#include "common/compare.h"

#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* Objects, and the reference: bare requests, copies and calls. */
static const bench_launcher launchers[] = {
    {.peer = "ferry", .program = "peers/objects", .ranks_variable = "FERRY_RANKS"},
    {.peer = "reference",
     .program = "peers/objects",
     .ranks_variable = "FERRY_RANKS",
     .environment = {"BENCH_REFERENCE=1"}},
};

static const bench_case cases[] = {
    {"lookup-1M", BENCH_LOOKUP, BENCH_NS, 1, 1, 1, .aims = {{"reference", BENCH_OURS_MAX, 15}}},
    {"lookup-16x64K", BENCH_LOOKUP, BENCH_NS, 1, 16, 1,
     .aims = {{"reference", BENCH_OURS_MAX, 15}}},
    {"update-1M", BENCH_UPDATE, BENCH_NS, 1, 1, 1, .aims = {{"reference", BENCH_OURS_MAX, 40}}},
    {"local-8B", BENCH_LOCAL, BENCH_NS, 1, 0, 1, .against = "call",
     .aims = {{"reference", BENCH_MORE_MAX, 60}}},
    {"remote-8B", BENCH_REMOTE, BENCH_US, 2, 8, 2, .against = "request",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.15}}},
    {"remote-1KiB", BENCH_REMOTE, BENCH_US, 2, 1 * KIB, 2, .against = "request",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.15}}},
    {"remote-64KiB", BENCH_REMOTE, BENCH_US, 2, 64 * KIB, 2, .against = "request",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.15}}},
    {"lend-4KiB", BENCH_LEND, BENCH_US, 2, 4 * KIB, 1, .against = "copied",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.1}}},
    {"lend-64KiB", BENCH_LEND, BENCH_US, 2, 64 * KIB, 1, .against = "copied",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.1}}},
    {"lend-1MiB", BENCH_LEND, BENCH_US, 2, 1 * MIB, 1, .against = "copied",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.1}}},
    {"lend-4MiB", BENCH_LEND, BENCH_US, 2, 4 * MIB, 1, .against = "copied",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.1}}},
    {"forward-8B", BENCH_FORWARD, BENCH_US, 3, 0, 1, .against = "requests",
     .aims = {{"reference", BENCH_MORE_MAX, 0.1}}},
    {"migrate-64B", BENCH_MIGRATE, BENCH_US, 2, 64, 2, .against = "pack",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.2}}},
    {"migrate-1KiB", BENCH_MIGRATE, BENCH_US, 2, 1 * KIB, 2, .against = "pack",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.2}}},
    {"migrate-64KiB", BENCH_MIGRATE, BENCH_US, 2, 64 * KIB, 2, .against = "pack",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.2}}},
    {"migrate-1MiB", BENCH_MIGRATE, BENCH_US, 2, 1 * MIB, 2, .against = "pack",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.2}}},
    {"migrate-64MiB", BENCH_MIGRATE, BENCH_US, 2, 64 * MIB, 2, .against = "pack",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.2}}},
    {"uninstall-64B", BENCH_UNINSTALL, BENCH_NS, 2, 64, 1, .against = "copy",
     .aims = {{"reference", BENCH_OURS_MAX, 115000}}},
    {"install-64B", BENCH_INSTALL, BENCH_NS, 2, 64, 1, .against = "copy",
     .aims = {{"reference", BENCH_OURS_MAX, 9000}}},
    {"hand-over-64B", BENCH_HAND_OVER, BENCH_US, 2, 64, 2, .against = "request-8B",
     .aims = {{"reference", BENCH_OURS_MAX, 3}}},
    {"hand-over-64KiB", BENCH_HAND_OVER, BENCH_US, 2, 64 * KIB, 2, .against = "request-8B",
     .aims = {{"reference", BENCH_OURS_MAX, 3}}},
    {"hand-over-1MiB", BENCH_HAND_OVER, BENCH_US, 2, 1 * MIB, 2, .against = "request-8B",
     .aims = {{"reference", BENCH_OURS_MAX, 3}}},
    {"hand-over-64MiB", BENCH_HAND_OVER, BENCH_US, 2, 64 * MIB, 2, .against = "request-8B",
     .aims = {{"reference", BENCH_OURS_MAX, 3}}},
    {"work-remote-8B", BENCH_WORK_REMOTE, BENCH_NS, 1, 8, 2, .against = "request",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.15}}},
    {"work-remote-1KiB", BENCH_WORK_REMOTE, BENCH_NS, 1, 1 * KIB, 2, .against = "request",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.15}}},
    {"work-forward-8B", BENCH_WORK_FORWARD, BENCH_NS, 1, 0, 1, .against = "requests",
     .aims = {{"reference", BENCH_MORE_MAX, 100}}},
    {"work-migrate-64B", BENCH_WORK_MIGRATE, BENCH_NS, 1, 64, 2, .against = "pack",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.2}}},
    {"work-migrate-1KiB", BENCH_WORK_MIGRATE, BENCH_NS, 1, 1 * KIB, 2, .against = "pack",
     .aims = {{"reference", BENCH_RATIO_MAX, 1.2}}},
    {"work-hand-over-64B", BENCH_WORK_HAND_OVER, BENCH_NS, 1, 64, 2, .against = "request-8B",
     .aims = {{"reference", BENCH_OURS_MAX, 3000}}},
};

int main(int argc, char **argv)
{
    const bench_group groups[] = {BENCH_GROUP(launchers, cases), {0}};
    return bench_compare_main(argc, argv, "objects", groups);
}
