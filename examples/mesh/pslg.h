/* The input on the integer grid: a planar straight-line graph that is clean.
 *
 * Invariants of a mesh_pslg that was created:
 *   - points are distinct multiples of MESH_GRAIN with a margin to the border of the grid;
 *   - segments are distinct, have two different ends, and touch others in common ends alone;
 *   - where two segments meet at less than 60 degrees they have (almost) equal length near their
 *     common end, if the grid leaves room, so that halving keeps them equal: refinement needs that.
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

typedef struct mesh_segment {
    int32_t a, b;
    int32_t line; /* of the input file */
} mesh_segment;

typedef struct mesh_pslg {
    mesh_frame frame;
    int32_t point_count, segment_count, hole_count;
    mesh_point *point;
    mesh_segment *segment;
    mesh_point *hole;
    int32_t *hole_line;
    char *name;
} mesh_pslg;

/* Snaps `poly` (borrowed) to the grid and cleans it. Each repair is a note: points that coincide
 * are merged, segments without length and second copies are dropped, a segment is split at a point
 * that lies on it. Gives *out (free with mesh_pslg_fini), or returns -1 with log->error naming the
 * lines: segments that cross, a ring of fewer than three distinct points, features too fine for the
 * grid. */
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
