/* The NAS benchmark FT: a diffusion equation in three dimensions solved with fast Fourier
 * transforms. The cube lies in slabs of z; for the transform along z a mover brings it into slabs
 * of x, transposed, so that z is contiguous.
 *
 *   ferry run -n 4 build/apps/ft S|W|A|B
 *
 * Prints a checksum per iteration and whether they are the published ones. */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "common/check.h"
#include "common/complex_of.h"
#include "common/cost.h"
#include "common/parameters.h"
#include <ferry/mover.h>

enum { ITERATIONS_MAX = 20, STRIP = 8, SAMPLES = 1024 };

typedef double complex number;

typedef struct problem {
    char name;
    int64_t nx, ny, nz;
    int iterations;
    double checksums[ITERATIONS_MAX][2]; /* NAS Parallel Benchmarks, FT */
} problem;

static const problem problems[] = {
    {'S',
     64,
     64,
     64,
     6,
     {{5.546087004964e+02, 4.845363331978e+02},
      {5.546385409190e+02, 4.865304269511e+02},
      {5.546148406171e+02, 4.883910722337e+02},
      {5.545423607415e+02, 4.901273169046e+02},
      {5.544255039624e+02, 4.917475857993e+02},
      {5.542683411903e+02, 4.932597244941e+02}}},
    {'W',
     128,
     128,
     32,
     6,
     {{5.673612178944e+02, 5.293246849175e+02},
      {5.631436885271e+02, 5.282149986629e+02},
      {5.594024089970e+02, 5.270996558037e+02},
      {5.560698047020e+02, 5.260027904925e+02},
      {5.530898991250e+02, 5.249400845633e+02},
      {5.504159734538e+02, 5.239212247086e+02}}},
    {'A',
     256,
     256,
     128,
     6,
     {{5.046735008193e+02, 5.114047905510e+02},
      {5.059412319734e+02, 5.098809666433e+02},
      {5.069376896287e+02, 5.098144042213e+02},
      {5.077892868474e+02, 5.101336130759e+02},
      {5.085233095391e+02, 5.104914655194e+02},
      {5.091487099959e+02, 5.107917842803e+02}}},
    {'B',
     512,
     256,
     256,
     20,
     {{5.177643571579e+02, 5.077803458597e+02}, {5.154521291263e+02, 5.088249431599e+02},
      {5.146409228649e+02, 5.096208912659e+02}, {5.142378756213e+02, 5.101023387619e+02},
      {5.139626667737e+02, 5.103976610617e+02}, {5.137423460082e+02, 5.105948019802e+02},
      {5.135547056878e+02, 5.107404165783e+02}, {5.133910925466e+02, 5.108576573661e+02},
      {5.132470705390e+02, 5.109577278523e+02}, {5.131197729984e+02, 5.110460304483e+02},
      {5.130070319283e+02, 5.111252433800e+02}, {5.129070537032e+02, 5.111968077718e+02},
      {5.128182883502e+02, 5.112616233064e+02}, {5.127393733383e+02, 5.113203605551e+02},
      {5.126691062020e+02, 5.113735928093e+02}, {5.126064276004e+02, 5.114218460548e+02},
      {5.125504076570e+02, 5.114656139760e+02}, {5.125002331720e+02, 5.115053595966e+02},
      {5.124551951846e+02, 5.115415130407e+02}, {5.124146770029e+02, 5.115744692211e+02}}},
};

typedef struct solver {
    ferry *f;
    const problem *p;
    ferry_xarray *space;     /* (z, y, x), slabs of z */
    ferry_xarray *spectrum;  /* (x, y, z), slabs of x */
    ferry_xarray *turned;    /* as spectrum: on its way */
    ferry_mover *out, *back; /* space to turned, turned to space */
    number *scratch;
    cost cost;
} solver;

/* The benchmark's generator: x <- 5^13 x mod 2^46. */
static const uint64_t mask46 = (UINT64_C(1) << 46) - 1;
static const uint64_t multiplier = 1220703125;

static uint64_t power46(uint64_t base, uint64_t exponent)
{
    uint64_t result = 1;
    for (; exponent > 0; exponent >>= 1, base = base * base & mask46)
        if (exponent & 1)
            result = result * base & mask46;
    return result;
}

static void fill(const solver *s)
{
    const uint64_t plane = 2 * (uint64_t)(s->p->nx * s->p->ny);
    for (size_t i = 0; i < s->space->local_count; i++) {
        const ferry_grid *grid = &s->space->grids[i];
        double *value = grid->data;
        uint64_t seed =
            314159265 * power46(multiplier, plane * (uint64_t)grid->region.low.at[0]) & mask46;
        for (uint64_t k = 2 * ferry_region_size(grid->region); k > 0; k--) {
            seed = seed * multiplier & mask46;
            *value++ = (double)seed * 0x1p-46;
        }
    }
}

