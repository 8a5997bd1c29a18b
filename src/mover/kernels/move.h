/* Move: one copy of a plan between two grids, made ready to run.
 *
 * Making it works out strides, joins dimensions that lie together in both grids, orders the rest so
 * that writes are close together, and chooses the loops. Running it touches nothing else, so a move
 * may run any number of times while the grids stay where they are. */
#ifndef FY_MOVE_H
#define FY_MOVE_H

#include <ferry/mover.h>

#include "mover/kernels/axes.h"

/* The operation of a mover on elements of a size. */
typedef struct fy_combine fy_combine;

/* Combines `count` units at stride `s` from `source` into those at stride `d` from `target`. */
typedef void fy_row_fn(const fy_combine *how, char *target, ptrdiff_t d, const char *source,
                       ptrdiff_t s, size_t count);

/* As fy_row_fn, where unit i lies d[i * step] and s[i * step] bytes from target and source. */
typedef void fy_spread_fn(char *target, const ptrdiff_t *d, const char *source, const ptrdiff_t *s,
                          size_t step, size_t count);

struct fy_combine {
    fy_row_fn *row;       /* NULL: copy */
    fy_spread_fn *spread; /* NULL: there is none, row will do */
    size_t unit;          /* bytes that one step of `row` works on */
    size_t each;          /* units to an element */
    ferry_element_fn *fn;
    void *arg;
};

/* FERRY_EINVAL with a message when elements of `element_bytes` do not fit; `operation` may be NULL.
 */
int fy_combine_init(fy_combine *how, const ferry_operation *operation, size_t element_bytes);

/* Bytes of a number, or 0: there is none such. */
size_t fy_number_bytes(ferry_type number);

typedef enum fy_move_kind {
    FY_MOVE_ROWS,      /* nested loops over axes; the innermost is a row of units */
    FY_MOVE_TRANSPOSE, /* the last two axes: contiguous in the source, contiguous in the target */
    FY_MOVE_TABLE,     /* offsets by table along each axis */
    FY_MOVE_RESHAPE,   /* two walks in step */
    FY_MOVE_LIST,      /* offsets by table, element by element */
} fy_move_kind;

/* 48 bytes beside what it shares with others. */
typedef struct fy_move {
    const char *source;
    char *target;
    const fy_axis *axis; /* outermost first; of FY_MOVE_RESHAPE those of the target, and behind them
                            those of the source */
    ptrdiff_t *table;    /* own memory, of FY_MOVE_TABLE and FY_MOVE_LIST */
    size_t unit;
    uint8_t kind; /* fy_move_kind */
    uint8_t dims; /* of axis, of FY_MOVE_RESHAPE those of the target */
    uint8_t from_dims;
    bool paired; /* runs together with the next one of its array */
} fy_move;

/* Makes the move of `copy`, which fits both grids (fy_plan_check_entry). Its axes are kept in
 * `axes`. FERRY_ENOMEM. */
int fy_move_init(fy_move *move, fy_axes *axes, const ferry_plan_entry *copy,
                 const ferry_grid *target, const ferry_grid *source, const fy_combine *how);
void fy_move_fini(fy_move *move);

/* Bytes that it copies, of FY_MOVE_ROWS and FY_MOVE_TRANSPOSE. */
static inline size_t fy_move_bytes(const fy_move *move)
{
    size_t bytes = move->unit;
    for (int i = 0; i < move->dims; i++)
        bytes *= move->axis[i].count;
    return bytes;
}

/* Runs it, with target and source `d` and `s` bytes further on. */
void fy_move_run(const fy_move *move, const fy_combine *how, ptrdiff_t d, ptrdiff_t s);

/* Puts moves of an array that touch the same cache lines next to each other, and marks the first.
 * FERRY_ENOMEM. */
int fy_moves_pair(fy_move *moves, size_t count);

/* Runs all of an array. */
void fy_moves_run(const fy_move *moves, size_t count, const fy_combine *how);

/* The part of `copy` that travels: the region of a dense grid that its source points are packed to,
 * and the copies into that grid and out of it. */
void fy_copy_split(const ferry_plan_entry *copy, ferry_region *dense, ferry_plan_entry *pack,
                   ferry_plan_entry *unpack);

#endif
