/* Shape: the extents, axes, ratios and relation of a copy. Many entries of a motion plan have the
 * same shape, so each is kept once. The halo of blocks of one size has a few dozen shapes, whatever
 * the number of blocks. */
#ifndef FY_MOVER_SHAPE_H
#define FY_MOVER_SHAPE_H

#include <ferry/mover_plan.h>

#include "base/table.h"

/* Shapes are compared as memory, so padding must be zero. */
typedef struct fy_shape {
    int32_t to_dims, from_dims;
    uint64_t to_length[FERRY_DIMS_MAX]; /* from low to high corner; 0 beyond the dimensions */
    uint64_t from_length[FERRY_DIMS_MAX];
    int32_t ratio[FERRY_DIMS_MAX];
    int8_t axis[FERRY_DIMS_MAX];
    uint8_t relation;
    uint8_t zero;
} fy_shape;

/* The shapes of a plan, numbered from 0. */
typedef struct ferry_plan_shapes {
    fy_shape *items;
    size_t count, capacity;
    fy_table by_hash;
    bool is_indexed; /* by_hash exists and has all shapes */
} fy_shapes;

/* How many coordinates a region has, whatever its `dims` says. */
static inline int fy_dims_kept(int32_t dims)
{
    return dims < 0 ? 0 : dims > FERRY_DIMS_MAX ? FERRY_DIMS_MAX : dims;
}

/* An empty list; NULL: no memory. */
fy_shapes *fy_shapes_create(void);
void fy_shapes_destroy(fy_shapes *shapes);

/* Forgets all shapes. */
void fy_shapes_clear(fy_shapes *shapes);

/* Gives the number of the shape of `copy`. If the shape is new, it is added. FERRY_ENOMEM. */
int fy_shapes_number(fy_shapes *shapes, const ferry_plan_entry *copy, uint32_t *number);

/* Sets the fields of an entry that its shape has. */
void fy_shape_give(const fy_shape *shape, ferry_plan_entry *copy);

/* Swaps source and target of each shape. */
void fy_shapes_reverse(fy_shapes *shapes);

#endif
