/* Runs moves.
 *
 * Units of 1, 2, 4, 8 ... bytes are copied by loops with a fixed size, which compilers turn into
 * plain loads and stores. Longer units are copied by memcpy. */
#include <string.h>

#include "mover/kernels/bulk.h"
#include "mover/kernels/move.h"
#include "mover/kernels/transpose.h"

#define FIXED(bytes)                                                                               \
    case bytes:                                                                                    \
        for (; count > 0; count--, target += d, source += s)                                       \
            memcpy(target, source, bytes);                                                         \
        return

/* Copies `count` units of `unit` bytes. It has few instructions per unit. So if each unit is in a
 * cache line of its own, the processor fetches more lines at a time. */
static void copy_row(size_t unit, char *target, ptrdiff_t d, const char *source, ptrdiff_t s,
                     size_t count)
{
    switch (unit) {
        FIXED(1);
        FIXED(2);
        FIXED(4);
        FIXED(8);
        FIXED(16);
        FIXED(24);
        FIXED(32);
        FIXED(40);
        FIXED(48);
        FIXED(64);
    default:
        for (size_t i = 0; i < count; i++)
            memcpy(target + (ptrdiff_t)i * d, source + (ptrdiff_t)i * s, unit);
    }
}

static void row(const fy_move *move, const fy_combine *how, char *target, const char *source,
                const fy_axis *axis)
{
    if (how->row == NULL)
        copy_row(move->unit, target, axis->d, source, axis->s, axis->count);
    else
        how->row(how, target, axis->d, source, axis->s, axis->count);
}

/* Runs the loops over the axes from `depth` on. */
static void nest(const fy_move *move, const fy_combine *how, int depth, char *target,
                 const char *source)
{
    const fy_axis *axis = &move->axis[depth];
    if (depth == move->dims - 1) {
        row(move, how, target, source, axis);
        return;
    }
    for (size_t i = 0; i < axis->count; i++, target += axis->d, source += axis->s)
        nest(move, how, depth + 1, target, source);
}

