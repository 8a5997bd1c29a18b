/* Floor plan: the number of a block by its place in the table, and its owner by its number. */
#ifndef FY_MOVER_FLOORPLAN_H
#define FY_MOVER_FLOORPLAN_H

#include <ferry/mover_plan.h>

/* The number of the block at place `i` of the table. */
static inline int32_t fy_block_number(const ferry_floorplan *plan, size_t i)
{
    return plan->numbers != NULL ? plan->numbers[i] : (int32_t)i;
}

/* The owner of a block; -1: this rank does not know the block. */
static inline int fy_block_owner(const ferry_floorplan *plan, int32_t number)
{
    const ferry_block *block = ferry_floorplan_block(plan, number);
    return block != NULL ? block->owner : -1;
}

#endif
