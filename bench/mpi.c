/* Port mpi: what Ferry adds to the same exchange in plain MPI. Ferry's ranks are started by the
 * library's own mpirun and use MPI between them, as ranks on different nodes do: without the shared
 * memory that they would take on one. docs/performance.md says where the bound comes from. */
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
    {.peer = "openmpi", .program = "peers/openmpi", .prefix = OPEN_MPI},
};

static const bench_launcher mpich[] = {
    {.peer = "ferry",
     .program = "peers/ferry",
     .prefix = {"mpiexec.mpich"},
     .environment = {"FERRY_MPI_SHM=0"}},
    {.peer = "mpich", .program = "peers/mpich", .prefix = {"mpiexec.mpich"}},
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

enum { CASES = sizeof cases / sizeof *cases };

static const char *name_of(int index)
{
    return index < CASES ? cases[index].name : NULL;
}

static int compare_with(const bench_options *options, const bench_launcher *launchers)
{
    bench_compare *compare = bench_compare_create(options, "mpi", launchers, 2);
    if (!compare)
        return 1;
    for (int i = 0; i < CASES; i++)
        if (bench_wanted(options, cases[i].name))
            bench_compare_case(compare, &cases[i]);
    bench_compare_destroy(compare);
    return 0;
}

int main(int argc, char **argv)
{
    bench_options options;
    int status = bench_options_read(argc, argv, "mpi", name_of, 41, 9, &options);
    if (status >= 0)
        return status;
    bench_report_head(&options, "mpi");
    status = compare_with(&options, open_mpi);
    return status != 0 ? status : compare_with(&options, mpich);
}
