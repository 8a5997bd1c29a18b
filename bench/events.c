/* Events: what tracking costs, pending timeouts, progress in the background, and the ping tests of
 * progressive-messages.txt 6.2.4 beside MPI. docs/performance.md says what each case is. The pings
 * by put and get are cases of messaging. */
#include "common/compare.h"

#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* Ferry, what it is made of, and MPI as in messaging. */
static const bench_launcher launchers[] = {
    {.peer = "ferry", .program = "peers/events", .ranks_variable = "FERRY_RANKS"},
    {.peer = "limit",
     .program = "peers/events",
     .ranks_variable = "FERRY_RANKS",
     .environment = {"BENCH_REFERENCE=1"}},
    {.peer = "openmpi",
     .program = "peers/openmpi",
     .prefix = {"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                "--mca", "pml", "ob1", "--mca", "btl", "self,vader"},
     .oversubscribed = {"--mca", "mpi_yield_when_idle", "1"}},
    {.peer = "mpich",
     .program = "peers/mpich",
     .prefix = {"mpiexec.mpich"},
     .environment = {"MPIR_CVAR_POLLS_BEFORE_YIELD=1"}},
};

static const bench_case cases[] = {
    {.name = "pending-timeouts",
     .kind = BENCH_POLL,
     .unit = BENCH_NS,
     .ranks = 1,
     .parts = 1,
     .against = "none",
     .aims = {{"limit", BENCH_RATIO_MAX, 1.05}}},
    {.name = "tracked-8B",
     .kind = BENCH_TRACKED,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 8,
     .parts = 1,
     .against = "requests",
     .aims = {{"limit", BENCH_RATIO_MAX, 1.15}}},
    {.name = "background-8B",
     .kind = BENCH_BACKGROUND,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 8,
     .parts = 1,
     .against = "polls"},
    {.name = "pong-submit-8B",
     .kind = BENCH_PONG_SUBMIT,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 8,
     .parts = 2,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {.name = "pong-submit-64KiB",
     .kind = BENCH_PONG_SUBMIT,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64 * KIB,
     .parts = 2,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {.name = "pong-submit-1MiB",
     .kind = BENCH_PONG_SUBMIT,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 1 * MIB,
     .parts = 2,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {.name = "pong-complete-8B",
     .kind = BENCH_PONG_COMPLETE,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 8,
     .parts = 2,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {.name = "pong-complete-64KiB",
     .kind = BENCH_PONG_COMPLETE,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64 * KIB,
     .parts = 2,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {.name = "pong-complete-1MiB",
     .kind = BENCH_PONG_COMPLETE,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 1 * MIB,
     .parts = 2,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {.name = "ping-submit-8B",
     .kind = BENCH_PING_SUBMIT,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 8,
     .parts = 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {.name = "ping-submit-64KiB",
     .kind = BENCH_PING_SUBMIT,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64 * KIB,
     .parts = 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {.name = "ping-submit-1MiB",
     .kind = BENCH_PING_SUBMIT,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 1 * MIB,
     .parts = 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {.name = "ping-complete-8B",
     .kind = BENCH_PING_COMPLETE,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 8,
     .parts = 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {.name = "ping-complete-64KiB",
     .kind = BENCH_PING_COMPLETE,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 64 * KIB,
     .parts = 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
    {.name = "ping-complete-1MiB",
     .kind = BENCH_PING_COMPLETE,
     .unit = BENCH_US,
     .ranks = 2,
     .size_bytes = 1 * MIB,
     .parts = 1,
     .aims = {{"*", BENCH_RATIO_MAX, 1}}},
};

static const char *name_of(int index)
{
    return index < (int)(sizeof cases / sizeof *cases) ? cases[index].name : NULL;
}

int main(int argc, char **argv)
{
    bench_options options;
    int status = bench_options_read(argc, argv, "events", name_of, 41, 9, &options);
    if (status >= 0)
        return status;
    bench_compare *compare = bench_compare_create(&options, "events", launchers,
                                                  (int)(sizeof launchers / sizeof *launchers));
    if (!compare)
        return 1;
    bench_report_head(&options, "events");
    for (int ranks = 1; ranks <= BENCH_RANKS_MAX; ranks++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            if (cases[i].ranks == ranks && bench_wanted(&options, cases[i].name))
                bench_compare_case(compare, &cases[i]);
    bench_compare_destroy(compare);
    return 0;
}
