/* Ferry's side of Laplace's equation: as the example has it. */
#include "laplace/halo.h"
#include "peers/mover_apps.h"
#include "peers/mover_side.h"

double bench_mover_laplace(void *context, const bench_job *job)
{
    ferry *f = *(ferry **)context;
    laplace l;
    laplace_halo halo;
    bench_laplace_init(&l, job, ferry_rank(f), ferry_ranks(f));
    laplace_halo_bind(&halo, f, &l);
    double ns = bench_laplace_run(&l, job);
    laplace_halo_free(&halo);
    laplace_fini(&l);
    return ns;
}
