#include "peers/apps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ITERATIONS = 6, STRIP = 8, SAMPLES = 1024 };

typedef struct problem {
    size_t nx, ny, nz;
    double checksums[ITERATIONS][2]; /* NAS Parallel Benchmarks, FT: classes S, W, A */
} problem;

static const problem problems[] = {
    {64,
     64,
     64,
     {{5.546087004964e+02, 4.845363331978e+02},
      {5.546385409190e+02, 4.865304269511e+02},
      {5.546148406171e+02, 4.883910722337e+02},
      {5.545423607415e+02, 4.901273169046e+02},
      {5.544255039624e+02, 4.917475857993e+02},
      {5.542683411903e+02, 4.932597244941e+02}}},
    {128,
     128,
     32,
     {{5.673612178944e+02, 5.293246849175e+02},
      {5.631436885271e+02, 5.282149986629e+02},
      {5.594024089970e+02, 5.270996558037e+02},
      {5.560698047020e+02, 5.260027904925e+02},
      {5.530898991250e+02, 5.249400845633e+02},
      {5.504159734538e+02, 5.239212247086e+02}}},
    {256,
     256,
     128,
     {{5.046735008193e+02, 5.114047905510e+02},
      {5.059412319734e+02, 5.098809666433e+02},
      {5.069376896287e+02, 5.098144042213e+02},
      {5.077892868474e+02, 5.101336130759e+02},
      {5.085233095391e+02, 5.104914655194e+02},
      {5.091487099959e+02, 5.107917842803e+02}}},
};

/* As CMPLX, which not every compiler has. */
static bench_number complex_of(double real, double imaginary)
{
    union {
        double part[2];
        bench_number whole;
    } value = {{real, imaginary}};
    return value.whole;
}

static const problem *problem_of(uint64_t nx)
{
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        if (problems[i].nx == nx)
            return &problems[i];
    return NULL;
}

bool bench_ft_extents(uint64_t nx, bench_ft *ft)
{
    const problem *p = problem_of(nx);
    if (p) {
        ft->nx = p->nx;
        ft->ny = p->ny;
        ft->nz = p->nz;
    }
    return p != NULL;
}

/* Points of a rank. */
static size_t share(const bench_ft *ft)
{
    return ft->nx * ft->ny * ft->nz / (size_t)ft->ranks;
}

void bench_ft_memory(bench_ft *ft, bench_number *space, bench_number *turned)
{
    size_t longest = ft->nx > ft->nz ? ft->nx : ft->nz;
    ft->space = space;
    ft->turned = turned;
    ft->spectrum = malloc(share(ft) * sizeof *ft->spectrum);
    ft->scratch = malloc(longest * (1 + 2 * STRIP) * sizeof *ft->scratch);
    ft->decay = malloc((ft->nx + ft->ny + ft->nz) * sizeof *ft->decay);
    if (!ft->spectrum || !ft->scratch || !ft->decay)
        exit(1);
}

void bench_ft_release(bench_ft *ft)
{
    free(ft->spectrum);
    free(ft->scratch);
    free(ft->decay);
}

/* STRIP transforms of length n at once, element i of transform j at a[i * STRIP + j]: each pass
 * reads one array and writes the other (Stockham); the result is returned. */
static bench_number *transform(bench_number *a, bench_number *b, size_t n,
                               const bench_number *roots)
{
    for (size_t half = n / 2, run = 1; half >= 1; half /= 2, run *= 2) {
        for (size_t block = 0; block < half; block++) {
            const double c = creal(roots[block * run]), s = cimag(roots[block * run]);
            for (size_t i = 0; i < run; i++) {
                const bench_number *x = a + (block * run + i) * STRIP;
                const bench_number *y = x + half * run * STRIP;
                bench_number *u = b + (2 * block * run + i) * STRIP, *v = u + run * STRIP;
                for (size_t j = 0; j < STRIP; j++) {
                    bench_number d = x[j] - y[j];
                    u[j] = x[j] + y[j];
                    v[j] = complex_of(creal(d) * c - cimag(d) * s, creal(d) * s + cimag(d) * c);
                }
            }
        }
        bench_number *held = a;
        a = b;
        b = held;
    }
    return a;
}

/* Lines of n elements that lie `step` apart. */
typedef struct lines {
    size_t n, step, count, line; /* line: from one to the next */
} lines;

