#include <stdio.h>

#include "laplace/solve.h"
#include "peers/mover_apps.h"

void bench_laplace_init(laplace *l, const bench_job *job, int rank, int ranks)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%u/mesh.vtu", BENCH_MESHES, (unsigned)job->size_bytes);
    laplace_init(l, path, rank, ranks);
}

/* Begins anew before there is nothing left to reduce. */
static void step(void *arg)
{
    laplace *l = arg;
    if (laplace_step(l) < 1e-10)
        laplace_begin(l);
}

double bench_laplace_run(laplace *l, const bench_job *job)
{
    laplace_begin(l);
    if (bench_first_time(job)) {
        for (int i = 0; i < 2000 && laplace_step(l) > 1e-12;)
            i++;
        if (!(laplace_error(l) < 1e-8))
            bench_wrong("Laplace");
        laplace_begin(l);
    }
    return bench_repeat(job, step, l);
}
