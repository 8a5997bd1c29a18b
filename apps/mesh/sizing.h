/* How long edges may be, where: the size field.
 *
 * All lengths and places are in grid units. A mesh_sizing is plain data and may be copied between
 * processes. Within a feature's radius edges are `factor` times shorter than `size`; outside, the
 * bound grows by `gradation` per unit of distance, so that the angle bound can hold.
 * Threads: pure functions. */
#ifndef MESH_SIZING_H
#define MESH_SIZING_H

#include "exact.h"

#include <math.h>

#define MESH_FEATURES_MAX 32
#define MESH_GRADATION 0.25

typedef struct mesh_feature {
    double x, y, radius, factor;
} mesh_feature;

typedef struct mesh_sizing {
    double size;
    int32_t feature_count;
    mesh_feature feature[MESH_FEATURES_MAX];
    /* Used by the decomposition's coarse mesh alone: when positive, the bound is
     * blend / sqrt(blend_flat + blend_work / bound^2), that is triangles of equal weight. */
    double blend, blend_flat, blend_work;
} mesh_sizing;

/* The longest edge allowed to a triangle with its centroid at (x, y). */
static inline double mesh_sizing_at(const mesh_sizing *s, double x, double y)
{
    double h = s->size;
    for (int32_t i = 0; i < s->feature_count; i++) {
        const mesh_feature *f = &s->feature[i];
        double dx = x - f->x, dy = y - f->y;
        double away = sqrt(dx * dx + dy * dy) - f->radius;
        double own = s->size / f->factor + (away > 0.0 ? MESH_GRADATION * away : 0.0);
        h = own < h ? own : h;
    }
    if (s->blend > 0.0) {
        h = s->blend / sqrt(s->blend_flat + s->blend_work / (h * h));
    }
    return h;
}

#endif
