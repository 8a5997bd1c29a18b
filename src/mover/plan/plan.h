/* Plan: what the builders of motion plans share. */
#ifndef FY_PLAN_H
#define FY_PLAN_H

#include <ferry/mover_plan.h>

#include "mover/geometry/floorplan.h"
#include "mover/geometry/tree.h"

/* Entry `index`, which is there, or a block of it alone. */
void fy_plan_read(const ferry_plan *plan, size_t index, ferry_plan_entry *copy);
int32_t fy_plan_source(const ferry_plan *plan, size_t index);
int32_t fy_plan_target(const ferry_plan *plan, size_t index);

/* Makes the correspondence of `copy` one to one with the axes in order. */
void fy_copy_plain(ferry_plan_entry *copy);

/* Whether the correspondence is that, between regions of one shape. */
bool fy_copy_is_simple(const ferry_plan_entry *copy);

/* An order of entries that depends on their contents alone: by target block, the low corner of
 * `to`, source block, and then the rest. Less, equal or greater than 0. */
int fy_copy_compare(const ferry_plan_entry *a, const ferry_plan_entry *b);

/* The same of entries `a` and `b` of a plan. */
int fy_plan_compare(const ferry_plan *plan, size_t a, size_t b);

/* A tree of a floor plan's blocks. FERRY_EINVAL: a block of other dimensions. FERRY_ENOMEM. */
int fy_plan_tree(fy_tree *tree, const ferry_floorplan *blocks);

/* Whether regions, axes and ratios of a copy, entry `i`, fit each other; FERRY_EINVAL says what
 * does not. */
int fy_plan_check_entry(ferry *f, const ferry_plan_entry *copy, size_t i);

#endif
