/* Move: one copy of a plan between two grids, prepared to run.
 *
 * fy_move_init computes strides, joins dimensions that are contiguous in both grids, orders the
 * others so that writes are close together, and chooses the loops. Running a move changes nothing
 * but the target. So it may run any number of times while the grids stay where they are. */
#ifndef FY_MOVE_H
#define FY_MOVE_H

#include <ferry/mover.h>

#include "mover/kernels/axes.h"

/* The operation of a mover, for elements of one size. */
typedef struct fy_combine fy_combine;

/* Combines `count` units of the source into those of the target. `s` and `d` are the bytes from one
 * unit to the next. */
typedef void fy_row_fn(const fy_combine *how, char *target, ptrdiff_t d, const char *source,
                       ptrdiff_t s, size_t count);

/* As fy_row_fn, but unit i is at target + d[i * step] and source + s[i * step]. */
typedef void fy_indexed_fn(char *target, const ptrdiff_t *d, const char *source, const ptrdiff_t *s,
                           size_t step, size_t count);

struct fy_combine {
    fy_row_fn *row;         /* NULL: copy */
    fy_indexed_fn *indexed; /* NULL: use `row`, unit by unit */
    size_t unit;            /* bytes of a unit */
    size_t each;            /* units of an element */
    ferry_element_fn *fn;
    void *arg;
};

/* `operation` may be NULL: a copy. FERRY_EINVAL, with a message: elements of `element_bytes` do not
 * fit it. */
int fy_combine_init(fy_combine *how, const ferry_operation *operation, size_t element_bytes);

/* Bytes of a number of this type; 0: the type is unknown. */
size_t fy_number_bytes(ferry_type number);

typedef enum fy_move_kind {
    FY_MOVE_ROWS,      /* nested loops over axes; the innermost is a row of units */
    FY_MOVE_TRANSPOSE, /* the source is contiguous along the axis before the last, the target along
                          the last */
    FY_MOVE_TABLE,     /* a table of offsets along each axis */
    FY_MOVE_RESHAPE,   /* the elements of both regions in turn, whose extents differ */
    FY_MOVE_LIST,      /* a table of offsets of each element */
} fy_move_kind;

/* 48 bytes, besides the axes that moves share. */
typedef struct fy_move {
    const char *source;
    char *target;
    const fy_axis *axis; /* outermost first; FY_MOVE_RESHAPE: those of the target, then those of
                            the source */
    ptrdiff_t *table;    /* of FY_MOVE_TABLE and FY_MOVE_LIST; freed with the move */
    size_t unit;
    uint8_t kind; /* fy_move_kind */
    uint8_t dims; /* how many axes; FY_MOVE_RESHAPE: of the target */
    uint8_t from_dims;
    bool paired; /* it runs together with the next move of its array */
} fy_move;

/* Makes the move of `copy`, which must fit both grids (fy_plan_check_entry). `axes` keeps its axes.
 * FERRY_ENOMEM. */
int fy_move_init(fy_move *move, fy_axes *axes, const ferry_plan_entry *copy,
                 const ferry_grid *target, const ferry_grid *source, const fy_combine *how);
void fy_move_fini(fy_move *move);

/* The bytes that a move of kind FY_MOVE_ROWS or FY_MOVE_TRANSPOSE copies. */
static inline size_t fy_move_bytes(const fy_move *move)
{
    size_t bytes = move->unit;
    for (int i = 0; i < move->dims; i++)
        bytes *= move->axis[i].count;
    return bytes;
}

/* Runs a move, with target and source `d` and `s` bytes further on. */
void fy_move_run(const fy_move *move, const fy_combine *how, ptrdiff_t d, ptrdiff_t s);

/* Sorts moves of an array so that pairs which access the same cache lines are neighbours, and marks
 * the first of each pair (pair.c). FERRY_ENOMEM. */
int fy_moves_pair(fy_move *moves, size_t count);

/* Runs all moves of an array. */
void fy_moves_run(const fy_move *moves, size_t count, const fy_combine *how);

/* Splits `copy` for the way through a message: `dense` is the region of a grid that holds the
 * points that travel, `pack` copies the source into that grid, `unpack` copies from it to the
 * target. */
void fy_copy_split(const ferry_plan_entry *copy, ferry_region *dense, ferry_plan_entry *pack,
                   ferry_plan_entry *unpack);

#endif
