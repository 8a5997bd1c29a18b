/* How long this thread was in MPI: loaded before the library (LD_PRELOAD), stands before the calls
 * with which Ferry's port sends and receives, and counts. pingpong.c asks by papers_mpi_ns. */
#include <stdint.h>
#include <time.h>

#include <mpi.h>

static _Thread_local uint64_t spent_ns;

uint64_t papers_mpi_ns(void);

uint64_t papers_mpi_ns(void)
{
    return spent_ns;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

#define TIMED(call)                                                                                \
    do {                                                                                           \
        uint64_t start_ns = now_ns();                                                              \
        int error = call;                                                                          \
        spent_ns += now_ns() - start_ns;                                                           \
        return error;                                                                              \
    } while (0)

int MPI_Isend(const void *data, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    TIMED(PMPI_Isend(data, count, type, rank, tag, comm, request));
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    TIMED(PMPI_Irecv(data, count, type, rank, tag, comm, request));
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status)
{
    TIMED(PMPI_Test(request, done, status));
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    TIMED(PMPI_Wait(request, status));
}
