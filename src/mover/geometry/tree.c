/* A packed R-tree. Level 0 has the regions themselves, in the order of their keys. Item i of level
 * l + 1 is the box around items i * fanout to (i + 1) * fanout - 1 of level l. */
#include "mover/geometry/tree.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "mover/geometry/curve.h"

static size_t up(size_t count)
{
    return (count + FY_TREE_FANOUT - 1) / FY_TREE_FANOUT;
}

/* Sets where each level starts. Returns the number of boxes of all levels. */
static size_t plan_levels(fy_tree *tree)
{
    size_t total = 0, count = tree->count;
    tree->levels = 0;
    while (count > 0) {
        tree->level_start[tree->levels++] = total;
        total += count;
        if (count <= FY_TREE_FANOUT)
            break;
        count = up(count);
    }
    tree->level_start[tree->levels] = total;
    return total;
}

static void bound_level(fy_tree *tree, int level)
{
    const ferry_region *below = tree->boxes + tree->level_start[level - 1];
    size_t below_count = tree->level_start[level] - tree->level_start[level - 1];
    ferry_region *box = tree->boxes + tree->level_start[level];
    for (size_t i = 0; i < below_count; i++) {
        ferry_region *parent = &box[i / FY_TREE_FANOUT];
        if (i % FY_TREE_FANOUT == 0)
            *parent = below[i];
        for (int d = 0; d < tree->dims; d++) {
            parent->low.at[d] = fy_min(parent->low.at[d], below[i].low.at[d]);
            parent->high.at[d] = fy_max(parent->high.at[d], below[i].high.at[d]);
        }
    }
}

static const ferry_region *item(const ferry_region *first, size_t stride_bytes, size_t i)
{
    return (const ferry_region *)(const void *)((const char *)first + i * stride_bytes);
}

int fy_tree_init(fy_tree *tree, int dims, const ferry_region *first, size_t stride_bytes,
                 size_t count)
{
    *tree = (fy_tree){.dims = dims};
    fy_curve_item *keys = fy_malloc((count + 1) * sizeof *keys);
    if (keys == NULL)
        return FERRY_ENOMEM;
    ferry_region hull = {.dims = dims};
    for (size_t i = 0; i < count; i++) {
        const ferry_region *r = item(first, stride_bytes, i);
        if (ferry_region_is_empty(*r))
            continue;
        hull = tree->count == 0 ? *r : ferry_region_bound(hull, *r);
        keys[tree->count++].number = (uint32_t)i;
    }
    size_t total = plan_levels(tree);
    tree->order = fy_malloc((tree->count + 1) * sizeof *tree->order);
    tree->boxes = fy_malloc((total + 1) * sizeof *tree->boxes);
    if (tree->order == NULL || tree->boxes == NULL) {
        free(keys);
        fy_tree_fini(tree);
        return FERRY_ENOMEM;
    }
    for (size_t i = 0; i < tree->count; i++)
        keys[i].key = fy_curve_morton(&hull, item(first, stride_bytes, keys[i].number));
    fy_curve_sort(keys, tree->count);
    for (size_t i = 0; i < tree->count; i++) {
        tree->order[i] = keys[i].number;
        tree->boxes[i] = *item(first, stride_bytes, keys[i].number);
    }
    for (int level = 1; level < tree->levels; level++)
        bound_level(tree, level);
    free(keys);
    return 0;
}

void fy_tree_fini(fy_tree *tree)
{
    free(tree->order);
    free(tree->boxes);
    *tree = (fy_tree){0};
}

void fy_tree_find(fy_tree_walk *walk, const fy_tree *tree, const ferry_region *where)
{
    walk->tree = tree;
    walk->where = *where;
    walk->depth = 0;
    if (tree->count == 0 || where->dims != tree->dims || ferry_region_is_empty(*where))
        return;
    int top = tree->levels - 1;
    walk->depth = 1;
    walk->stack[0].next = 0;
    walk->stack[0].end = (uint32_t)(tree->level_start[top + 1] - tree->level_start[top]);
    walk->stack[0].level = top;
}

bool fy_tree_next(fy_tree_walk *walk, uint32_t *number, const ferry_region **region)
{
    const fy_tree *tree = walk->tree;
    while (walk->depth > 0) {
        int at = walk->depth - 1, level = walk->stack[at].level;
        if (walk->stack[at].next == walk->stack[at].end) {
            walk->depth--;
            continue;
        }
        uint32_t i = walk->stack[at].next++;
        const ferry_region *box = &tree->boxes[tree->level_start[level] + i];
        if (!fy_box_meets(&walk->where, box))
            continue;
        if (level == 0) {
            *number = tree->order[i];
            *region = box;
            return true;
        }
        size_t below = tree->level_start[level] - tree->level_start[level - 1];
        size_t end = ((size_t)i + 1) * FY_TREE_FANOUT;
        walk->stack[walk->depth].next = i * FY_TREE_FANOUT;
        walk->stack[walk->depth].end = (uint32_t)(end < below ? end : below);
        walk->stack[walk->depth++].level = level - 1;
    }
    return false;
}
