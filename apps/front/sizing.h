/* Sizing: how long edges of the mesh are meant to be, by place.
 *
 * Edges are `largest` long far from every feature. Towards a feature they shrink in proportion to
 * the distance, down to the feature's own size. A feature is the set of points at a distance
 * `radius` from a box: a crack is a flat box with radius 0, a sphere is a point with its radius. */
#ifndef FRONT_SIZING_H
#define FRONT_SIZING_H

#include <stdint.h>

enum { FRONT_FEATURES_MAX = 16 };

typedef struct front_feature {
    double low[3], high[3];
    double radius;
    double size;
} front_feature;

typedef struct front_sizing {
    double largest;
    double grading; /* growth of the size per unit of distance */
    int32_t count;
    front_feature features[FRONT_FEATURES_MAX];
} front_sizing;

/* The least size within the box. A box within the box has no smaller one, also after rounding. */
double front_sizing_least(const front_sizing *s, const double low[3], const double high[3]);

#endif
