/* The collectives of an MPI library, built once with each that is installed: as collectives.c. */
#include <mpi.h>

#include "peers/collectives_side.h"

static void broadcast(collectives_side *s, size_t size_bytes, int root)
{
    MPI_Bcast(s->in, (int)size_bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void allreduce(collectives_side *s, size_t size_bytes, int root)
{
    (void)root;
    MPI_Allreduce(s->in, s->out, (int)(size_bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);
}

static void alltoall(collectives_side *s, size_t size_bytes, int root)
{
    (void)root;
    MPI_Alltoall(s->in, (int)size_bytes, MPI_BYTE, s->out, (int)size_bytes, MPI_BYTE,
                 MPI_COMM_WORLD);
}

static void gatherv(collectives_side *s, size_t size_bytes, int root)
{
    int sizes[RANKS_MAX], offsets[RANKS_MAX], end = 0;
    for (int i = 0; i < s->ranks; i++) {
        sizes[i] = (int)(i % 2 == 1 ? size_bytes / 2 : size_bytes);
        offsets[i] = end;
        end += sizes[i];
    }
    MPI_Gatherv(s->in, sizes[s->rank], MPI_BYTE, s->out, sizes, offsets, MPI_BYTE, root,
                MPI_COMM_WORLD);
}

static void reduce_scatter(collectives_side *s, size_t size_bytes, int root)
{
    (void)root;
    MPI_Reduce_scatter_block(s->in, s->out, (int)(size_bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM,
                             MPI_COMM_WORLD);
}

static int serve(bench_board *board)
{
    collectives_side s = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
    return collectives_serve(&s, board);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    bench_board *board = bench_board_open();
    int status = board != NULL ? serve(board) : bench_team_empty(argc, argv) ? 0 : 1;
    MPI_Finalize();
    return status;
}
