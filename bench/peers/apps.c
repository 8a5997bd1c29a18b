#include "peers/apps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef BENCH_BLAS
#include <cblas.h>
#endif

/* Red-black. */

void bench_redblack_fill(bench_redblack *b)
{
    size_t middle = b->u.n[1] / 2;
    memset(b->u.data, 0, bench_slab_size(&b->u) * sizeof(double));
    memset(b->rhs.data, 0, bench_slab_size(&b->rhs) * sizeof(double));
    if (middle >= b->first && middle < b->first + b->u.n[0])
        *bench_slab_at(&b->rhs, middle - b->first + 1, middle + 1, middle + 1) = 1;
}

static double relax(const bench_redblack *b, size_t colour)
{
    const bench_slab *u = &b->u;
    const size_t sj = u->n[2] + 2, si = sj * (u->n[1] + 2);
    double sum = 0;
    for (size_t i = 1; i <= u->n[0]; i++)
        for (size_t j = 1; j <= u->n[1]; j++) {
            size_t k = 1 + (i + j + b->first + colour) % 2;
            double *p = bench_slab_at(u, i, j, k);
            const double *rhs = bench_slab_at(&b->rhs, i, j, k);
            for (; k <= u->n[2]; k += 2, p += 2, rhs += 2) {
                double next = (p[-si] + p[si] + p[-sj] + p[sj] + p[-1] + p[1] - *rhs) / 6;
                sum += (next - *p) * (next - *p);
                *p = next;
            }
        }
    return sum;
}

double bench_redblack_sweep(bench_redblack *b)
{
    double change = 0;
    for (size_t colour = 0; colour < 2; colour++) {
        b->halo(b->arg);
        change += relax(b, colour);
    }
    return b->sum(b->arg, change);
}

static void no_halo(void *arg)
{
    (void)arg;
}

static double no_sum(void *arg, double value)
{
    (void)arg;
    return value;
}

static bool close_to(double found, double wanted, double error)
{
    return fabs(found - wanted) <= error * fabs(wanted);
}

bool bench_redblack_check(bench_redblack *b)
{
    const size_t n = b->u.n[1];
    bench_redblack whole = {.halo = no_halo, .sum = no_sum};
    whole.u = whole.rhs = (bench_slab){.n = {n, n, n}};
    whole.u.data = malloc(bench_slab_size(&whole.u) * sizeof(double));
    whole.rhs.data = malloc(bench_slab_size(&whole.u) * sizeof(double));
    if (!whole.u.data || !whole.rhs.data)
        exit(1);
    bench_redblack_fill(&whole);
    bench_redblack_fill(b);
    bool good = true;
    for (int sweep = 0; sweep < 3; sweep++)
        good = close_to(bench_redblack_sweep(b), bench_redblack_sweep(&whole), 1e-9) && good;
    free(whole.u.data);
    free(whole.rhs.data);
    bench_redblack_fill(b);
    return good;
}

/* The generator of the NAS benchmarks: x <- 5^13 x mod 2^46. */
static const uint64_t mask46 = (UINT64_C(1) << 46) - 1;
static const uint64_t multiplier = 1220703125, seed_0 = 314159265;

/* MG. Coarse point c lies at fine point 2 c + 1. */

void bench_mg_extents(int level, int ranks, size_t n[3])
{
    n[1] = n[2] = (size_t)1 << level;
    n[0] = n[1] / (size_t)ranks;
}

int bench_mg_top(uint64_t n)
{
    int top = 1;
    while (UINT64_C(2) << top <= n && top < BENCH_MG_LEVELS - 1)
        top++;
    return top;
}

enum { EXTREMES = 10 };

typedef struct extreme {
    double value;
    size_t at;
} extreme;

static void note(extreme *best, double value, size_t at)
{
    int i = EXTREMES - 1;
    if (value <= best[i].value)
        return;
    for (; i > 0 && best[i - 1].value < value; i--)
        best[i] = best[i - 1];
    best[i] = (extreme){value, at};
}

