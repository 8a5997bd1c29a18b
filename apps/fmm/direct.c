/* The check: sums over all bodies, without any expansion. */
#include <math.h>
#include <stdlib.h>

#include "fmm/fmm.h"

enum { VALUES = 4 };

/* The places and charges of all bodies, by id, on every rank. `*right`: each id was there once. */
static double *gather(fmm *s, bool *right)
{
    const size_t count = (size_t)s->scene.count;
    double *all = calloc((VALUES + 1) * count, sizeof *all);
    fmm_need(s->f, all != NULL);
    for (ferry_element *e = NULL; (e = ferry_collection_next(s->parts, e)) != NULL;) {
        const part *p = e->data;
        for (const body *b = p->bodies; b < p->bodies + p->body_count; b++) {
            for (size_t d = 0; d < 3; d++)
                all[d * count + b->id] = b->at[d];
            all[3 * count + b->id] = b->charge;
            all[VALUES * count + b->id] += 1;
        }
    }
    check(s->f, ferry_allreduce(s->f, FERRY_DOUBLE, FERRY_SUM, all, all, (VALUES + 1) * count));
    *right = true;
    for (size_t i = 0; i < count; i++)
        *right = *right && all[VALUES * count + i] == 1;
    return all;
}

/* Adds the squares of the differences from the true values, and of these. */
static void compare(const fmm *s, const view *all, const body *b, double sums[4])
{
    double right[4] = {0};
    bodies_attract(all, 0, all->body_count, b->at, s->method.softening, right);
    right[0] -= body_own_potential(b->charge, s->method.softening);
    sums[0] += (b->potential - right[0]) * (b->potential - right[0]);
    sums[1] += right[0] * right[0];
    for (int d = 0; d < 3; d++) {
        const double off = b->acceleration[d] - right[d + 1];
        sums[2] += off * off;
        sums[3] += right[d + 1] * right[d + 1];
    }
}

bool fmm_compare(fmm *s, long samples, double errors[2])
{
    bool right;
    double *all = gather(s, &right), sums[4] = {0};
    const uint64_t count = (uint64_t)s->scene.count;
    const uint64_t stride = (count + (uint64_t)samples - 1) / (uint64_t)samples;
    const view v = {.body_count = (uint32_t)count,
                    .x = all,
                    .y = all + count,
                    .z = all + 2 * count,
                    .charge = all + 3 * count};
    for (ferry_element *e = NULL; (e = ferry_collection_next(s->parts, e)) != NULL;) {
        const part *p = e->data;
        for (const body *b = p->bodies; b < p->bodies + p->body_count; b++)
            if (b->id % stride == 0)
                compare(s, &v, b, sums);
    }
    free(all);
    check(s->f, ferry_allreduce(s->f, FERRY_DOUBLE, FERRY_SUM, sums, sums, 4));
    errors[0] = sums[1] > 0 ? sqrt(sums[0] / sums[1]) : 0;
    errors[1] = sums[3] > 0 ? sqrt(sums[2] / sums[3]) : 0;
    return right;
}
