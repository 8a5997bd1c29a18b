/* A static tree of boxes. It finds the boxes that a segment may touch.
 *
 * The tree is built once over all boxes and does not change. A search takes about the logarithm of
 * the number of boxes for each box that it finds. Threads: no shared state. */
#ifndef MESH_BOX_TREE_H
#define MESH_BOX_TREE_H

#include "exact.h"

typedef struct mesh_box {
    mesh_point low, high; /* both belong to the box */
} mesh_box;

typedef struct mesh_box_tree {
    int32_t leaves; /* a power of two */
    mesh_box *node; /* node 1 is the root, the children of node i are 2 i and 2 i + 1 */
    int32_t *item;  /* of each leaf: an index of the boxes given, or -1 */
} mesh_box_tree;

/* Called for a box that was found. A result other than 0 ends the search. */
typedef int (*mesh_box_visit)(void *arg, int32_t item);

/* Builds the tree over `count` borrowed boxes, at least one. Returns 0 and gives *out (free with
 * mesh_box_tree_fini), or -1 out of memory. */
int mesh_box_tree_init(mesh_box_tree *out, const mesh_box *box, int32_t count);
void mesh_box_tree_fini(mesh_box_tree *tree);

/* Visits every box that comes within `reach` of segment a b in both directions, and perhaps a few
 * others. Returns the result of the last visit, or 0. */
int mesh_box_tree_search(const mesh_box_tree *tree, mesh_point a, mesh_point b, int32_t reach,
                         mesh_box_visit visit, void *arg);

/* The smallest box that holds segment a b. */
static inline mesh_box mesh_box_around(mesh_point a, mesh_point b)
{
    return (mesh_box){{a.x < b.x ? a.x : b.x, a.y < b.y ? a.y : b.y},
                      {a.x < b.x ? b.x : a.x, a.y < b.y ? b.y : a.y}};
}

#endif
