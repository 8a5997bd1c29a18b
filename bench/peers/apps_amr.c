#include "peers/apps_amr.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "peers/mover_apps.h"

enum { TILE = BENCH_AMR_TILE, FINE = BENCH_AMR_FINE, WIDE = TILE + 2, FINE_WIDE = FINE + 2 };

static const double courant[2] = {0.2, 0.1}; /* of a coarse cell */
static const double steep = 2.5;             /* slope from which a tile is refined */

enum { FINE_WEIGHT = 4 }; /* of a fine block, in tiles */

/* Stretches of tiles with as much work each as can be; those of before, when they do. */
static void share(const bench_amr *a, const char *fine, int *owner)
{
    const int count = a->n * a->n;
    int64_t all = 0, before = 0, heaviest = 0;
    int64_t *weights = bench_memory((size_t)a->ranks, sizeof *weights);
    for (int t = 0; t < count; t++) {
        all += 1 + FINE_WEIGHT * fine[t];
        weights[a->owner[t]] += 1 + FINE_WEIGHT * fine[t];
    }
    for (int r = 0; r < a->ranks; r++)
        heaviest = heaviest > weights[r] ? heaviest : weights[r];
    free(weights);
    for (int t = 0; t < count; t++) {
        owner[t] =
            heaviest * a->ranks * 10 > all * 11 ? (int)(before * a->ranks / all) : a->owner[t];
        before += 1 + FINE_WEIGHT * fine[t];
    }
}

void bench_amr_init(bench_amr *a, int n)
{
    const size_t count = (size_t)(n * n);
    a->n = n;
    a->owner = bench_memory(count, sizeof *a->owner);
    a->fine = bench_memory(count, 1);
    a->coarse = bench_memory(count, sizeof *a->coarse);
    a->blocks = bench_memory(count, sizeof *a->blocks);
    a->edge[0] = bench_memory(count, sizeof *a->edge[0]);
    a->edge[1] = bench_memory(count, sizeof *a->edge[1]);
    share(a, a->fine, a->owner);
}

