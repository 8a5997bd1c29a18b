/* The input on the integer grid: a planar straight-line graph that is clean.
 *
 * Invariants of a mesh_pslg that was created:
 * - points are distinct multiples of MESH_GRAIN with a margin to the border of the grid;
 * - segments are distinct, have two different ends, and touch others in common ends alone;
 * - where two segments meet at less than 60 degrees they have (almost) equal length near their
 *   common end, if the grid leaves room, so that halving keeps them equal: refinement needs that.
 *
 * The places that are land (docs/decisions/0005-integer-geometry.md):
 * - Segments that follow each other in the file, each from the end of the one before, and that come
 *   back to their first vertex are a ring. A ring covers a place if it winds around it.
 * - All other segments are walls. A ring that touches a wall counts as walls too.
 * - A place is land if a ring covers it, or if walls enclose it.
 * - A hole point makes the places empty that have the same innermost ring and lie between the same
 *   walls.
 *
 * Threads: no shared state. */
#ifndef MESH_PSLG_H
#define MESH_PSLG_H

#include "exact.h"
#include "poly.h"
#include "sizing.h"

/* Where the grid lies: grid = (place - origin) * scale. Plain data. */
typedef struct mesh_frame {
    double x0, y0, scale;
} mesh_frame;

/* Going along a segment from a to b, ring `ring` of the input passes `net` times forward, less the
 * times it passes back. */
typedef struct mesh_cover {
    int32_t ring, net;
} mesh_cover;

typedef struct mesh_segment {
    int32_t a, b;
    int32_t line;        /* of the input file */
    int32_t cover;       /* its first entry in mesh_pslg.cover */
    int32_t cover_count; /* 0: a wall */
} mesh_segment;

typedef struct mesh_hole {
    mesh_point place;
    int32_t line; /* of the input file */
    int32_t ring; /* the innermost ring of the input around it, or -1 */
} mesh_hole;

typedef struct mesh_pslg {
    mesh_frame frame;
    int32_t point_count, segment_count, hole_count, cover_count;
    mesh_point *point;
    mesh_segment *segment;
    mesh_cover *cover;
    int32_t ring_count; /* rings are numbered by area, the largest first: inner ones come later */
    mesh_hole *hole;
    char *name;
} mesh_pslg;

/* Snaps `poly` (borrowed) to the grid and cleans it, as decision 0005 says. Each repair is a note.
 * Points that coincide are merged. A segment is led through points that it passes closer than half
 * a grain. Segments that fall together become one. Spikes and parts thinner than the grid vanish.
 * Gives *out (free with mesh_pslg_fini), or returns -1 with log->error naming the lines: segments
 * that cross by more than a grain, a ring of fewer than three distinct points, a hole point on a
 * segment. */
int mesh_pslg_create(const mesh_poly *poly, mesh_pslg *out, mesh_log *log);

void mesh_pslg_fini(mesh_pslg *pslg);

static inline double mesh_frame_x(const mesh_frame *f, int32_t x)
{
    return f->x0 + x / f->scale;
}

static inline double mesh_frame_y(const mesh_frame *f, int32_t y)
{
    return f->y0 + y / f->scale;
}

/* The size field for `size` and `count` features given in the input's units. -1 with log->error if
 * a value is not positive and finite, a factor below 1, or there are more than MESH_FEATURES_MAX.
 */
int mesh_sizing_make(const mesh_frame *frame, double size, const mesh_feature *feature,
                     int32_t count, mesh_sizing *out, mesh_log *log);

#endif
