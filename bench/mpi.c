/* Port mpi: what Ferry adds to the same exchange in plain MPI. Ferry's ranks are started by the
 * library's own mpirun and use MPI between them, as ranks on different nodes do: without the shared
 * memory that they would take on one. The reference is the exchange by the calls that any library
 * over MPI needs if it does not know what comes next and its threads take turns. These are a
 * receive from any rank, posted before and tested again and again, and a send that does not wait.
 * docs/lab/port-mpi.md says where the bound comes from. */
#include "common/compare.h"
#include "common/launchers.h"

enum { KIB = 1 << 10 };

static const bench_launcher open_mpi[] = {
    {.peer = "ferry",
     .program = "peers/ferry",
     .prefix = BENCH_OPEN_MPI,
     .environment = {"FERRY_MPI_SHM=0"}},
    {.peer = "reference",
     .program = "peers/openmpi",
     .prefix = BENCH_OPEN_MPI,
     .environment = {"BENCH_POSTED=1"}},
    {.peer = "openmpi", .program = "peers/openmpi", .prefix = BENCH_OPEN_MPI},
};

static const bench_launcher mpich[] = {
    {.peer = "ferry",
     .program = "peers/ferry",
     .prefix = BENCH_MPICH,
     .environment = {"FERRY_MPI_SHM=0"}},
    {.peer = "reference",
     .program = "peers/mpich",
     .prefix = BENCH_MPICH,
     .environment = {"BENCH_POSTED=1"}},
    {.peer = "mpich", .program = "peers/mpich", .prefix = BENCH_MPICH},
};

/* Movers, each beside MPI by hand. */
static const bench_launcher movers_open_mpi[] = {
    {.peer = "ferry",
     .program = "peers/mover",
     .prefix = BENCH_OPEN_MPI,
     .environment = {"FERRY_MPI_SHM=0"}},
    {.peer = "openmpi", .program = "peers/mover_openmpi", .prefix = BENCH_OPEN_MPI},
};

static const bench_launcher movers_mpich[] = {
    {.peer = "ferry",
     .program = "peers/mover",
     .prefix = BENCH_MPICH,
     .environment = {"FERRY_MPI_SHM=0"}},
    {.peer = "mpich", .program = "peers/mover_mpich", .prefix = BENCH_MPICH},
};

static const bench_case hidden[] = {
    {"exposed-sleep-128x8", BENCH_EXPOSED_SLEEP, BENCH_PERCENT, 2, 128,
     .aims = {{"*", BENCH_OURS_MAX, 10}}},
    {"exposed-128x8", BENCH_EXPOSED, BENCH_PERCENT, 2, 128, .aims = {{"*", BENCH_OURS_MAX, 10}}},
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

/* A block of many. There is no bound. */
#define STRIDED(called, size)                                                                      \
    {                                                                                              \
        .name = called, .kind = BENCH_STRIDED, .unit = BENCH_NS, .ranks = 2, .size_bytes = (size), \
        .parts = BENCH_BLOCKS,                                                                     \
    }

static const bench_case cases[] = {
    REQUEST("request-8B", 8),           REQUEST("request-64B", 64),
    REQUEST("request-1KiB", 1 * KIB),   REQUEST("request-8KiB", 8 * KIB),
    REQUEST("request-64KiB", 64 * KIB), BUFFER("buffer-64KiB", 64 * KIB),
    BUFFER("buffer-1MiB", 1024 * KIB),  STRIDED("strided-8B", 8),
    STRIDED("strided-512B", 512),
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
