/* One-sided operations of an MPI library, built once with each that is installed: as windows.c. */
#include <mpi.h>

#include "common/team.h"

#include <stdlib.h>
#include <string.h>

enum { DATA_BYTES = 1 << 20, NUMBER_AT = DATA_BYTES };

typedef struct state {
    int rank;
    MPI_Win locked, fenced; /* for passive and for active targets */
    unsigned char *own;
} state;

static double put(void *context, const bench_job *job)
{
    state *s = context;
    const uint64_t warm = bench_warmup(job);
    const int size = (int)job->size_bytes;
    uint64_t start = 0;
    for (uint64_t i = 0; i < warm + job->count && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        MPI_Put(s->own, size, MPI_BYTE, 1, 0, size, MPI_BYTE, s->locked);
    }
    MPI_Win_flush(1, s->locked);
    uint64_t end = bench_now();
    MPI_Barrier(MPI_COMM_WORLD);
    return (double)(end - start);
}

static double fetch(void *context, const bench_job *job)
{
    state *s = context;
    const uint64_t warm = bench_warmup(job);
    const int64_t one = 1;
    int64_t old;
    uint64_t start = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 1, NUMBER_AT, MPI_SUM, s->locked);
        MPI_Win_flush(1, s->locked);
    }
    uint64_t end = bench_now();
    MPI_Barrier(MPI_COMM_WORLD);
    return (double)(end - start);
}

static double fences(state *s, const bench_job *job, bool puts)
{
    const uint64_t warm = bench_warmup(job);
    const int size = (int)job->size_bytes;
    uint64_t start = 0;
    MPI_Win_fence(0, s->fenced);
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        if (puts)
            MPI_Put(s->own, size, MPI_BYTE, 1 - s->rank, 0, size, MPI_BYTE, s->fenced);
        MPI_Win_fence(0, s->fenced);
    }
    return (double)(bench_now() - start);
}

static double fence(void *context, const bench_job *job)
{
    return fences(context, job, false);
}

static double swap(void *context, const bench_job *job)
{
    return fences(context, job, true);
}

static int serve(bench_board *board)
{
    state s = {0};
    void *base;
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    s.own = aligned_alloc(4096, DATA_BYTES);
    if (!s.own)
        return 1;
    memset(s.own, 1, DATA_BYTES);
    bench_pin(s.rank);
    MPI_Win_allocate(DATA_BYTES + 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &s.locked);
    memset(base, 0, DATA_BYTES + 64);
    MPI_Win_allocate(DATA_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &s.fenced);
    memset(base, 0, DATA_BYTES);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, s.locked);
    bench_team team = {.board = board, .rank = s.rank, .context = &s};
    team.kinds[BENCH_WINDOW_PUT] = put;
    team.kinds[BENCH_WINDOW_FETCH] = fetch;
    team.kinds[BENCH_WINDOW_FENCE] = fence;
    team.kinds[BENCH_WINDOW_SWAP] = swap;
    bench_team_serve(&team);
    MPI_Win_unlock_all(s.locked);
    MPI_Win_free(&s.locked);
    MPI_Win_fence(0, s.fenced);
    MPI_Win_free(&s.fenced);
    free(s.own);
    return 0;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    bench_board *board = bench_board_open();
    int status = board ? serve(board) : bench_team_empty(argc, argv) ? 0 : 1;
    MPI_Finalize();
    return status;
}