/* STRIP transforms of length n at once, element i of transform j at a[i * STRIP + j]. Stockham's
 * method: each pass reads one array and writes the other; the result is returned. */
static number *transform(number *a, number *b, int64_t n, const number *roots, int64_t root_stride)
{
    for (int64_t half = n / 2, run = 1; half >= 1; half /= 2, run *= 2) {
        for (int64_t block = 0; block < half; block++) {
            number w = roots[block * run * root_stride];
            for (int64_t i = 0; i < run; i++) {
                const number *x = a + (block * run + i) * STRIP;
                const number *y = x + half * run * STRIP;
                number *u = b + (2 * block * run + i) * STRIP, *v = u + run * STRIP;
                for (int j = 0; j < STRIP; j++) {
                    number sum = x[j] + y[j], difference = x[j] - y[j];
                    u[j] = sum;
                    v[j] = complex_of(creal(difference) * creal(w) - cimag(difference) * cimag(w),
                                      creal(difference) * cimag(w) + cimag(difference) * creal(w));
                }
            }
        }
        number *held = a;
        a = b;
        b = held;
    }
    return a;
}

/* Transforms `count` lines of length n: line l begins at data + l * line, elements lie `step`
 * apart. `sign` -1 is forward. */
static void transform_lines(solver *s, number *data, int64_t n, int64_t step, int64_t count,
                            int64_t line, int sign)
{
    number *roots = s->scratch, *a = roots + n, *b = a + n * STRIP;
    for (int64_t k = 0; k < n / 2 + 1; k++)
        roots[k] = complex_of(cos(2 * M_PI * (double)k / (double)n),
                              sign * sin(2 * M_PI * (double)k / (double)n));
    for (int64_t l = 0; l < count; l += STRIP) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < STRIP; j++)
                a[i * STRIP + j] = data[(l + j) * line + i * step];
        const number *result = transform(a, b, n, roots, 1);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < STRIP; j++)
                data[(l + j) * line + i * step] = result[i * STRIP + j];
    }
    cost_add(&s->cost, 5 * (double)(n * count) * log2((double)n));
}

static void transform_planes(solver *s, int sign)
{
    const int64_t nx = s->p->nx, ny = s->p->ny;
    for (size_t i = 0; i < s->space->local_count; i++) {
        const ferry_grid *grid = &s->space->grids[i];
        number *plane = grid->data;
        for (uint64_t z = ferry_region_extent(grid->region, 0); z > 0; z--, plane += nx * ny) {
            transform_lines(s, plane, nx, 1, ny, nx, sign);
            transform_lines(s, plane, ny, nx, nx, 1, sign);
        }
    }
    cost_spend(&s->cost, s->f);
}

static void transform_depth(solver *s, int sign)
{
    for (size_t i = 0; i < s->turned->local_count; i++) {
        const ferry_grid *grid = &s->turned->grids[i];
        int64_t count = (int64_t)ferry_region_extent(grid->region, 0) * s->p->ny;
        transform_lines(s, grid->data, s->p->nz, 1, count, s->p->nz, sign);
    }
    cost_spend(&s->cost, s->f);
}

static void move(solver *s, ferry_mover *m)
{
    cost_communication_begins(&s->cost, s->f);
    check(s->f, ferry_mover_start(m, NULL));
    check(s->f, ferry_mover_wait(m));
    cost_communication_ends(&s->cost, s->f);
}

static double wave(int64_t k, int64_t n)
{
    double centred = (double)((k + n / 2) % n - n / 2);
    return centred * centred;
}

/* One step in time: the spectrum decays; a copy of it goes on to the inverse transform. */
static void evolve(solver *s)
{
    const double decay = -4e-6 * M_PI * M_PI;
    for (size_t i = 0; i < s->spectrum->local_count; i++) {
        const ferry_grid *grid = &s->spectrum->grids[i];
        number *value = grid->data, *copy = s->turned->grids[i].data;
        ferry_point p = grid->region.low;
        do {
            double k2 = wave(p.at[0], s->p->nx) + wave(p.at[1], s->p->ny) + wave(p.at[2], s->p->nz);
            *value *= exp(decay * k2);
            *copy++ = *value++;
        } while (ferry_region_next(&grid->region, &p));
        cost_add(&s->cost, 8 * (double)ferry_region_size(grid->region));
    }
    cost_spend(&s->cost, s->f);
}

static number checksum(const solver *s)
{
    double sum[2] = {0, 0};
    double total = (double)s->p->nx * (double)s->p->ny * (double)s->p->nz;
    for (int64_t j = 1; j <= SAMPLES; j++) {
        ferry_point p = ferry_point_of(5 * j % s->p->nz, 3 * j % s->p->ny, j % s->p->nx);
        for (size_t i = 0; i < s->space->local_count; i++) {
            if (!ferry_region_contains_point(s->space->grids[i].region, p))
                continue;
            number value = *(number *)ferry_grid_at(&s->space->grids[i], p);
            sum[0] += creal(value) / total;
            sum[1] += cimag(value) / total;
        }
    }
    check(s->f, ferry_allreduce(s->f, FERRY_DOUBLE, FERRY_SUM, sum, sum, 2));
    return complex_of(sum[0], sum[1]);
}

