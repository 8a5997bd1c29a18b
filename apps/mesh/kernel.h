/* The triangulation under a sub-domain: making room, cavities, flips. Internal to the mesh library.
 *
 * A point is inserted by removing every triangle whose circle contains it and joining it to the rim
 * of that cavity. The cavity is a tree in the dual graph (it holds no vertex inside), so a walk
 * over it needs no marks and meets the rim in counter-clockwise order. Constrained edges are never
 * crossed: with exact predicates the cavity of a constrained Delaunay triangulation is star-shaped
 * even so. */
#ifndef MESH_KERNEL_H
#define MESH_KERNEL_H

#include "sub.h"

struct mesh_rim {
    int32_t a, b; /* counter-clockwise seen from the new point */
    int32_t n;    /* what lies beyond: a triangle or ~piece */
    int32_t slot; /* which of the neighbour's slots, or of the piece's sides, looks back */
};

struct mesh_corner {
    int32_t tri, edge;
};

static inline int32_t mesh_next3(int32_t i)
{
    return i == 2 ? 0 : i + 1;
}

static inline int32_t mesh_prev3(int32_t i)
{
    return i == 0 ? 2 : i - 1;
}

mesh_sub *mesh_sub_new(void);

/* Room for so many more of each; -1 out of memory. */
int mesh_room_points(mesh_sub *sub, int32_t more);
int mesh_room_tris(mesh_sub *sub, int32_t more);
int mesh_room_pieces(mesh_sub *sub, int32_t more);
int mesh_room_edges(mesh_sub *sub, int32_t more);

/* Appends an edge with its root piece, whose sides are open. Returns the piece, or -1. */
int32_t mesh_add_edge(mesh_sub *sub, mesh_edge edge);

/* Finds the cavity of `p` from `root`, a triangle whose circle contains it; fills rim and dead.
 * With `open` >= 0 that edge of the root is left out: p lies on it. -1 out of memory. */
int mesh_cavity(mesh_sub *sub, mesh_point p, int32_t root, int32_t open);

/* Replaces the cavity found last by triangles around the new point `v`; the new triangles stand in
 * dead[0 .. rim_count-1] afterwards. The cavity is closed (no `open`). */
int mesh_fill(mesh_sub *sub, int32_t v);

/* Halves a piece on both sides, without queueing. `made` is called per new triangle. */
int mesh_halve(mesh_sub *sub, int32_t piece, void (*made)(mesh_sub *, int32_t tri, void *),
               void *arg);

void mesh_piece_ends(const mesh_sub *sub, int32_t piece, int32_t *a, int32_t *b);

/* Walks from triangle t to p. Returns the triangle that holds p, or ~piece when that piece is in
 * the way, or has p on it. INT32_MIN when the walk got lost (cannot happen in a sound
 * triangulation). */
int32_t mesh_walk(mesh_sub *sub, int32_t t, mesh_point p);

/* Turns the diagonal across edge i of triangle t, which is no piece, in its convex quadrilateral.
 */
void mesh_flip(mesh_sub *sub, int32_t t, int32_t i);

/* True when edge i of t is no piece and its far vertex lies inside t's circle. */
bool mesh_not_delaunay(const mesh_sub *sub, int32_t t, int32_t i);

/* Flips until the triangulation is constrained Delaunay everywhere. -1 out of memory. */
int mesh_make_delaunay(mesh_sub *sub);

/* Appends a triangle to the queue of those to look at; -1 out of memory. */
int mesh_queue_push(mesh_sub *sub, int32_t t);

/* Appends a point (room was made). */
static inline int32_t mesh_add_point(mesh_sub *sub, mesh_point p)
{
    sub->point[sub->head.point_count] = p;
    return sub->head.point_count++;
}

/* The slot of triangle t that holds neighbour value n. */
static inline int32_t mesh_slot_of(const mesh_sub *sub, int32_t t, int32_t n)
{
    const mesh_tri *tri = &sub->tri[t];
    return tri->n[0] == n ? 0 : tri->n[1] == n ? 1 : 2;
}

#endif
