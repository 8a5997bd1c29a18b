/* Laplace's equation on a mesh of triangles, such as the mesh application writes: linear finite
 * elements, conjugate gradients. Ghost nodes are filled by one mover, and what triangles contribute
 * to nodes of other ranks is added there by another: halo.c. mesh.c reads, and solve.c computes.
 *
 *   ferry run -n 2 build/apps/mesh --input apps/data/jutland.poly --out DIR
 *   ferry run -n 2 build/apps/laplace DIR/mesh.vtu
 *
 * Checks residual and solution. */
#include <stdio.h>

#include <ferry/ferry.h>

#include "common/parameters.h"
#include "laplace/halo.h"

/* Solves, and checks residual and solution. */
static bool run(ferry *f, laplace *l)
{
    enum { ITERATIONS_MAX = 20000 };
    int iterations = 0;
    laplace_begin(l);
    while (laplace_step(l) > 1e-12 && iterations < ITERATIONS_MAX)
        iterations++;
    double left = laplace_residual(l), error = laplace_error(l);
    bool good = left < 1e-10 && error < 1e-8;
    if (ferry_rank(f) == 0)
        printf("%lld nodes, %lld triangles on %d ranks: %d iterations, residual %.1e, error %.1e: "
               "%s\n",
               (long long)l->nodes, (long long)l->triangles, ferry_ranks(f), iterations, left,
               error, good ? "right" : "WRONG");
    return good;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    laplace l;
    laplace_halo halo;
    const char *mesh = NULL;
    const parameter table[] = {
        {"MESH", "file that the mesh application wrote", .text = &mesh, .required = true}, {0}};
    int status = parameters_read(f, argc, argv, "Laplace's equation on a mesh.", table);
    if (status >= 0)
        return status;
    /* Rank 0 reads first: what is wrong with the file is said once, and ends the job. */
    if (ferry_rank(f) == 0)
        laplace_init(&l, mesh, 0, ferry_ranks(f));
    if (ferry_barrier(f) != 0)
        return 1;
    if (ferry_rank(f) != 0)
        laplace_init(&l, mesh, ferry_rank(f), ferry_ranks(f));
    laplace_halo_bind(&halo, f, &l);
    bool good = run(f, &l);
    laplace_halo_free(&halo);
    laplace_fini(&l);
    return !good;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
