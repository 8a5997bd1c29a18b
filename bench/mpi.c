/* Port mpi: what Ferry adds to the same exchange in plain MPI. Ferry's ranks are started by the
 * library's own mpirun and use MPI between them, as ranks on different nodes do: without the shared
 * memory that they would take on one. The limit is the exchange by the calls that anything over MPI
 * needs which does not know what comes next: a receive from any rank, posted before, and looked at
 * again and again; a send that does not wait. docs/performance.md says where the bound comes from.
 */
#include "common/compare.h"

enum { KIB = 1 << 10 };

#define OPEN_MPI                                                                                   \
    {                                                                                              \
        "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca",  \
            "pml", "ob1", "--mca", "btl", "self,vader"                                             \
    }

static const bench_launcher open_mpi[] = {
    {.peer = "ferry",
     .program = "peers/ferry",
     .prefix = OPEN_MPI,
     .environment = {"FERRY_MPI_SHM=0"}},
    {.peer = "limit",
     .program = "peers/openmpi",
     .prefix = OPEN_MPI,
     .environment = {"BENCH_POSTED=1"}},
    {.peer = "openmpi", .program = "peers/openmpi", .prefix = OPEN_MPI},
};

static const bench_launcher mpich[] = {
    {.peer = "ferry",
     .program = "peers/ferry",
     .prefix = {"mpiexec.mpich"},
     .environment = {"FERRY_MPI_SHM=0"}},
    {.peer = "limit",
     .program = "peers/mpich",
     .prefix = {"mpiexec.mpich"},
     .environment = {"BENCH_POSTED=1"}},
    {.peer = "mpich", .program = "peers/mpich", .prefix = {"mpiexec.mpich"}},
};

/* Movers, each beside MPI by hand. */
static const bench_launcher movers_open_mpi[] = {
    {.peer = "ferry",
     .program = "peers/mover",
     .prefix = OPEN_MPI,
     .environment = {"FERRY_MPI_SHM=0"}},
    {.peer = "openmpi", .program = "peers/mover_openmpi", .prefix = OPEN_MPI},
};

static const bench_launcher movers_mpich[] = {
    {.peer = "ferry",
     .program = "peers/mover",
     .prefix = {"mpiexec.mpich"},
     .environment = {"FERRY_MPI_SHM=0"}},
    {.peer = "mpich", .program = "peers/mover_mpich", .prefix = {"mpiexec.mpich"}},
};

static const bench_case hidden[] = {
    {.name = "exposed-sleep-128x8",
     .kind = BENCH_EXPOSED_SLEEP,
     .unit = BENCH_PERCENT,
     .ranks = 2,
     .size_bytes = 128,
     .aims = {{"*", BENCH_OURS_MAX, 10}}},
    {.name = "exposed-128x8",
     .kind = BENCH_EXPOSED,
     .unit = BENCH_PERCENT,
     .ranks = 2,
     .size_bytes = 128,
     .aims = {{"*", BENCH_OURS_MAX, 10}}},
};

#define REQUEST(called, size)                                                                      \
    {                                                                                              \
        .name = called, .kind = BENCH_REQUEST, .unit = BENCH_US, .ranks = 2, .size_bytes = (size), \
        .parts = 2, .aims = {{"*", BENCH_RATIO_MAX, 1.03}},                                        \
    }

#define BUFFER(called, size)                                                                       \
    {                                                                                              \
        .name = called, .kind = BENCH_BUFFER, .unit = BENCH_GBPS, .ranks = 2,                      \
        .size_bytes = (size), .parts = 1, .aims = {{"*", BENCH_RATIO_MIN, 0.97}},                  \
    }

static const bench_case cases[] = {
    REQUEST("request-8B", 8),           REQUEST("request-64B", 64),
    REQUEST("request-1KiB", 1 * KIB),   REQUEST("request-8KiB", 8 * KIB),
    REQUEST("request-64KiB", 64 * KIB), BUFFER("buffer-64KiB", 64 * KIB),
    BUFFER("buffer-1MiB", 1024 * KIB),
};

int main(int argc, char **argv)
{
    const bench_group groups[] = {BENCH_GROUP(open_mpi, cases),
                                  BENCH_GROUP(mpich, cases),
                                  BENCH_GROUP(movers_open_mpi, hidden),
                                  BENCH_GROUP(movers_mpich, hidden),
                                  {0}};
    return bench_compare_main(argc, argv, "mpi", groups);
}
