/* Polygons for the fuzzer: sound ones, and changes that spoil them. */
#ifndef MESH_TEST_SHAPES_H
#define MESH_TEST_SHAPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHAPE_POINTS_MAX 4096
#define SHAPE_RINGS_MAX 12
#define SHAPE_EXTRAS_MAX 32
#define SHAPE_HOLES_MAX 8

typedef struct shape_point {
    double x, y;
} shape_point;

typedef struct shape_ring {
    int count;
    shape_point at[SHAPE_POINTS_MAX];
} shape_ring;

typedef struct shape {
    int ring_count, extra_count, hole_count;
    shape_ring ring[SHAPE_RINGS_MAX];
    shape_point extra[SHAPE_EXTRAS_MAX][2]; /* segments in no ring */
    shape_point hole[SHAPE_HOLES_MAX];
    bool shuffled;  /* the file lists the segments in no order */
    bool shared;    /* equal points are one vertex of the file */
    int digits;     /* of the coordinates in the file */
    double stretch; /* about how wide the shape is: sizes are fractions of it */
} shape;

/* A source of numbers that a seed determines. */
typedef struct shape_dice {
    uint64_t state;
} shape_dice;

uint32_t shape_roll(shape_dice *d, uint32_t sides);
double shape_fraction(shape_dice *d); /* from 0 to below 1 */

/* How many sound shapes there are, and sound shape `index`. `coast` holds coast_count points of a
 * coastline, for some of them. */
#define SHAPE_SOUND 48
void shape_sound(shape *s, int index, const shape_point *coast, int coast_count);

/* Changes the shape in one way; returns its name. */
const char *shape_spoil(shape *s, shape_dice *d);

/* Moves, turns and scales the whole shape, up to the limits of coordinates. */
void shape_place(shape *s, shape_dice *d);

/* The shape as a .poly text: gives it (free with free), or NULL out of memory. */
char *shape_text(const shape *s, shape_dice *d);

#endif