void bench_amr_fini(bench_amr *a)
{
    void *all[] = {a->owner, a->fine, a->coarse, a->blocks, a->edge[0], a->edge[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

int bench_amr_beside(const bench_amr *a, int tile, int d, int step)
{
    int at[2] = {tile / a->n, tile % a->n};
    at[d] = (at[d] + step + a->n) % a->n;
    return at[0] * a->n + at[1];
}

/* Coarse cells below fine ones get their mean. */
static void restrict_fine(const bench_amr *a)
{
    for (int t = 0; t < a->n * a->n; t++) {
        if (!a->coarse[t] || !a->fine[t])
            continue;
        for (int i = 0; i < TILE; i++)
            for (int j = 0; j < TILE; j++) {
                const double *f = a->blocks[t] + (2 * i + 1) * FINE_WIDE + 2 * j + 1;
                a->coarse[t][(i + 1) * WIDE + j + 1] =
                    (f[0] + f[1] + f[FINE_WIDE] + f[FINE_WIDE + 1]) / 4;
            }
    }
}

/* The fine cell i, j of a tile, counted from the ghosts, from the coarse one that contains it. */
static void refine(const bench_amr *a, int t, int i, int j)
{
    a->blocks[t][i * FINE_WIDE + j] = a->coarse[t][(i + 1) / 2 * WIDE + (j + 1) / 2];
}

/* Ghosts of fine blocks from coarse cells; those beside fine blocks get better ones afterwards. */
static void refine_ghosts(const bench_amr *a)
{
    for (int t = 0; t < a->n * a->n; t++)
        for (int k = 1; a->blocks[t] && k <= FINE; k++) {
            refine(a, t, 0, k);
            refine(a, t, FINE + 1, k);
            refine(a, t, k, 0);
            refine(a, t, k, FINE + 1);
        }
}

/* One step against the flow; from the far end on, so that nothing is read that has changed. */
static void advance(double *u, int cells, double c0, double c1)
{
    const int wide = cells + 2;
    double row[FINE + 1];
    for (int i = cells; i >= 1; i--) {
        double *p = u + i * wide + 1, *low = p - wide;
        for (int j = 0; j < cells; j++)
            row[j] = p[j] - c0 * (p[j] - low[j]) - c1 * (p[j] - p[j - 1]);
        memcpy(p, row, (size_t)cells * sizeof *p);
    }
}

static void advance_tile(const bench_amr *a, int t)
{
    double *u = a->coarse[t];
    for (int d = 0; d < 2 && !a->fine[t]; d++)
        for (int k = 0; a->fine[bench_amr_beside(a, t, d, -1)] && k < TILE; k++)
            u[d == 0 ? k + 1 : (k + 1) * WIDE] = a->edge[d][t][k] / 2;
    advance(u, TILE, courant[0], courant[1]);
    if (a->blocks[t])
        advance(a->blocks[t], FINE, 2 * courant[0], 2 * courant[1]);
}

/* Tiles that are steep, or next to one. */
static void flag(const bench_amr *a, char *fine)
{
    const int n = a->n;
    const double least = steep / (n * TILE);
    int64_t *marks = bench_memory((size_t)(n * n), sizeof *marks);
    for (int t = 0; t < n * n; t++)
        for (int i = 1; a->coarse[t] && i <= TILE; i++)
            for (int j = 1; j <= TILE; j++) {
                const double *u = a->coarse[t] + i * WIDE + j;
                if (fabs(u[0] - u[-1]) > least || fabs(u[0] - u[-WIDE]) > least)
                    marks[t] = 1;
            }
    a->most(a->arg, marks, n * n);
    for (int t = 0; t < n * n; t++) {
        fine[t] = 0;
        for (int k = 0; k < 9; k++)
            fine[t] |= (char)marks[(t / n + n + k / 3 - 1) % n * n + (t % n + n + k % 3 - 1) % n];
    }
    free(marks);
}

static void regrid(bench_amr *a)
{
    const int count = a->n * a->n;
    char *fine = bench_memory((size_t)count, 1), *had = bench_memory((size_t)count, 1);
    int *owner = bench_memory((size_t)count, sizeof *owner);
    restrict_fine(a);
    a->halo(a->arg, false);
    flag(a, fine);
    share(a, fine, owner);
    memcpy(had, a->fine, (size_t)count);
    for (int t = 0; t < count; t++) {
        a->appeared += fine[t] && !had[t];
        a->vanished += !fine[t] && had[t];
        a->moved += owner[t] != a->owner[t];
    }
    if (memcmp(fine, had, (size_t)count) != 0 ||
        memcmp(owner, a->owner, (size_t)count * sizeof *owner) != 0)
        a->change(a->arg, owner, fine);
    for (int t = 0; t < count; t++)
        for (int k = 0; a->blocks[t] && !had[t] && k < FINE * FINE; k++)
            refine(a, t, k / FINE + 1, k % FINE + 1);
    free(fine);
    free(had);
    free(owner);
}

void bench_amr_begin(bench_amr *a)
{
    const int cells = a->n * TILE;
    a->steps = 0;
    for (int t = 0; t < a->n * a->n; t++)
        for (int k = 0; a->coarse[t] && k < TILE * TILE; k++) {
            int i = k / TILE, j = k % TILE;
            double x = (double)(t / a->n * TILE + i) / cells - 0.3;
            double y = (double)(t % a->n * TILE + j) / cells - 0.3;
            a->coarse[t][(i + 1) * WIDE + j + 1] = exp(-200 * (x * x + y * y));
        }
    char *none = bench_memory((size_t)(a->n * a->n), 1);
    a->change(a->arg, a->owner, none);
    free(none);
}

void bench_amr_step(bench_amr *a)
{
    if (a->steps++ % BENCH_AMR_REGRID == 0)
        regrid(a);
    restrict_fine(a);
    a->halo(a->arg, false);
    refine_ghosts(a);
    a->halo(a->arg, true);
    a->edges(a->arg);
    for (int t = 0; t < a->n * a->n; t++)
        if (a->coarse[t])
            advance_tile(a, t);
}

/* Everything there is, in units of a coarse cell. */
static double total(const bench_amr *a)
{
    double sum = 0;
    for (int t = 0; t < a->n * a->n; t++) {
        const double *u = a->blocks[t] ? a->blocks[t] : a->coarse[t];
        const int cells = a->blocks[t] ? FINE : TILE;
        for (int k = 0; u && k < cells * cells; k++)
            sum += u[(k / cells + 1) * (cells + 2) + k % cells + 1] / (a->blocks[t] ? 4 : 1);
    }
    return a->sum(a->arg, sum);
}

bool bench_amr_check(bench_amr *a)
{
    bench_amr_begin(a);
    a->appeared = a->vanished = a->moved = 0;
    const double before = total(a);
    for (int i = 0; i < 300 * a->n / 8; i++)
        bench_amr_step(a);
    return fabs(total(a) / before - 1) < 1e-12 && a->appeared > 0 && a->vanished > 0 &&
           (a->moved > 0 || a->ranks == 1);
}
