/* OpenSHMEM, built once with Ferry's calls and once with those of Open MPI:
 *
 *   window put      PE 0 puts `size`, and waits once at the end     (8 bytes: shmem_p)
 *   window fetch    both PEs add to one number
 *   window fence    shmem_barrier_all
 *   window swap     both PEs put `size` to each other, and a barrier */
#include <shmem.h>

#include "common/team.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DATA_BYTES = 1 << 20 };

typedef struct state {
    int me;
    char *target, *own;
    long *number;
} state;

static inline void put_one(const state *s, int pe, size_t size_bytes)
{
    if (size_bytes == sizeof(long))
        shmem_long_p((long *)(void *)s->target, 1, pe);
    else
        shmem_putmem(s->target, s->own, size_bytes, pe);
}

static double put(void *context, const bench_job *job)
{
    const state *s = context;
    const uint64_t warm = bench_warmup(job);
    uint64_t start = 0;
    for (uint64_t i = 0; i < warm + job->count && s->me == 0; i++) {
        if (i == warm)
            start = bench_now();
        put_one(s, 1, job->size_bytes);
    }
    shmem_quiet();
    uint64_t end = bench_now();
    shmem_barrier_all();
    return (double)(end - start);
}

static double fetch(void *context, const bench_job *job)
{
    const state *s = context;
    const uint64_t warm = bench_warmup(job);
    uint64_t start = 0;
    shmem_barrier_all();
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        (void)shmem_long_atomic_fetch_add(s->number, 1, 1);
    }
    uint64_t end = bench_now();
    shmem_barrier_all();
    return (double)(end - start);
}

static double barriers(const state *s, const bench_job *job, bool puts)
{
    const uint64_t warm = bench_warmup(job);
    uint64_t start = 0;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        if (puts)
            put_one(s, 1 - s->me, job->size_bytes);
        shmem_barrier_all();
    }
    return (double)(bench_now() - start);
}

static double barrier(void *context, const bench_job *job)
{
    return barriers(context, job, false);
}

static double swap(void *context, const bench_job *job)
{
    return barriers(context, job, true);
}

static int serve(bench_board *board)
{
    state s = {.me = shmem_my_pe()};
    s.target = shmem_align(4096, DATA_BYTES);
    s.number = shmem_calloc(1, sizeof(long));
    s.own = aligned_alloc(4096, DATA_BYTES);
    if (s.target == NULL || s.number == NULL || s.own == NULL)
        return 1;
    memset(s.own, 1, DATA_BYTES);
    bench_pin(s.me);
    bench_team team = {.board = board, .rank = s.me, .context = &s};
    team.kinds[BENCH_WINDOW_PUT] = put;
    team.kinds[BENCH_WINDOW_FETCH] = fetch;
    team.kinds[BENCH_WINDOW_FENCE] = barrier;
    team.kinds[BENCH_WINDOW_SWAP] = swap;
    bench_team_serve(&team);
    free(s.own);
    return 0;
}

int main(int argc, char **argv)
{
    shmem_init();
    bench_board *board = bench_board_open();
    int status = board != NULL ? serve(board) : bench_team_empty(argc, argv) ? 0 : 1;
#ifdef BENCH_EXITS /* shmem_finalize of Open MPI 4.1.4 crashes */
    shmem_barrier_all();
    _exit(status);
#else
    shmem_finalize();
    return status;
#endif
}
