/* Tree: finds the regions of a list that meet a given one.
 *
 * A packed R-tree: the regions in the order of a Morton curve through their centres, FY_TREE_FANOUT
 * to a leaf, and boxes around every FY_TREE_FANOUT boxes up to one. Built once, O(n log n); a query
 * costs O(log n) and the hits for regions that do not pile up. Immutable and without state of its
 * own, so that any number of threads may query. */
#ifndef FY_TREE_H
#define FY_TREE_H

#include "mover/geometry/box.h"

#define FY_TREE_FANOUT 8
#define FY_TREE_LEVELS 24

typedef struct fy_tree {
    int dims;
    size_t count;
    uint32_t *order;     /* numbers of the regions, as packed */
    ferry_region *boxes; /* level after level, the packed regions first */
    size_t level_start[FY_TREE_LEVELS + 1];
    int levels;
} fy_tree;

/* Where a query stands. */
typedef struct fy_tree_walk {
    const fy_tree *tree;
    ferry_region where;
    int depth;
    struct {
        uint32_t next, end;
        int level;
    } stack[FY_TREE_LEVELS];
} fy_tree_walk;

/* Builds a tree of `count` regions that lie `stride_bytes` apart, all of `dims` dimensions; empty
 * ones are left out. Borrows `first`. FERRY_ENOMEM. */
int fy_tree_init(fy_tree *tree, int dims, const ferry_region *first, size_t stride_bytes,
                 size_t count);
void fy_tree_fini(fy_tree *tree);

/* Starts a query for the regions that meet `where`; lends `tree` until it is over. */
void fy_tree_find(fy_tree_walk *walk, const fy_tree *tree, const ferry_region *where);

/* The next region that meets, by number and, with `region`, as lent; false after the last. The
 * order depends on the regions alone. */
bool fy_tree_next(fy_tree_walk *walk, uint32_t *number, const ferry_region **region);

#endif
