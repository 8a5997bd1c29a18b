/* Change: blocks that get other owners, if no rank has the whole floor plan. The old owner and the
 * new owner of a block learn of its change, and the ranks that ask for it. */
#ifndef FY_MOVER_CHANGE_H
#define FY_MOVER_CHANGE_H

#include "mover/run/state.h"

/* A block that leaves this rank or comes to it. In a list of known blocks: a block, with its owner
 * in `from`. */
typedef struct fy_owner_change {
    ferry_region region;
    int32_t number;
    int from, to;
} fy_owner_change;

typedef struct fy_changes {
    fy_owner_change *items;
    size_t count, capacity;
} fy_changes;

/* Adds a change. FERRY_ENOMEM. */
int fy_changes_add(fy_changes *list, int32_t number, const ferry_block *block, int to);

/* Lists the blocks of a whole plan whose owner changes to `owners`, if they leave this rank or come
 * to it. FERRY_ENOMEM. */
int fy_changes_between(ferry *f, const ferry_floorplan *old, const int32_t *owners,
                       fy_changes *list);

/* Each rank has listed the blocks that leave it, or those that come to it. After the call its list
 * has both, in the order of numbers. Collective. If one rank passes an `error`, all return one.
 * FERRY_ENOMEM, FERRY_EPEER. */
int fy_changes_swap(ferry *f, int error, fy_changes *list);

/* Makes `*out` from the share `old`: this rank's blocks after the changes, and the blocks of `old`
 * with their new owners. Collective: an error of one rank is one of all. */
int fy_changes_apply(ferry *f, const ferry_floorplan *old, const fy_changes *list,
                     ferry_floorplan *out);

/* Adds to a share the known blocks that it does not have. Sorts the list. FERRY_ENOMEM. */
int fy_floorplan_learn(ferry_floorplan *share, fy_changes *known);

/* Removes blocks from the shares of `arrays`, and of the xarrays that movers connect with them. Own
 * blocks and those that copies name stay. Without memory it removes none. */
void fy_arrays_prune(ferry *f, fy_arrays arrays);

/* As ferry_floorplan_share. If this rank passes an `error`, all ranks return one. */
int fy_floorplan_share(ferry *f, int error, const ferry_floorplan *own, const ferry_regions *near,
                       ferry_floorplan *out);

#endif