/* An array of slabs along its first dimension. */
static ferry_xarray *slabs(ferry *f, const int64_t extents[3])
{
    ferry_floorplan blocks;
    ferry_xarray *x;
    ferry_region domain = ferry_region_sized(3, extents);
    ferry_point parts = ferry_point_of(ferry_ranks(f), 1, 1);
    check(f, ferry_floorplan_cut(domain, parts, &blocks));
    check(f, ferry_floorplan_map_block(&blocks, ferry_ranks(f)));
    check(f, ferry_xarray_create(f, &blocks, sizeof(number), ferry_point_all(0), &x));
    ferry_floorplan_fini(&blocks);
    return x;
}

static void bind_turning(ferry *f, ferry_xarray *from, ferry_xarray *to, ferry_mover **out)
{
    ferry_intersection meeting = FERRY_INTERSECTION_DEFAULTS;
    ferry_plan plan = {0};
    meeting.permuted = true;
    for (int d = 0; d < 3; d++)
        meeting.axis[d] = (int8_t)(2 - d);
    check(f, ferry_plan_intersect(&plan, &from->blocks, &to->blocks, &meeting, ferry_rank(f)));
    check(f, ferry_mover_bind(f, &plan, from, to, NULL, out));
    ferry_plan_fini(&plan);
}

static void solver_init(solver *s, ferry *f, const problem *p)
{
    s->f = f;
    s->p = p;
    s->space = slabs(f, (int64_t[]){p->nz, p->ny, p->nx});
    s->spectrum = slabs(f, (int64_t[]){p->nx, p->ny, p->nz});
    s->turned = slabs(f, (int64_t[]){p->nx, p->ny, p->nz});
    bind_turning(f, s->space, s->turned, &s->out);
    bind_turning(f, s->turned, s->space, &s->back);
    int64_t longest = p->nx > p->nz ? p->nx : p->nz;
    s->scratch = malloc((size_t)longest * (1 + 2 * STRIP) * sizeof *s->scratch);
    if (s->scratch == NULL)
        exit(1);
}

static void solver_fini(solver *s)
{
    check(s->f, ferry_mover_free(s->out));
    check(s->f, ferry_mover_free(s->back));
    ferry_xarray_destroy(s->space);
    ferry_xarray_destroy(s->spectrum);
    ferry_xarray_destroy(s->turned);
    free(s->scratch);
}

/* Runs the benchmark; returns how many checksums are wrong. */
static int solve(solver *s)
{
    int wrong = 0;
    fill(s);
    transform_planes(s, -1);
    move(s, s->out);
    transform_depth(s, -1);
    for (size_t i = 0; i < s->spectrum->local_count; i++)
        memcpy(s->spectrum->grids[i].data, s->turned->grids[i].data,
               ferry_region_size(s->spectrum->grids[i].region) * sizeof(number));
    for (int step = 0; step < s->p->iterations; step++) {
        evolve(s);
        transform_depth(s, 1);
        move(s, s->back);
        transform_planes(s, 1);
        number sum = checksum(s);
        const double *wanted = s->p->checksums[step];
        bool good =
            fabs(creal(sum) / wanted[0] - 1) < 1e-12 && fabs(cimag(sum) / wanted[1] - 1) < 1e-12;
        wrong += !good;
        if (ferry_rank(s->f) == 0)
            printf("%d  %.12e  %.12e  %s\n", step + 1, creal(sum), cimag(sum),
                   good ? "as published" : "WRONG");
    }
    return wrong;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const char *const classes[] = {"S", "W", "A", "B", NULL}; /* as in problems */
    int class = 0;
    solver s = {0};
    const parameter table[] = {
        {"CLASS", "S, W, A or B", .choice = &class, .of = classes}, COST_PARAMETER(&s.cost), {0}};
    int status = parameters_read(f, argc, argv, "The NAS benchmark FT.", table);
    if (status >= 0)
        return status;
    solver_init(&s, f, &problems[class]);
    check(f, ferry_barrier(f));
    uint64_t start = ferry_now(f);
    int wrong = solve(&s);
    double seconds = (double)(ferry_now(f) - start) * 1e-9;
    double communication = cost_communication_s(&s.cost, f);
    if (ferry_rank(f) == 0)
        printf("FT class %s on %d ranks: %s, %.6f s, communication %.6f s\n", classes[class],
               ferry_ranks(f), wrong ? "verification failed" : "verified", seconds, communication);
    solver_fini(&s);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
