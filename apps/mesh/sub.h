/* A sub-domain: a self-contained constrained Delaunay triangulation that can be refined, packed
 * into a buffer, rebuilt elsewhere, and told of splits its neighbours made.
 *
 * Invariants between calls:
 *   - every triangle turns left; across every edge that is no piece the triangulation is Delaunay;
 *   - `tri` is dense: slots 0 .. tri_count-1 are all alive;
 *   - neighbour slot n[i] (across the edge v[i+1] v[i+2]) holds a triangle, or ~p for the piece p;
 *   - an edge is an input segment's part or a cut. Halving makes a binary tree of pieces below it;
 * a piece is named by its edge and its path: 1 is the whole edge, 2p its half nearer the edge's
 *     start, 2p+1 the other. Both owners of a shared edge know it by the same id, start and end.
 *   - every triangle that is too large or too thin is in the queue, or cannot be improved.
 * Threads: one at a time per sub-domain. No function keeps pointers to its arguments. */
#ifndef MESH_SUB_H
#define MESH_SUB_H

#include "exact.h"
#include "log.h"
#include "sizing.h"

#include <stddef.h>

typedef struct mesh_tri {
    int32_t v[3];
    int32_t n[3];
} mesh_tri;

typedef struct mesh_piece {
    int32_t edge;
    uint32_t path;
    int32_t node;
    int32_t tri[2]; /* left and right of the direction start to end; -1 outside this sub-domain */
} mesh_piece;

typedef struct mesh_edge {
    int32_t id;        /* of a shared edge, the same in both sub-domains; -1 if not shared */
    int32_t neighbour; /* the sub-domain that shares it, or -1 */
    int32_t segment;   /* the input segment it is part of, or -1 for a cut */
    int32_t root;      /* its node */
} mesh_edge;

/* Says that the piece `path` of shared edge `edge` was halved; for sub-domain `to`. */
typedef struct mesh_split {
    int32_t to;
    int32_t edge;
    uint32_t path;
} mesh_split;

typedef struct mesh_splits {
    mesh_split *at;
    int32_t count, capacity;
} mesh_splits;

/* The part of a sub-domain that is plain values; it is packed as it stands. */
typedef struct mesh_sub_head {
    uint32_t magic;
    int32_t index; /* which sub-domain this is */
    int32_t point_count, tri_count, piece_count, edge_count, shared_count, node_count;
    int32_t queue_count;
    int32_t rank;     /* of the last refinement; set by the application, for pictures */
    uint32_t walk;    /* state of the walk's choice of direction */
    int32_t grain;    /* new inner points lie on multiples of this */
    int64_t inserted; /* inner points made */
    int64_t halved;   /* pieces split on its own account */
    int64_t applied;  /* shared pieces split because a neighbour said so */
} mesh_sub_head;

typedef struct mesh_rim mesh_rim;
typedef struct mesh_corner mesh_corner;

typedef struct mesh_sub {
    mesh_sub_head head;
    mesh_point *point;
    mesh_tri *tri;
    mesh_piece *piece; /* piece 0 stands for the outside of an unfinished triangulation */
    mesh_edge *edge;   /* the shared ones first, by ascending id */
    int32_t *node;     /* of the trees: the first of two children, or ~piece */
    int32_t *queue;    /* ring of triangles to look at */
    int32_t point_room, tri_room, piece_room, edge_room, node_room, queue_room, queue_first;
    /* Scratch of one insertion; not packed. */
    mesh_rim *rim;
    mesh_corner *stack;
    int32_t *dead;
    int32_t rim_room, stack_room, dead_room, rim_count, dead_count;
} mesh_sub;

typedef struct mesh_quality {
    double angle_deg; /* no smaller angle than this, except between input segments; 0 to 32 */
} mesh_quality;

#define MESH_ANGLE_MAX 32.0

enum { MESH_DONE = 0, MESH_MORE = 1 };

/* Refines until every triangle keeps `sizing` and `quality` or cannot be improved, or until about
 * `budget` points were made (0: no limit). Appends to `splits` one entry for each split of a shared
 * piece it made itself, for the caller to send.
 * Returns MESH_DONE, MESH_MORE when the budget ran out, or -1 out of memory (the sub-domain can
 * then only be destroyed). */
int mesh_sub_refine(mesh_sub *sub, const mesh_sizing *sizing, const mesh_quality *quality,
                    int64_t budget, mesh_splits *splits);

/* The index of the shared edge `id` in `edge`; -1 if there is none. */
int32_t mesh_sub_shared(const mesh_sub *sub, int32_t id);

/* Applies a neighbour's split: halves that piece here too, and first the pieces above it if word of
 * them is still in flight. A split that was done already changes nothing. New triangles are queued
 * for mesh_sub_refine. Returns the number of pieces halved, or -1 if the split names no shared edge
 * of this sub-domain, no possible piece, or memory ran out. */
int mesh_sub_apply_split(mesh_sub *sub, int32_t edge, uint32_t path);

/* True when mesh_sub_refine has nothing to look at. */
static inline int mesh_sub_idle(const mesh_sub *sub)
{
    return sub->head.queue_count == 0;
}

/* Bytes mesh_sub_pack writes now. */
size_t mesh_sub_pack_size(const mesh_sub *sub);

/* Writes mesh_sub_pack_size bytes to `out`, at any alignment. The sub-domain is not changed. */
void mesh_sub_pack(const mesh_sub *sub, void *out);

/* Rebuilds a sub-domain from `size` borrowed bytes. Checks sizes and every index, so that bytes
 * from elsewhere cannot crash later calls. Gives the sub-domain (free with mesh_sub_destroy), or
 * NULL with log->error. */
mesh_sub *mesh_sub_unpack(const void *bytes, size_t size, mesh_log *log);

void mesh_sub_destroy(mesh_sub *sub);

/* Bytes of memory held, scratch and spare room included. */
size_t mesh_sub_memory(const mesh_sub *sub);

void mesh_splits_fini(mesh_splits *splits);

#endif
