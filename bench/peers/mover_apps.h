/* The programs of apps.h over Ferry's movers and over MPI: what the two sides' files share. */
#ifndef BENCH_MOVER_APPS_H
#define BENCH_MOVER_APPS_H

#include "common/team.h"
#include "peers/apps.h"

/* Runs `operation` as often as the job says, after the warm-up. */
typedef void bench_operation_fn(void *arg);
static inline double bench_repeat(const bench_job *job, bench_operation_fn *operation, void *arg)
{
    uint64_t start = 0, warm = bench_warmup(job);
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        operation(arg);
    }
    return (double)(bench_now() - start);
}

/* Whether the job is of another kind or size than the one before: then the program is checked, and
 * a wrong one ends its side. */
bool bench_first_time(const bench_job *job);
void bench_wrong(const char *program);

/* Cleared memory; never NULL. free() it. */
void *bench_memory(size_t count, size_t bytes);

/* Checks at the first time, and measures steps from the beginning. */
struct bench_amr;
double bench_amr_run(struct bench_amr *a, const bench_job *job);

/* Laplace: one iteration of conjugate gradients is one operation. BENCH_MESHES is where the meshes
 * are, when there are any. */
struct laplace;
/* Reads the mesh of the job for this rank. */
void bench_laplace_init(struct laplace *l, const bench_job *job, int rank, int ranks);
/* Checks at the first time, and measures, when all that the caller sets is set. */
double bench_laplace_run(struct laplace *l, const bench_job *job);

#endif
