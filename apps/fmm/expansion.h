/* Expansions: series of solid harmonics for the potential sum q / r of charges.
 *
 * A multipole expansion holds for points far from its charges, a local one for points near its
 * centre. Both are arrays of complex coefficients (n, m) with 0 <= m <= n <= order, at
 * expansion_place(n, m). Those of negative m follow: C(n, -m) = (-1)^m conj(C(n, m)).
 *
 *   R(n, m) = r^n P(n, m) e^(i m phi) / (n + m)!         regular
 *   S(n, m) = (n - m)! P(n, m) e^(i m phi) / r^(n + 1)   irregular
 *   1 / |x - y| = sum of conj(R(n, m)(y)) S(n, m)(x), if |y| < |x| */
#ifndef FMM_EXPANSION_H
#define FMM_EXPANSION_H

#include <complex.h>
#include <stddef.h>

enum {
    ORDER_MAX = 16,
    TERMS_MAX = (ORDER_MAX + 1) * (ORDER_MAX + 2) / 2,
    LANES = 4, /* conversions that are computed together */
};

static inline size_t expansion_place(int n, int m)
{
    return (size_t)(n * (n + 1) / 2 + m);
}

static inline size_t expansion_terms(int order)
{
    return expansion_place(order + 1, 0);
}

/* Adds charge `q` at `at`, seen from the centre, to a multipole expansion. */
void expansion_add_charge(int order, double complex *multipole, const double at[3], double q);

/* Adds a multipole expansion whose centre is at `at`, seen from the centre of `to`. */
void expansion_shift_multipole(int order, const double complex *from, const double at[3],
                               double complex *to);

/* Adds a local expansion of order `in` to one of order `out`, whose centre is at `at`, seen from
 * the centre of `from`. */
void expansion_shift_local(int in, const double complex *from, const double at[3], int out,
                           double complex *to);

/* Conversions of multipole expansions of order `in` to local ones of order `out`: up to LANES
 * pairs at once. `at` is the centre of the local expansion, seen from that of the multipole. */
typedef struct conversions {
    int in, out;
    size_t count;
    const double complex *from[LANES];
    double at[LANES][3];
} conversions;

/* Coefficient c of lane i is at re[c][i], im[c][i]. Lanes from `count` on mean nothing. */
typedef struct lanes {
    double re[TERMS_MAX][LANES], im[TERMS_MAX][LANES];
} lanes;

/* Memory to compute in, too large for a stack. One thread at a time uses it. */
typedef struct expansion_space expansion_space;

/* Gives it, freed with free. NULL: no memory. */
expansion_space *expansion_space_create(void);

/* Returns the local expansions, which are lent until the next call with `space`. */
const lanes *expansion_convert(const conversions *c, expansion_space *space);

/* The potential at the centre of a local expansion of order 1 or more, then its gradient. */
static inline void expansion_value(const double complex *local, double out[4])
{
    out[0] = creal(local[0]);
    out[1] = creal(local[2]);
    out[2] = cimag(local[2]);
    out[3] = creal(local[1]);
}

/* Floating-point operations of each call, for the cost of a simulated rank. */
double expansion_charge_flops(int order);
double expansion_shift_flops(int in, int out);
double expansion_convert_flops(int in, int out); /* of one lane */

#endif
