/* Interactions of two trees, and of bodies. */
#include <math.h>
#include <string.h>

#include "common/complex_of.h"
#include "fmm/tree.h"

/* Interactions by expansions that wait until LANES of them are there. They end in a local expansion
 * or, of order 1, in a body. */
typedef struct batch {
    conversions c;
    double complex *locals[LANES];
    body *bodies[LANES];
    double complex charges[LANES];
} batch;

typedef struct interaction {
    tree *target;
    const view *source;
    const method *method;
    bool dry;
    double flops;
    batch cells, to_bodies, from_bodies;
} interaction;

enum { PAIR_FLOPS = 20 };

bool cell_touches(const cell *a, const cell *b)
{
    const int32_t level = a->level > b->level ? a->level : b->level;
    const int32_t side_a = 1 << (level - a->level), side_b = 1 << (level - b->level);
    for (int d = 0; d < 3; d++) {
        const int32_t low_a = a->at[d] * side_a, low_b = b->at[d] * side_b;
        if (low_a > low_b + side_b || low_b > low_a + side_a)
            return false;
    }
    return true;
}

static void add_value(body *b, const double value[4])
{
    b->potential += value[0];
    for (int d = 0; d < 3; d++)
        b->acceleration[d] += value[d + 1];
}

/* Computes what waits and adds it where it belongs. */
static void flush(batch *b, const method *m)
{
    if (b->c.count == 0)
        return;
    const lanes *out = expansion_convert(&b->c, m->space);
    for (size_t i = 0; i < b->c.count; i++) {
        double complex here[3], *to = b->locals[i];
        for (size_t k = 0; to == NULL && k < 3; k++)
            here[k] = complex_of(out->re[k][i], out->im[k][i]);
        for (size_t k = 0; to != NULL && k < expansion_terms(b->c.out); k++)
            to[k] += complex_of(out->re[k][i], out->im[k][i]);
        double value[4];
        if (to == NULL) {
            expansion_value(here, value);
            add_value(b->bodies[i], value);
        }
    }
    b->c.count = 0;
}

/* Lets an interaction wait: `at` is the target, seen from the source. */
static void add(batch *b, const method *m, const double complex *from, const double target[3],
                const double source[3], double complex *local, body *to)
{
    const size_t i = b->c.count++;
    b->c.from[i] = from;
    for (int d = 0; d < 3; d++)
        b->c.at[i][d] = target[d] - source[d];
    b->locals[i] = local;
    b->bodies[i] = to;
    if (b->c.count == LANES)
        flush(b, m);
}

static void cell_to_cell(interaction *p, uint32_t a, uint32_t b)
{
    const size_t terms = expansion_terms(p->method->order);
    double target[3], source[3];
    p->flops += expansion_convert_flops(p->method->order, p->method->order);
    if (p->dry)
        return;
    cell_centre(&p->target->cells[a], target);
    cell_centre(&p->source->cells[b], source);
    add(&p->cells, p->method, p->source->multipoles + b * terms, target, source,
        p->target->locals + a * terms, NULL);
}

static void cell_to_bodies(interaction *p, const cell *a, uint32_t b)
{
    double source[3];
    p->flops += a->count * expansion_convert_flops(p->method->order, 1);
    cell_centre(&p->source->cells[b], source);
    for (uint32_t i = a->first; !p->dry && i < a->first + a->count; i++)
        add(&p->to_bodies, p->method, p->source->multipoles + b * expansion_terms(p->method->order),
            p->target->bodies[i].at, source, NULL, &p->target->bodies[i]);
}

static void bodies_to_cell(interaction *p, uint32_t a, const cell *b)
{
    const view *v = p->source;
    double target[3];
    p->flops += b->count * expansion_convert_flops(0, p->method->order);
    cell_centre(&p->target->cells[a], target);
    for (uint32_t i = b->first; !p->dry && i < b->first + b->count; i++) {
        double complex *charge = &p->from_bodies.charges[p->from_bodies.c.count];
        *charge = v->charge[i];
        add(&p->from_bodies, p->method, charge, target, (double[]){v->x[i], v->y[i], v->z[i]},
            p->target->locals + a * expansion_terms(p->method->order), NULL);
    }
}

