/* Team: the ranks' end of a benchmark. Each rank serves the board's jobs until the benchmark goes.
 *
 * Around each job ranks 0 and 1 measure the hand-off of a cache line between their two cores while
 * all others sleep: it tells which of its states the machine was in (docs/performance.md). */
#ifndef BENCH_TEAM_H
#define BENCH_TEAM_H

#include "common/board.h"

/* Measures one job, called on every rank; what rank 0 returns counts: nanoseconds for job->count
 * operations, or bytes. It warms up first, by bench_warmup operations. */
typedef double bench_fn(void *context, const bench_job *job);

typedef struct bench_team {
    bench_board *board;
    int rank;
    void *context;
    bench_fn *kinds[BENCH_KINDS]; /* NULL: cannot be measured with this side */
    bool sized; /* memory and library are measured in the same way for every side that wants it */
} bench_team;

/* Serves until the benchmark ends the team. */
void bench_team_serve(bench_team *team);

static inline uint64_t bench_warmup(const bench_job *job)
{
    return job->count / 8 + 1;
}

/* Becomes `ranks` processes: each gets its number, and rank 0's end is that of all. Negative: the
 * system refuses. */
int bench_team_fork(int ranks);

/* Whether the rank was started only to see how long that takes: `--empty`. */
bool bench_team_empty(int argc, char **argv);

#endif
