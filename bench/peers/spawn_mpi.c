/* A further process by MPI_Comm_spawn, until its first message has been received. */
#include <mpi.h>

#include "common/team.h"

#include <stdlib.h>
#include <unistd.h>

static double spawn_process(void *context, const bench_job *job)
{
    double sum = 0;
    char *program = context;
    for (uint64_t i = 0; i < job->count; i++) {
        MPI_Comm child;
        char byte;
        uint64_t start = bench_now();
        MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child,
                       MPI_ERRCODES_IGNORE);
        MPI_Recv(&byte, 1, MPI_CHAR, 0, 0, child, MPI_STATUS_IGNORE);
        sum += (double)(bench_now() - start);
        MPI_Comm_disconnect(&child);
    }
    return sum;
}

int main(int argc, char **argv)
{
    char path[4096], byte = 0;
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Send(&byte, 1, MPI_CHAR, 0, 0, parent);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    bench_team team = {.board = bench_board_open(), .context = path};
    if (team.board == NULL || length <= 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    path[length] = '\0';
    team.kinds[BENCH_SPAWN] = spawn_process;
    bench_team_serve(&team);
    MPI_Finalize();
    return 0;
}
