/* Expansions, see expansion.h. The translations are the addition theorems of R and S:
 *
 *   R(n, m)(x + y) = sum over k, l of R(k, l)(x) R(n - k, m - l)(y)
 *   S(n, m)(x + y) = sum over k, l of (-1)^k conj(R(k, l)(y)) S(n + k, m + l)(x), if |y| < |x| */
#include "fmm/expansion.h"
#include "common/complex_of.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIGNED_MAX = (2 * ORDER_MAX + 1) * (2 * ORDER_MAX + 1) };

/* The product. That of the language looks for infinities too. */
static double complex times(double complex a, double complex b)
{
    double re = creal(a) * creal(b) - cimag(a) * cimag(b);
    return complex_of(re, creal(a) * cimag(b) + cimag(a) * creal(b));
}

/* Coefficient (n, m) of any sign of m. */
static double complex coefficient(const double complex *c, int n, int m)
{
    double complex value = c[expansion_place(n, abs(m))];
    if (m >= 0)
        return value;
    return m % 2 == 0 ? conj(value) : -conj(value);
}

static void regular(int order, const double at[3], double complex *out)
{
    const double z = at[2], r2 = at[0] * at[0] + at[1] * at[1] + z * z;
    const double complex xy = complex_of(at[0], at[1]);
    out[0] = 1;
    for (int n = 1; n <= order; n++) {
        out[expansion_place(n, n)] = times(xy, out[expansion_place(n - 1, n - 1)]) / (2 * n);
        for (int m = 0; m < n; m++) {
            double complex value = (2 * n - 1) * z * out[expansion_place(n - 1, m)];
            if (m <= n - 2)
                value -= r2 * out[expansion_place(n - 2, m)];
            out[expansion_place(n, m)] = value / (n * n - m * m);
        }
    }
}

