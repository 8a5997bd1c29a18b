/* Apps: whole programs of the movers benchmark, for any number of ranks in slabs along the first
 * dimension. Everything but the communication is here, so that two sides differ in that alone: a
 * side fills in the arrays and the functions that exchange. Each can check itself. */
#ifndef BENCH_APPS_H
#define BENCH_APPS_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* n[0] x n[1] x n[2] doubles inside one layer of ghosts, the last dimension fastest. */
typedef struct bench_slab {
    double *data;
    size_t n[3];
} bench_slab;

static inline size_t bench_slab_size(const bench_slab *s)
{
    return (s->n[0] + 2) * (s->n[1] + 2) * (s->n[2] + 2);
}

/* The element i, j, k, counted from the ghosts. */
static inline double *bench_slab_at(const bench_slab *s, size_t i, size_t j, size_t k)
{
    return s->data + (i * (s->n[1] + 2) + j) * (s->n[2] + 2) + k;
}

/* The sum over all ranks. */
typedef double bench_sum_fn(void *arg, double value);

/* Red-black Gauss-Seidel, 7 points, edges held at 0, one source in the middle. */
typedef struct bench_redblack {
    bench_slab u, rhs;
    size_t first;            /* plane of the cube that is the slab's first */
    void (*halo)(void *arg); /* fills u's first and last ghost plane */
    bench_sum_fn *sum;
    void *arg;
} bench_redblack;

void bench_redblack_fill(bench_redblack *b);
/* Returns the sum of squared changes. */
double bench_redblack_sweep(bench_redblack *b);
/* Whether two sweeps from the start change as much as on one rank. Ends filled. */
bool bench_redblack_check(bench_redblack *b);

/* NAS MG: one V-cycle is one operation. */
enum { BENCH_MG_LEVELS = 9 };
typedef enum bench_mg_array { BENCH_MG_U, BENCH_MG_R } bench_mg_array;
typedef struct bench_mg {
    int top;                                              /* 2^top points along an edge */
    bench_slab v, u[BENCH_MG_LEVELS], r[BENCH_MG_LEVELS]; /* from level 1 */
    double *rows;                                         /* 2 * (2^top + 2) */
    size_t first;
    void (*halo)(void *arg, bench_mg_array which, int level); /* periodic, corners too */
    bench_sum_fn *sum;
    void *arg;
} bench_mg;

/* Extents of a level's slab. */
void bench_mg_extents(int level, int ranks, size_t n[3]);
/* The level of cubes with so many points along an edge. */
int bench_mg_top(uint64_t n);
/* Fills, and computes the first residual. */
void bench_mg_begin(bench_mg *m);
void bench_mg_cycle(bench_mg *m);
/* Whether the norm after the cycles of the class is the published one. */
bool bench_mg_check(bench_mg *m);

/* NAS FT: one step in time with its inverse transform and checksum is one operation. */
typedef double complex bench_number;
typedef struct bench_ft {
    size_t nx, ny, nz;
    int rank, ranks;
    bench_number *space;             /* (z, y, x), slabs of z */
    bench_number *turned, *spectrum; /* (x, y, z), slabs of x */
    bench_number *scratch;
    double *decay; /* nx + ny + nz */
    uint64_t steps;
    void (*turn)(void *arg, bool back); /* space to turned, or back */
    bench_sum_fn *sum;
    void *arg;
} bench_ft;

/* The class with so many points along x; false: there is none. */
bool bench_ft_extents(uint64_t nx, bench_ft *ft);
/* Sets the arrays: the two that travel are given, the others allocated until release. */
void bench_ft_memory(bench_ft *ft, bench_number *space, bench_number *turned);
void bench_ft_release(bench_ft *ft);
/* Fills and transforms once. */
void bench_ft_begin(bench_ft *ft);
/* Later steps go forwards and backwards in turn, so that numbers stay in range forever. */
bench_number bench_ft_step(bench_ft *ft);
/* Whether the checksums are the published ones; begins, and steps as often. */
bool bench_ft_check(bench_ft *ft);

/* SUMMA on a column of ranks: C += A B with rows in slabs; panels of rows of B go round. */
typedef struct bench_summa {
    size_t n, panel, part; /* part: rows of a rank */
    int rank;
    double *a, *b, *c, *panels[2];
    void (*start)(void *arg, size_t step); /* brings rows to panels[step % 2], or has them in b */
    void (*wait)(void *arg, size_t step);
    void *arg;
} bench_summa;

enum { BENCH_SUMMA_PANEL = 64 };
void bench_summa_fill(bench_summa *s);
void bench_summa_multiply(bench_summa *s);
/* Whether C is right after one multiplication from zero. */
bool bench_summa_check(bench_summa *s);

#endif
