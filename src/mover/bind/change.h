/* Change: blocks that get other owners, and what ranks learn of it when nobody has the whole floor
 * plan. If a block changes owners, the old owner and the new one know, and the ranks that ask. */
#ifndef FY_MOVER_CHANGE_H
#define FY_MOVER_CHANGE_H

#include "mover/run/state.h"

/* A block that leaves this rank or comes to it; or, where a list is of what is known, a block and,
 * in `from`, its owner. */
typedef struct fy_change {
    ferry_region region;
    int32_t number;
    int from, to;
} fy_change;

typedef struct fy_changes {
    fy_change *items;
    size_t count, capacity;
} fy_changes;

/* FERRY_ENOMEM. */
int fy_changes_add(fy_changes *list, int32_t number, const ferry_block *block, int to);

/* Lists what differs between the owners of two whole plans and touches this rank. FERRY_ENOMEM. */
int fy_changes_between(ferry *f, const ferry_floorplan *old, const int32_t *owners,
                       fy_changes *list);

/* Each rank has listed either what leaves it or what comes to it; afterwards it has both, in the
 * order of numbers. Collective; an `error` is one of all ranks. FERRY_ENOMEM, FERRY_EPEER. */
int fy_changes_swap(ferry *f, int error, fy_changes *list);

/* Makes `*out` the share `old` with the owners of now: the blocks that are this rank's then, and
 * those of `old` with whom they have become. Collective; an `error` is one of all ranks. */
int fy_changes_apply(ferry *f, int error, const ferry_floorplan *old, const fy_changes *list,
                     ferry_floorplan *out);

/* Adds the blocks that a share does not have; orders the list. FERRY_ENOMEM. */
int fy_floorplan_learn(ferry_floorplan *share, fy_changes *known);

/* Forgets what shares of `arrays`, and of xarrays that movers connect them with, have beside own
 * blocks and those that copies name. Without memory it leaves them. */
void fy_arrays_prune(ferry *f, fy_arrays arrays);

/* ferry_floorplan_share when this rank has found an `error` already, which is one of all then. */
int fy_floorplan_share(ferry *f, int error, const ferry_floorplan *own, const ferry_regions *near,
                       ferry_floorplan *out);

#endif