void expansion_add_charge(int order, double complex *multipole, const double at[3], double q)
{
    double complex r[TERMS_MAX];
    regular(order, at, r);
    for (size_t i = 0; i < expansion_terms(order); i++)
        multipole[i] += q * r[i];
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

void expansion_shift_multipole(int order, const double complex *from, const double at[3],
                               double complex *to)
{
    double complex r[TERMS_MAX];
    regular(order, at, r);
    for (int n = 0; n <= order; n++)
        for (int m = 0; m <= n; m++) {
            double complex sum = 0;
            for (int k = 0; k <= n; k++)
                for (int l = larger(-k, m - n + k); l <= smaller(k, m + n - k); l++)
                    sum += times(coefficient(r, k, l), coefficient(from, n - k, m - l));
            to[expansion_place(n, m)] += sum;
        }
}

void expansion_shift_local(int in, const double complex *from, const double at[3], int out,
                           double complex *to)
{
    double complex r[TERMS_MAX];
    regular(in, at, r);
    for (int n = 0; n <= out; n++)
        for (int m = 0; m <= n; m++) {
            double complex sum = 0;
            for (int k = n; k <= in; k++)
                for (int l = larger(-k, m - k + n); l <= smaller(k, m + k - n); l++)
                    sum += times(conj(coefficient(r, k - n, l - m)), coefficient(from, k, l));
            to[expansion_place(n, m)] += sum;
        }
}

/* The irregular harmonics of all lanes with either sign of m: (n, m) at n * n + n + m. */
typedef struct irregulars {
    double re[SIGNED_MAX][LANES], im[SIGNED_MAX][LANES];
} irregulars;

struct expansion_space {
    lanes from, locals;
    irregulars harmonics;
};

expansion_space *expansion_space_create(void)
{
    return malloc(sizeof(expansion_space));
}

static size_t signed_place(int n, int m)
{
    return (size_t)(n * n + n + m);
}

/* (n, m) of n > m, from the two below it. */
static void recur(irregulars *s, int n, int m, const double z[LANES], const double r2[LANES])
{
    const size_t to = signed_place(n, m), one = signed_place(n - 1, m);
    const size_t two = m <= n - 2 ? signed_place(n - 2, m) : one;
    const double a = 2 * n - 1, b = m <= n - 2 ? (n - 1) * (n - 1) - m * m : 0;
    for (size_t i = 0; i < LANES; i++) {
        s->re[to][i] = (a * z[i] * s->re[one][i] - b * s->re[two][i]) / r2[i];
        s->im[to][i] = (a * z[i] * s->im[one][i] - b * s->im[two][i]) / r2[i];
    }
}

static void mirror(irregulars *s, int n)
{
    for (int m = 1; m <= n; m++) {
        const size_t from = signed_place(n, m), to = signed_place(n, -m);
        const double sign = m % 2 == 0 ? 1 : -1;
        for (size_t i = 0; i < LANES; i++) {
            s->re[to][i] = sign * s->re[from][i];
            s->im[to][i] = -sign * s->im[from][i];
        }
    }
}

static void irregular(int order, double at[LANES][3], irregulars *s)
{
    double x[LANES], y[LANES], z[LANES], r2[LANES];
    for (size_t i = 0; i < LANES; i++) {
        x[i] = at[i][0];
        y[i] = at[i][1];
        z[i] = at[i][2];
        r2[i] = x[i] * x[i] + y[i] * y[i] + z[i] * z[i];
        s->re[0][i] = 1 / sqrt(r2[i]);
        s->im[0][i] = 0;
    }
    for (int n = 1; n <= order; n++) {
        const size_t to = signed_place(n, n), from = signed_place(n - 1, n - 1);
        for (size_t i = 0; i < LANES; i++) {
            double factor = (2 * n - 1) / r2[i];
            s->re[to][i] = factor * (x[i] * s->re[from][i] - y[i] * s->im[from][i]);
            s->im[to][i] = factor * (x[i] * s->im[from][i] + y[i] * s->re[from][i]);
        }
        for (int m = 0; m < n; m++)
            recur(s, n, m, z, r2);
        mirror(s, n);
    }
}

/* The multipole expansions of all lanes. The term of m = 0 has half its weight: `add_pair` counts
 * it for m and for -m. */
static void load(const conversions *c, lanes *from)
{
    for (size_t i = 0; i < LANES; i++) {
        const double complex *of = c->from[i < c->count ? i : 0];
        for (int n = 0; n <= c->in; n++)
            for (int m = 0; m <= n; m++) {
                const size_t place = expansion_place(n, m);
                const double weight = m == 0 ? 0.5 : 1;
                from->re[place][i] = weight * creal(of[place]);
                from->im[place][i] = weight * cimag(of[place]);
            }
    }
}

/* Adds conj(M(n, m)) A + (-1)^m M(n, m) B: the terms of m and of -m. A and B are places in `s`. */
static void add_pair(const lanes *from, size_t of, const irregulars *s, size_t a, size_t b,
                     double sign, double re[LANES], double im[LANES])
{
    for (size_t i = 0; i < LANES; i++) {
        const double br = sign * s->re[b][i], bi = sign * s->im[b][i];
        re[i] += from->re[of][i] * (s->re[a][i] + br) + from->im[of][i] * (s->im[a][i] - bi);
        im[i] += from->re[of][i] * (s->im[a][i] + bi) - from->im[of][i] * (s->re[a][i] - br);
    }
}

static void convert_term(int in, const lanes *from, const irregulars *s, int k, int l,
                         lanes *locals)
{
    double re[LANES] = {0}, im[LANES] = {0};
    for (int n = 0; n <= in; n++) {
        const size_t middle = signed_place(n + k, l), of = expansion_place(n, 0);
        for (int m = 0; m <= n; m++)
            add_pair(from, of + (size_t)m, s, middle + (size_t)m, middle - (size_t)m,
                     m % 2 == 0 ? 1 : -1, re, im);
    }
    const double sign = k % 2 == 0 ? 1 : -1;
    for (size_t i = 0; i < LANES; i++) {
        locals->re[expansion_place(k, l)][i] = sign * re[i];
        locals->im[expansion_place(k, l)][i] = sign * im[i];
    }
}

const lanes *expansion_convert(const conversions *c, expansion_space *space)
{
    double at[LANES][3];
    for (size_t i = 0; i < LANES; i++)
        memcpy(at[i], c->at[i < c->count ? i : 0], sizeof at[i]);
    irregular(c->in + c->out, at, &space->harmonics);
    load(c, &space->from);
    for (int k = 0; k <= c->out; k++)
        for (int l = 0; l <= k; l++)
            convert_term(c->in, &space->from, &space->harmonics, k, l, &space->locals);
    return &space->locals;
}

double expansion_charge_flops(int order)
{
    return 10 * (double)expansion_terms(order);
}

double expansion_shift_flops(int in, int out)
{
    const double terms = (double)expansion_terms(in);
    return 10 * terms + 4 * terms * (double)expansion_terms(out);
}

double expansion_convert_flops(int in, int out)
{
    return 9 * (double)expansion_terms(in + out) +
           12 * (double)expansion_terms(in) * (double)expansion_terms(out);
}
