/* Tree: finds the regions of a list that intersect a given one.
 *
 * A packed R-tree. Its leaves have FY_TREE_FANOUT regions each, in the order of a Morton curve
 * through their centres. Each box above contains FY_TREE_FANOUT boxes, up to one box at the top. It
 * is built in O(n log n). A query costs O(log n) and the number of hits, if not many regions
 * overlap. The tree does not change after that, so any number of threads may query it. */
#ifndef FY_TREE_H
#define FY_TREE_H

#include "mover/geometry/box.h"

#define FY_TREE_FANOUT 8
#define FY_TREE_LEVELS 24

typedef struct fy_tree {
    int dims;
    size_t count;
    uint32_t *order;     /* numbers of the regions, in their order in the leaves */
    ferry_region *boxes; /* level after level, the packed regions first */
    size_t level_start[FY_TREE_LEVELS + 1];
    int levels;
} fy_tree;

/* The state of a query. */
typedef struct fy_tree_walk {
    const fy_tree *tree;
    ferry_region where;
    int depth;
    struct {
        uint32_t next, end;
        int level;
    } stack[FY_TREE_LEVELS];
} fy_tree_walk;

/* Builds a tree of `count` regions of `dims` dimensions, which lie `stride_bytes` apart. Leaves out
 * empty ones. Borrows `first`. FERRY_ENOMEM. */
int fy_tree_init(fy_tree *tree, int dims, const ferry_region *first, size_t stride_bytes,
                 size_t count);
void fy_tree_fini(fy_tree *tree);

/* Starts a query for the regions that intersect `where`. The query uses `tree` until its end. */
void fy_tree_find(fy_tree_walk *walk, const fy_tree *tree, const ferry_region *where);

/* Gives the number of the next region that intersects and, if `region` is not NULL, lends the
 * region until fy_tree_fini. After the last it returns false. The order depends on the regions
 * alone. */
bool fy_tree_next(fy_tree_walk *walk, uint32_t *number, const ferry_region **region);

#endif