/* Every rank looks through the whole cube: that needs no exchange, and is not timed. */
static void fill_charges(bench_mg *m)
{
    const size_t n = m->v.n[1];
    extreme best[2][EXTREMES];
    uint64_t seed = seed_0;
    for (int i = 0; i < EXTREMES; i++)
        best[0][i].value = best[1][i].value = -2;
    for (size_t at = 0; at < n * n * n; at++) {
        seed = seed * multiplier & mask46;
        note(best[0], (double)seed * 0x1p-46, at);
        note(best[1], -(double)seed * 0x1p-46, at);
    }
    memset(m->v.data, 0, bench_slab_size(&m->v) * sizeof(double));
    memset(m->u[m->top].data, 0, bench_slab_size(&m->v) * sizeof(double));
    for (int sign = 0; sign < 2; sign++)
        for (int i = 0; i < EXTREMES; i++) {
            size_t at = best[sign][i].at, plane = at / n / n;
            if (plane >= m->first && plane < m->first + m->v.n[0])
                *bench_slab_at(&m->v, plane - m->first + 1, at / n % n + 1, at % n + 1) =
                    sign ? -1 : 1;
        }
}

/* For the row at `p`, ends included: sums of the neighbours that differ in one (face) or both
 * (edge) of the other two dimensions. */
static void gather(const bench_slab *s, const double *p, double *face, double *edge)
{
    const ptrdiff_t b = (ptrdiff_t)s->n[2] + 2, a = b * ((ptrdiff_t)s->n[1] + 2);
    for (ptrdiff_t k = -1; k <= (ptrdiff_t)s->n[2]; k++) {
        face[k + 1] = p[k - a] + p[k + a] + p[k - b] + p[k + b];
        edge[k + 1] = p[k - a - b] + p[k - a + b] + p[k + a - b] + p[k + a + b];
    }
}

static void residual(bench_mg *m, int level, const bench_slab *v)
{
    const bench_slab *u = &m->u[level];
    double *face = m->rows, *edge = face + u->n[2] + 2;
    m->halo(m->arg, BENCH_MG_U, level);
    for (size_t i = 1; i <= u->n[0]; i++)
        for (size_t j = 1; j <= u->n[1]; j++) {
            const double *p = bench_slab_at(u, i, j, 1), *rhs = bench_slab_at(v, i, j, 1);
            double *r = bench_slab_at(&m->r[level], i, j, 1);
            gather(u, p, face, edge);
            for (size_t k = 0; k < u->n[2]; k++)
                r[k] = rhs[k] + 8.0 / 3 * p[k] - 1.0 / 6 * (edge[k + 1] + face[k] + face[k + 2]) -
                       1.0 / 12 * (edge[k] + edge[k + 2]);
        }
}

static void smooth(bench_mg *m, int level)
{
    const bench_slab *r = &m->r[level];
    double *face = m->rows, *edge = face + r->n[2] + 2;
    m->halo(m->arg, BENCH_MG_R, level);
    for (size_t i = 1; i <= r->n[0]; i++)
        for (size_t j = 1; j <= r->n[1]; j++) {
            const double *p = bench_slab_at(r, i, j, 1);
            double *u = bench_slab_at(&m->u[level], i, j, 1);
            gather(r, p, face, edge);
            for (size_t k = 0; k < r->n[2]; k++)
                u[k] += -3.0 / 8 * p[k] + 1.0 / 32 * (p[k - 1] + p[k + 1] + face[k + 1]) -
                        1.0 / 64 * (edge[k + 1] + face[k] + face[k + 2]);
        }
}

static void restrict_residual(bench_mg *m, int level)
{
    const bench_slab *fine = &m->r[level], *coarse = &m->r[level - 1];
    double *face = m->rows, *edge = face + fine->n[2] + 2;
    m->halo(m->arg, BENCH_MG_R, level);
    for (size_t i = 1; i <= coarse->n[0]; i++)
        for (size_t j = 1; j <= coarse->n[1]; j++) {
            const double *r = bench_slab_at(fine, 2 * i, 2 * j, 1);
            double *c = bench_slab_at(coarse, i, j, 1);
            gather(fine, r, face, edge);
            for (size_t k = 0; k < coarse->n[2]; k++) {
                size_t at = 2 * k + 1;
                c[k] = 0.5 * r[at] + 0.25 * (r[at - 1] + r[at + 1] + face[at + 1]) +
                       0.125 * (face[at] + face[at + 2] + edge[at + 1]) +
                       0.0625 * (edge[at] + edge[at + 2]);
            }
        }
}

/* Adds a coarse row, interpolated along it, to a fine one. */
static void add_row(double *u, const double *z, size_t count, double weight)
{
    for (size_t k = 0; k < count; k++) {
        u[2 * k] += weight * 0.5 * (z[k - 1] + z[k]);
        u[2 * k + 1] += weight * z[k];
    }
}

