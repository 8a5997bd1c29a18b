/* Two hosts: Ferry beside plain MPI between two network namespaces, joined by Open MPI over TCP
 * (tests/mpi/two_hosts.sh). MPI's side knows what comes next: it waits in MPI_Recv and MPI_Barrier.
 * A quiescence is compared with the round trip of a message, as MPI has none. Needs root. */
#include "common/compare.h"

#define TWO_HOSTS                                                                                  \
    {                                                                                              \
        "sh", BENCH_TWO_HOSTS, "mpirun.openmpi"                                                    \
    }

static const bench_launcher sides[] = {
    {.peer = "ferry", .program = "peers/ferry", .prefix = TWO_HOSTS},
    {.peer = "openmpi", .program = "peers/openmpi", .prefix = TWO_HOSTS},
};

enum { KIB = 1 << 10 };

#define TRIP(called, which, size, most)                                                            \
    {                                                                                              \
        .name = called, .kind = (which), .unit = BENCH_US, .ranks = 2, .size_bytes = (size),       \
        .parts = 2, .aims = {{"*", BENCH_RATIO_MAX, (most)}},                                      \
    }

#define TOGETHER(called, which, most)                                                              \
    {                                                                                              \
        .name = called, .kind = (which), .unit = BENCH_US, .ranks = 2, .size_bytes = 8,            \
        .parts = 1, .aims = {{"*", BENCH_RATIO_MAX, (most)}},                                      \
    }

#define BUFFER(called, size)                                                                       \
    {                                                                                              \
        .name = called, .kind = BENCH_BUFFER, .unit = BENCH_GBPS, .ranks = 2,                      \
        .size_bytes = (size), .parts = 1, .aims = {{"*", BENCH_RATIO_MIN, 0.95}},                  \
    }

/* 8 B: 2 us of some 14. */
static const bench_case cases[] = {
    TRIP("request-8B", BENCH_REQUEST, 8, 1.15),
    TRIP("request-16KiB", BENCH_REQUEST, 16 * KIB, 1.05),
    TRIP("request-64KiB", BENCH_REQUEST, 64 * KIB, 1.05),
    TRIP("request-1MiB", BENCH_REQUEST, 1024 * KIB, 1.05),
    TRIP("read-64KiB", BENCH_READ, 64 * KIB, 1.05),
    TRIP("read-1MiB", BENCH_READ, 1024 * KIB, 1.05),
    BUFFER("buffer-64KiB", 64 * KIB),
    BUFFER("buffer-1MiB", 1024 * KIB),
    TOGETHER("barrier-2", BENCH_BARRIER, 1.3),
    TOGETHER("allreduce-2", BENCH_ALLREDUCE, 1.3),
    TOGETHER("quiesce-2", BENCH_QUIESCE, 3),
};

int main(int argc, char **argv)
{
    const bench_group groups[] = {BENCH_GROUP(sides, cases), {0}};
    return bench_compare_main(argc, argv, "hosts", groups);
}
