/* Surface: the triangles that cover the faces of a sub-domain, made from the sizing alone.
 *
 * Each square of a cube's face is divided into four as long as its side is longer than the least
 * size within it. A square that is not divided is a fan of triangles around its middle. Its rim has
 * the corners of the smaller squares next to it, in the planes of all faces that meet there.
 * Nothing depends on which sub-domain asks, so both sides of an interface have the same triangles.
 */
#ifndef FRONT_SURFACE_H
#define FRONT_SURFACE_H

#include <stdbool.h>
#include <stddef.h>

#include "domain.h"
#include "sizing.h"

typedef struct front_surface {
    int32_t (*points)[3]; /* in units of 1 / FRONT_UNIT */
    int32_t (*triangles)[3];
    int32_t point_count, triangle_count;
    int32_t point_room, triangle_room;
    int32_t *table; /* of points by place; a power of two, -1: empty */
    int32_t table_room;
} front_surface;

/* A place within a sub-domain and the size that is wanted there. */
typedef struct front_spot {
    double at[3], size;
} front_spot;

typedef struct front_spots {
    front_spot *spots;
    int32_t count, room;
} front_spots;

/* The closed surface of the box. Seen from outside, triangles turn left. False: no memory; then
 * too the caller calls front_surface_fini. */
bool front_surface_make(front_surface *out, const front_sizing *s, const front_box *box);

void front_surface_fini(front_surface *surface);

/* The middles of the cubes into which the box is divided by the same rule. False: no memory; then
 * too the caller calls front_spots_fini. `out` NULL: counts alone. */
bool front_spots_make(front_spots *out, const front_sizing *s, const front_box *box);

/* How many spots front_spots_make would make: the number of tetrahedra is in proportion to it. */
int64_t front_spots_count(const front_sizing *s, const front_box *box);

void front_spots_fini(front_spots *spots);

#endif
