/* Exact integer geometry.
 *
 * Invariant: every coordinate is in [0, 2^29). A difference then has 30 bits with its sign, an
 * orientation fits in int64 and an in-circle determinant in a 128-bit integer, so no predicate here
 * rounds. Vertices of the input lie on multiples of MESH_GRAIN; a segment between two of them can
 * be halved twelve times with exact midpoints. Threads: pure functions. */
#ifndef MESH_EXACT_H
#define MESH_EXACT_H

#include <stdbool.h>
#include <stdint.h>

#define MESH_COORD_BITS 29
#define MESH_GRAIN_BITS 12
#define MESH_GRAIN (1 << MESH_GRAIN_BITS)
/* Below this length (in grid units) rounding a new point would spoil angles: nothing is cut there.
 */
#define MESH_LENGTH_MIN 64

__extension__ typedef __int128 mesh_wide;

typedef struct mesh_point {
    int32_t x, y;
} mesh_point;

static inline bool mesh_point_equal(mesh_point a, mesh_point b)
{
    return a.x == b.x && a.y == b.y;
}

/* Twice the signed area of a, b, c: positive when they turn left. */
static inline int64_t mesh_orient(mesh_point a, mesh_point b, mesh_point c)
{
    int64_t bx = b.x - a.x, by = b.y - a.y;
    int64_t cx = c.x - a.x, cy = c.y - a.y;
    return bx * cy - by * cx;
}

/* The dot product of (a - c) and (b - c): negative when c is strictly inside the circle with
 * diameter a b. */
static inline int64_t mesh_dot(mesh_point a, mesh_point b, mesh_point c)
{
    int64_t ax = a.x - c.x, ay = a.y - c.y;
    int64_t bx = b.x - c.x, by = b.y - c.y;
    return ax * bx + ay * by;
}

static inline int64_t mesh_length2(mesh_point a, mesh_point b)
{
    int64_t x = b.x - a.x, y = b.y - a.y;
    return x * x + y * y;
}

/* True when d is strictly inside the circle through a, b, c, which turn left. */
static inline bool mesh_in_circle(mesh_point a, mesh_point b, mesh_point c, mesh_point d)
{
    int64_t ax = a.x - d.x, ay = a.y - d.y;
    int64_t bx = b.x - d.x, by = b.y - d.y;
    int64_t cx = c.x - d.x, cy = c.y - d.y;
    mesh_wide det = (mesh_wide)(ax * ax + ay * ay) * (bx * cy - by * cx);
    det += (mesh_wide)(bx * bx + by * by) * (cx * ay - cy * ax);
    det += (mesh_wide)(cx * cx + cy * cy) * (ax * by - ay * bx);
    return det > 0;
}

/* True when the midpoint of a, b is a grid point and the halves are not too short. */
static inline bool mesh_can_halve(mesh_point a, mesh_point b)
{
    int32_t x = b.x - a.x, y = b.y - a.y;
    if (((x | y) & 1) != 0) {
        return false;
    }
    return mesh_length2(a, b) >= 4LL * MESH_LENGTH_MIN * MESH_LENGTH_MIN;
}

static inline mesh_point mesh_middle(mesh_point a, mesh_point b)
{
    return (mesh_point){a.x + (b.x - a.x) / 2, a.y + (b.y - a.y) / 2};
}

#endif
