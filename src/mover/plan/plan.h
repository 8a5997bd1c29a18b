/* Plan: functions on entries of motion plans that several files use. */
#ifndef FY_PLAN_H
#define FY_PLAN_H

#include <ferry/mover_plan.h>

#include "mover/geometry/floorplan.h"
#include "mover/geometry/tree.h"

/* Reads entry `index`, which exists, or one block number of it. */
void fy_plan_read(const ferry_plan *plan, size_t index, ferry_plan_entry *copy);
int32_t fy_plan_source(const ferry_plan *plan, size_t index);
int32_t fy_plan_target(const ferry_plan *plan, size_t index);

/* Makes `copy` a plain one: one point to one point, with the axes in order. */
void fy_copy_plain(ferry_plan_entry *copy);

/* Compares entries by their contents alone: by target block, then the low corner of `to`, source
 * block, and the rest. Returns less than, equal to or greater than 0. */
int fy_copy_compare(const ferry_plan_entry *a, const ferry_plan_entry *b);

/* The same for entries `a` and `b` of a plan. */
int fy_plan_compare(const ferry_plan *plan, size_t a, size_t b);

/* Builds a tree of a floor plan's blocks. FERRY_EINVAL: a block has other dimensions.
 * FERRY_ENOMEM. */
int fy_plan_tree(fy_tree *tree, const ferry_floorplan *blocks);

/* Checks that regions, axes and ratios of `copy`, entry `i`, fit each other. FERRY_EINVAL: the
 * error message names what does not. */
int fy_plan_check_entry(ferry *f, const ferry_plan_entry *copy, size_t i);

#endif