static void run_table(const fy_move *move, const fy_combine *how, int depth, const ptrdiff_t *table,
                      char *target, const char *source)
{
    size_t count = move->axis[depth].count;
    const ptrdiff_t *d = table, *s = table + count;
    const ptrdiff_t unit = (ptrdiff_t)move->unit;
    if (depth < move->dims - 1) {
        for (size_t i = 0; i < count; i++)
            run_table(move, how, depth + 1, table + 2 * count, target + d[i], source + s[i]);
        return;
    }
    if (how->indexed != NULL) {
        how->indexed(target, d, source, s, 1, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (how->row != NULL)
            how->row(how, target + d[i], unit, source + s[i], unit, 1);
        else if (unit == 8)
            memcpy(target + d[i], source + s[i], 8);
        else
            memcpy(target + d[i], source + s[i], move->unit);
    }
}

/* A walk over the elements of one side of FY_MOVE_RESHAPE. */
typedef struct walk {
    const fy_axis *axis;
    int dims;
    size_t at[FERRY_DIMS_MAX + 1];
    ptrdiff_t offset;
} walk;

static size_t left(const walk *w)
{
    return w->axis[w->dims - 1].count - w->at[w->dims - 1];
}

static void advance(walk *w, size_t count)
{
    int d = w->dims - 1;
    w->at[d] += count;
    w->offset += (ptrdiff_t)count * w->axis[d].d;
    while (d > 0 && w->at[d] == w->axis[d].count) {
        w->offset += w->axis[d - 1].d - (ptrdiff_t)w->axis[d].count * w->axis[d].d;
        w->at[d] = 0;
        w->at[--d]++;
    }
}

static void run_reshape(const fy_move *move, const fy_combine *how, char *target,
                        const char *source)
{
    walk to = {.axis = move->axis, .dims = move->dims};
    walk from = {.axis = move->axis + move->dims, .dims = move->from_dims};
    while (to.at[0] < to.axis[0].count) {
        size_t count = left(&to) < left(&from) ? left(&to) : left(&from);
        const fy_axis both = {
            .count = count, .d = to.axis[to.dims - 1].d, .s = from.axis[from.dims - 1].d};
        row(move, how, target + to.offset, source + from.offset, &both);
        advance(&to, count);
        advance(&from, count);
    }
}

/* Runs FY_MOVE_LIST: the table has the offsets of target and source for each element. */
static void run_list(const fy_move *move, const fy_combine *how, char *target, const char *source)
{
    const ptrdiff_t unit = (ptrdiff_t)how->unit;
    const ptrdiff_t *at = move->table;
    size_t count = move->axis[0].count;
    if (how->indexed != NULL) {
        how->indexed(target, at, source, at + 1, 2, count);
    } else if (how->row != NULL) {
        for (size_t i = 0; i < count; i++, at += 2)
            how->row(how, target + at[0], unit, source + at[1], unit, how->each);
    } else if (move->unit == 8) {
        for (size_t i = 0; i < count; i++, at += 2)
            memcpy(target + at[0], source + at[1], 8);
    } else {
        for (size_t i = 0; i < count; i++, at += 2)
            memcpy(target + at[0], source + at[1], move->unit);
    }
}

void fy_move_run(const fy_move *move, const fy_combine *how, ptrdiff_t d, ptrdiff_t s)
{
    char *target = move->target + d;
    const char *source = move->source + s;
    switch ((fy_move_kind)move->kind) {
    case FY_MOVE_ROWS:
        if (how->row == NULL && fy_is_bulk(move))
            fy_bulk_run(move, target, source);
        else
            nest(move, how, 0, target, source);
        return;
    case FY_MOVE_TRANSPOSE:
        fy_transpose(move, target, source);
        return;
    case FY_MOVE_TABLE:
        run_table(move, how, 0, move->table, target, source);
        return;
    case FY_MOVE_RESHAPE:
        run_reshape(move, how, target, source);
        return;
    case FY_MOVE_LIST:
        run_list(move, how, target, source);
        return;
    }
}

/* How many units ahead cache lines are prefetched: far enough that they have come in time. */
enum { PAIRED_AHEAD = 12 };

#define PAIRED(bytes)                                                                              \
    case bytes:                                                                                    \
        for (; count > 0; count--, to += d, from += s, back_to += d, back_from += s) {             \
            __builtin_prefetch(from + PAIRED_AHEAD * s, 1);                                        \
            __builtin_prefetch(to + PAIRED_AHEAD * d, 1);                                          \
            memcpy(to, from, bytes);                                                               \
            memcpy(back_to, back_from, bytes);                                                     \
        }                                                                                          \
        return

/* Copies rows of two moves, a unit of each in turn. The second unit needs only the two cache lines
 * that the first has fetched. Prefetching past a row's end mostly fetches lines of the next row. */
static void copy_rows(size_t unit, char *to, const char *from, char *back_to, const char *back_from,
                      const fy_axis *axis)
{
    const ptrdiff_t d = axis->d, s = axis->s;
    size_t count = axis->count;
    switch (unit) {
        PAIRED(4);
        PAIRED(8);
        PAIRED(16);
    default:
        copy_row(unit, to, d, from, s, count);
        copy_row(unit, back_to, d, back_from, s, count);
    }
}

/* Runs two moves with the same axes from `depth` on, with target and source `d` and `s` bytes
 * on. */
static void run_pair(const fy_move *a, const fy_move *b, int depth, ptrdiff_t d, ptrdiff_t s)
{
    const fy_axis *axis = &a->axis[depth];
    if (depth == a->dims - 1) {
        copy_rows(a->unit, a->target + d, a->source + s, b->target + d, b->source + s, axis);
        return;
    }
    for (size_t i = 0; i < axis->count; i++, d += axis->d, s += axis->s)
        run_pair(a, b, depth + 1, d, s);
}

void fy_moves_run(const fy_move *moves, size_t count, const fy_combine *how)
{
    for (size_t i = 0; i < count; i++) {
        if (moves[i].paired) {
            run_pair(&moves[i], &moves[i + 1], 0, 0, 0);
            i++;
        } else {
            fy_move_run(&moves[i], how, 0, 0);
        }
    }
}