static void interpolate(bench_mg *m, int level)
{
    const bench_slab *fine = &m->u[level], *coarse = &m->u[level - 1];
    m->halo(m->arg, BENCH_MG_U, level - 1);
    for (size_t i = 1; i <= fine->n[0]; i++)
        for (size_t j = 1; j <= fine->n[1]; j++) {
            /* An odd one, counted from the ghosts, lies between two coarse ones. */
            double weight = (i % 2 ? 0.5 : 1) * (j % 2 ? 0.5 : 1);
            for (size_t c = i / 2; c <= (i + 1) / 2; c++)
                for (size_t d = j / 2; d <= (j + 1) / 2; d++)
                    add_row(bench_slab_at(fine, i, j, 1), bench_slab_at(coarse, c, d, 1),
                            coarse->n[2], weight);
        }
}

static void clear(const bench_slab *s)
{
    memset(s->data, 0, bench_slab_size(s) * sizeof(double));
}

void bench_mg_cycle(bench_mg *m)
{
    for (int k = m->top; k > 1; k--)
        restrict_residual(m, k);
    clear(&m->u[1]);
    smooth(m, 1);
    for (int k = 2; k <= m->top; k++) {
        if (k < m->top)
            clear(&m->u[k]);
        interpolate(m, k);
        residual(m, k, k < m->top ? &m->r[k] : &m->v);
        smooth(m, k);
    }
    residual(m, m->top, &m->v);
}

void bench_mg_begin(bench_mg *m)
{
    fill_charges(m);
    residual(m, m->top, &m->v);
}

bool bench_mg_check(bench_mg *m)
{
    /* NAS Parallel Benchmarks, MG: classes S, W, A, four cycles each */
    const double norm = m->top == 5   ? 0.5307707005734e-04
                        : m->top == 7 ? 0.6467329375339e-05
                                      : 0.2433365309069e-05;
    bench_mg_begin(m);
    for (int i = 0; i < 4; i++)
        bench_mg_cycle(m);
    const bench_slab *r = &m->r[m->top];
    double sum = 0, n = (double)r->n[1];
    for (size_t i = 1; i <= r->n[0]; i++)
        for (size_t j = 1; j <= r->n[1]; j++)
            for (size_t k = 1; k <= r->n[2]; k++)
                sum += *bench_slab_at(r, i, j, k) * *bench_slab_at(r, i, j, k);
    return close_to(sqrt(m->sum(m->arg, sum) / (n * n * n)), norm, 1e-8);
}

/* SUMMA. */

void bench_summa_fill(bench_summa *s)
{
    for (size_t i = 0; i < s->part; i++)
        for (size_t j = 0; j < s->n; j++) {
            double row = (double)((size_t)s->rank * s->part + i), column = (double)j;
            s->a[i * s->n + j] = row + column;
            s->b[i * s->n + j] = row - column;
            s->c[i * s->n + j] = 0;
        }
}

/* C += columns of A times rows of B. */
static void multiply(const bench_summa *s, const double *a, const double *b)
{
#ifdef BENCH_BLAS
    const int n = (int)s->n;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)s->part, n, (int)s->panel, 1, a, n,
                b, n, 1, s->c, n);
#else
    for (size_t i = 0; i < s->part; i++)
        for (size_t k = 0; k < s->panel; k += 4) {
            const double *w = a + i * s->n + k, *v = b + k * s->n;
            double *restrict c = s->c + i * s->n;
            for (size_t j = 0; j < s->n; j++)
                c[j] += w[0] * v[j] + w[1] * v[s->n + j] + w[2] * v[2 * s->n + j] +
                        w[3] * v[3 * s->n + j];
        }
#endif
}

void bench_summa_multiply(bench_summa *s)
{
    const size_t steps = s->n / s->panel;
    s->start(s->arg, 0);
    for (size_t k = 0; k < steps; k++) {
        s->wait(s->arg, k);
        if (k + 1 < steps)
            s->start(s->arg, k + 1);
        size_t owner = k * s->panel / s->part;
        multiply(s, s->a + k * s->panel,
                 owner == (size_t)s->rank ? s->b + (k * s->panel % s->part) * s->n
                                          : s->panels[k % 2]);
    }
}

bool bench_summa_check(bench_summa *s)
{
    const double n = (double)s->n, sum = n * (n - 1) / 2, squares = sum * (2 * n - 1) / 3;
    bool good = true;
    bench_summa_fill(s);
    bench_summa_multiply(s);
    for (size_t at = 0; at < s->part * s->n; at++) {
        double i = (double)((size_t)s->rank * s->part + at / s->n), j = (double)(at % s->n);
        good = good && close_to(s->c[at], squares + (i - j) * sum - n * i * j, 1e-9);
    }
    return good;
}
