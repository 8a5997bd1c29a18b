/* The conformance suite on port mpi: `mpirun -n N mpi_conformance_test [CASE]`.
 *
 * The program is an MPI program that opens the port on communicators of its own, one per case, and
 * uses MPI before, between and after. Cases that want more ranks than there are run on all. With
 * FERRY_MPI_SHM=0 every rank is a node of its own. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "conformance.h"
#include "port/nodes/mpi/open.h"

static void run_case(const fy_conformance *what, MPI_Comm comm, bool share)
{
    const fy_mpi_options options = {
        .communicator = &comm,
        .shm = {.heap_bytes = (size_t)1 << 30},
        .share = share,
    };
    fy_nodes_job *job;
    fy_port *port;
    int error = fy_mpi_open(&options, &job, &port);
    if (error != 0)
        fprintf(stderr, "open: %s\n", fy_error_text());
    fy_expect(error == 0);
    what->run(port);
    port->ops->transport.close(port);
    fy_nodes_leave(job);
}

/* The caller's own messages, on the communicator that the port was opened on. */
static void use_mpi(MPI_Comm comm)
{
    int rank, ranks, sum = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    fy_expect(sum == ranks * (ranks - 1) / 2);
}

/* Meets all ranks without spinning, which would take the processor from those in a case. */
static void meet_all(void)
{
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (;;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done)
            return;
        usleep(500);
    }
}

/* The member of the cases' communicators that a rank is: from the first and the last in turn, so
 * that two of them are on two nodes when there are two. */
static int member(int rank, int ranks)
{
    return rank < (ranks + 1) / 2 ? 2 * rank : 2 * (ranks - 1 - rank) + 1;
}

/* A case of exactly so many ranks can run on no fewer. */
static bool fits(const fy_conformance *what, int ranks)
{
    return what->ranks <= ranks || what->ranks > 3;
}

int main(int argc, char **argv)
{
    int rank, ranks, level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *share = getenv("FERRY_MPI_SHM");
    fy_conformance_check_name(argc > 1 ? argv[1] : NULL);
    for (const fy_conformance *c = fy_conformance_cases; c->name != NULL; c++) {
        if ((argc > 1 && strcmp(argv[1], c->name) != 0) || !fits(c, ranks))
            continue;
        if (rank == 0) {
            printf("%s\n", c->name);
            fflush(stdout);
        }
        MPI_Comm comm;
        int at = member(rank, ranks);
        MPI_Comm_split(MPI_COMM_WORLD, at < c->ranks ? 0 : MPI_UNDEFINED, at, &comm);
        if (comm != MPI_COMM_NULL) {
            run_case(c, comm, share == NULL || strcmp(share, "0") != 0);
            use_mpi(comm);
            MPI_Comm_free(&comm);
        }
        meet_all();
        use_mpi(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
