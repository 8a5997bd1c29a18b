/* Shared by both sides of the benchmark of collectives: buffers, and the loop that is timed. `size`
 * is what one rank gives to one other: of a broadcast and an allreduce all of it, of the others one
 * piece. Roots change from operation to operation, so each rank waits for each other. A rank writes
 * what it gives before each operation, as programs do: its readers find none of it in their caches.
 */
#ifndef BENCH_COLLECTIVES_SIDE_H
#define BENCH_COLLECTIVES_SIDE_H

#include "common/team.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 8, PIECE_BYTES = 1 << 20 };

typedef struct collectives_side {
    void *library; /* the rank of Ferry's; of no use to others */
    int rank, ranks;
    unsigned char *in, *out; /* RANKS_MAX pieces each */
} collectives_side;

/* One operation of `size_bytes`. */
typedef void collectives_fn(collectives_side *s, size_t size_bytes, int root);

static inline bool collectives_buffers(collectives_side *s)
{
    const size_t bytes = (size_t)RANKS_MAX * PIECE_BYTES;
    s->in = aligned_alloc(4096, bytes);
    s->out = aligned_alloc(4096, bytes);
    if (s->in == NULL || s->out == NULL || s->ranks > RANKS_MAX)
        return false;
    memset(s->in, 0, bytes);
    memset(s->out, 0, bytes);
    return true;
}

static inline void collectives_write(collectives_side *s, const bench_job *job, uint64_t i,
                                     int root)
{
    bool many = job->kind == BENCH_ALLTOALL || job->kind == BENCH_REDUCE_SCATTER;
    if (job->kind != BENCH_BROADCAST || s->rank == root)
        memset(s->in, (int)(i % 2), many ? (size_t)s->ranks * job->size_bytes : job->size_bytes);
}

static inline double collectives_time(collectives_side *s, const bench_job *job, collectives_fn *fn)
{
    const uint64_t warm = bench_warmup(job);
    uint64_t start = 0;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        int root = (int)(i % (uint64_t)s->ranks);
        collectives_write(s, job, i, root);
        fn(s, job->size_bytes, root);
    }
    return (double)(bench_now() - start);
}

/* The operations, in the file that includes this one. */
static collectives_fn broadcast, allreduce, alltoall, gatherv, reduce_scatter;

#define TIMED(fn)                                                                                  \
    static double time_##fn(void *context, const bench_job *job)                                   \
    {                                                                                              \
        return collectives_time(context, job, fn);                                                 \
    }
TIMED(broadcast)
TIMED(allreduce)
TIMED(alltoall)
TIMED(gatherv)
TIMED(reduce_scatter)

/* Serves the jobs of `board` as rank `s->rank`. Returns the exit status. */
static int collectives_serve(collectives_side *s, bench_board *board)
{
    if (!collectives_buffers(s))
        return 1;
    bench_pin(s->rank);
    bench_team team = {.board = board, .rank = s->rank, .context = s};
    team.kinds[BENCH_BROADCAST] = time_broadcast;
    team.kinds[BENCH_ALLREDUCE] = time_allreduce;
    team.kinds[BENCH_ALLTOALL] = time_alltoall;
    team.kinds[BENCH_GATHERV] = time_gatherv;
    team.kinds[BENCH_REDUCE_SCATTER] = time_reduce_scatter;
    bench_team_serve(&team);
    free(s->in);
    free(s->out);
    return 0;
}

#endif
