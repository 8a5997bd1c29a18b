/* AMR: advection on two levels of refinement, a program of the movers benchmark.
 *
 * A periodic square of n^2 tiles; where the solution is steep a tile has a fine block, on the same
 * rank. Coarse cells below fine ones hold their mean. Where flow leaves a fine block, the coarse
 * cell beside it takes the flux of the fine side, so that nothing is lost. Every few steps blocks
 * appear, vanish, and go to other ranks, by weight, when the heaviest has a tenth too much. Each
 * side of the benchmark moves data between tiles and between ranks in its own way. */
#ifndef BENCH_APPS_AMR_H
#define BENCH_APPS_AMR_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BENCH_AMR_TILE = 32, /* cells along an edge of a tile */
    BENCH_AMR_FINE = 2 * BENCH_AMR_TILE,
    BENCH_AMR_REGRID = 8 /* steps between changes */
};

typedef struct bench_amr {
    int n, rank, ranks;
    uint64_t steps;
    int64_t appeared, vanished, moved;
    int *owner; /* per tile: the rank of it and its fine block */
    char *fine; /* per tile: whether it has one */

    /* The side's: per tile, NULL unless it is here. Cells with one layer of ghosts, the last
     * dimension fastest; and, for tiles without a fine block behind one, the sums of the two fine
     * values beside each first cell of dimension d. */
    double **coarse, **blocks, **edge[2];
    void (*halo)(void *arg, bool fine); /* fills ghosts from blocks of the same level, faces only */
    void (*edges)(void *arg);           /* fills `edge` */
    void (*most)(void *arg, int64_t *values, int count); /* maxima over all ranks */
    double (*sum)(void *arg, double value);
    /* Brings tiles and fine blocks to new owners, makes and drops fine blocks, sets owner and fine,
     * and prepares what fills ghosts and edges. The content of new blocks does not matter. */
    void (*change)(void *arg, const int *owner, const char *fine);
    void *arg;
} bench_amr;

/* Allocates what is not the side's, and gives first owners; frees it. */
void bench_amr_init(bench_amr *a, int n);
void bench_amr_fini(bench_amr *a);

/* Neighbour of a tile, round the edge: `step` is -1 or 1. */
int bench_amr_beside(const bench_amr *a, int tile, int d, int step);

/* Starts from the beginning. */
void bench_amr_begin(bench_amr *a);
void bench_amr_step(bench_amr *a);
/* Whether some hundred steps keep the total, while blocks appear, vanish and move. */
bool bench_amr_check(bench_amr *a);

#endif