static void transform_lines(const bench_ft *ft, bench_number *data, lines l, int sign)
{
    bench_number *roots = ft->scratch, *a = roots + l.n, *b = a + l.n * STRIP;
    for (size_t k = 0; k < l.n / 2 + 1; k++)
        roots[k] = complex_of(cos(2 * M_PI * (double)k / (double)l.n),
                              sign * sin(2 * M_PI * (double)k / (double)l.n));
    for (size_t at = 0; at < l.count; at += STRIP) {
        for (size_t i = 0; i < l.n; i++)
            for (size_t j = 0; j < STRIP; j++)
                a[i * STRIP + j] = data[(at + j) * l.line + i * l.step];
        const bench_number *result = transform(a, b, l.n, roots);
        for (size_t i = 0; i < l.n; i++)
            for (size_t j = 0; j < STRIP; j++)
                data[(at + j) * l.line + i * l.step] = result[i * STRIP + j];
    }
}

static void transform_planes(const bench_ft *ft, int sign)
{
    bench_number *plane = ft->space;
    for (size_t z = 0; z < ft->nz / (size_t)ft->ranks; z++, plane += ft->nx * ft->ny) {
        transform_lines(ft, plane, (lines){ft->nx, 1, ft->ny, ft->nx}, sign);
        transform_lines(ft, plane, (lines){ft->ny, ft->nx, ft->nx, 1}, sign);
    }
}

static void transform_depth(const bench_ft *ft, int sign)
{
    size_t count = ft->nx / (size_t)ft->ranks * ft->ny;
    transform_lines(ft, ft->turned, (lines){ft->nz, 1, count, ft->nz}, sign);
}

static void fill_decay(double *decay, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        double wave = (double)((k + n / 2) % n) - (double)(n / 2);
        decay[k] = exp(-4e-6 * M_PI * M_PI * wave * wave);
    }
}

void bench_ft_begin(bench_ft *ft)
{
    const uint64_t mask46 = (UINT64_C(1) << 46) - 1, multiplier = 1220703125;
    uint64_t seed = 314159265;
    double *value = (double *)ft->space;
    /* the generator, x <- 5^13 x mod 2^46, from its start: that is not timed */
    for (size_t skip = 2 * share(ft) * (size_t)ft->rank; skip > 0; skip--)
        seed = seed * multiplier & mask46;
    for (size_t k = 0; k < 2 * share(ft); k++) {
        seed = seed * multiplier & mask46;
        value[k] = (double)seed * 0x1p-46;
    }
    fill_decay(ft->decay, ft->nx);
    fill_decay(ft->decay + ft->nx, ft->ny);
    fill_decay(ft->decay + ft->nx + ft->ny, ft->nz);
    ft->steps = 0;
    transform_planes(ft, -1);
    ft->turn(ft->arg, false);
    transform_depth(ft, -1);
    memcpy(ft->spectrum, ft->turned, share(ft) * sizeof(bench_number));
}

/* The spectrum decays by one step, or grows back; a copy of it goes on to the inverse transform. */
static void evolve(bench_ft *ft, bool back)
{
    const double *dx = ft->decay, *dy = dx + ft->nx, *dz = dy + ft->ny;
    bench_number *value = ft->spectrum, *copy = ft->turned;
    size_t part = ft->nx / (size_t)ft->ranks;
    for (size_t x = 0; x < part; x++)
        for (size_t y = 0; y < ft->ny; y++) {
            double both = dx[(size_t)ft->rank * part + x] * dy[y];
            for (size_t z = 0; z < ft->nz; z++) {
                *value *= back ? 1 / (both * dz[z]) : both * dz[z];
                *copy++ = *value++;
            }
        }
}

static bench_number checksum(const bench_ft *ft)
{
    double real = 0, imaginary = 0;
    const double total = (double)ft->nx * (double)ft->ny * (double)ft->nz;
    const size_t part = ft->nz / (size_t)ft->ranks;
    for (size_t j = 1; j <= SAMPLES; j++) {
        size_t x = j % ft->nx, y = 3 * j % ft->ny, z = 5 * j % ft->nz;
        if (z / part != (size_t)ft->rank)
            continue;
        bench_number value = ft->space[(z % part * ft->ny + y) * ft->nx + x];
        real += creal(value) / total;
        imaginary += cimag(value) / total;
    }
    return complex_of(ft->sum(ft->arg, real), ft->sum(ft->arg, imaginary));
}

bench_number bench_ft_step(bench_ft *ft)
{
    evolve(ft, ft->steps >= ITERATIONS && (ft->steps - ITERATIONS) % 2 == 0);
    ft->steps++;
    transform_depth(ft, 1);
    ft->turn(ft->arg, true);
    transform_planes(ft, 1);
    return checksum(ft);
}

bool bench_ft_check(bench_ft *ft)
{
    const problem *p = problem_of(ft->nx);
    bool good = true;
    bench_ft_begin(ft);
    for (int i = 0; i < ITERATIONS; i++) {
        bench_number sum = bench_ft_step(ft);
        good = good && fabs(creal(sum) / p->checksums[i][0] - 1) < 1e-12 &&
               fabs(cimag(sum) / p->checksums[i][1] - 1) < 1e-12;
    }
    return good;
}