/* Bodies are balls: within its radius the force of a body falls to 0 towards its centre. */
void bodies_attract(const view *v, uint32_t first, uint32_t count, const double at[3],
                    double softening, double sums[4])
{
    const double *x = v->x + first, *y = v->y + first, *z = v->z + first, *q = v->charge + first;
    const double least = softening * softening;
    enum { WIDE = 4 };
    double sum[4][WIDE] = {{0}};
    uint32_t i = 0;
    for (; i + WIDE <= count; i += WIDE)
        for (uint32_t k = 0; k < WIDE; k++) {
            double dx = x[i + k] - at[0], dy = y[i + k] - at[1], dz = z[i + k] - at[2];
            double r2 = dx * dx + dy * dy + dz * dz, s2 = r2 > least ? r2 : least;
            double over = q[i + k] / sqrt(s2), force = over / s2;
            sum[0][k] += 1.5 * over - 0.5 * r2 * force;
            sum[1][k] += dx * force;
            sum[2][k] += dy * force;
            sum[3][k] += dz * force;
        }
    for (; i < count; i++) {
        double dx = x[i] - at[0], dy = y[i] - at[1], dz = z[i] - at[2];
        double r2 = dx * dx + dy * dy + dz * dz, s2 = r2 > least ? r2 : least;
        double over = q[i] / sqrt(s2), force = over / s2;
        sum[0][0] += 1.5 * over - 0.5 * r2 * force;
        sum[1][0] += dx * force;
        sum[2][0] += dy * force;
        sum[3][0] += dz * force;
    }
    for (int d = 0; d < 4; d++)
        sums[d] += sum[d][0] + sum[d][1] + sum[d][2] + sum[d][3];
}

double body_own_potential(double charge, double softening)
{
    return 1.5 * charge / softening;
}

static void bodies_to_bodies(interaction *p, const cell *a, const cell *b)
{
    const tree *t = p->target;
    p->flops += PAIR_FLOPS * (double)a->count * b->count;
    const bool own = p->source->x == t->sources && a->first == b->first;
    for (uint32_t i = a->first; !p->dry && i < a->first + a->count; i++) {
        double sums[4] = {0};
        bodies_attract(p->source, b->first, b->count, t->bodies[i].at, p->method->softening, sums);
        if (own)
            sums[0] -= body_own_potential(t->bodies[i].charge, p->method->softening);
        add_value(&t->bodies[i], sums);
    }
}

static void interact_far(interaction *p, uint32_t a, uint32_t b)
{
    const cell *target = &p->target->cells[a], *source = &p->source->cells[b];
    if (target->level == source->level)
        cell_to_cell(p, a, b);
    else if (target->level < source->level)
        cell_to_bodies(p, target, b);
    else
        bodies_to_cell(p, a, source);
}

static void interact(interaction *p, uint32_t a, uint32_t b)
{
    const cell *target = &p->target->cells[a], *source = &p->source->cells[b];
    if (target->count == 0 || source->count == 0)
        return;
    if (!cell_touches(target, source)) {
        interact_far(p, a, b);
        return;
    }
    if (target->child_count == 0 && source->child_count == 0) {
        if (!target->is_cut)
            bodies_to_bodies(p, target, source);
        return;
    }
    uint32_t a_first = target->child, a_count = target->child_count;
    uint32_t b_first = source->child, b_count = source->child_count;
    if (a_count == 0) {
        a_first = a;
        a_count = 1;
    }
    if (b_count == 0) {
        b_first = b;
        b_count = 1;
    }
    for (uint32_t i = a_first; i < a_first + a_count; i++)
        for (uint32_t k = b_first; k < b_first + b_count; k++)
            interact(p, i, k);
}

double tree_interact(tree *target, const view *source, const method *m, bool dry)
{
    interaction p = {.target = target, .source = source, .method = m, .dry = dry};
    p.cells.c.in = p.cells.c.out = m->order;
    p.to_bodies.c.in = m->order;
    p.to_bodies.c.out = 1;
    p.from_bodies.c.out = m->order;
    interact(&p, 0, 0);
    flush(&p.cells, m);
    flush(&p.to_bodies, m);
    flush(&p.from_bodies, m);
    return p.flops;
}
