/* Makes moves: turns regions and strides into loops. */
#include "mover/kernels/move.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "mover/geometry/box.h"
#include "mover/plan/plan.h"

static int64_t floor_mod(int64_t a, int64_t b)
{
    return a - fy_floor_div(a, b) * b;
}

static bool same_shape(const ferry_plan_entry *copy)
{
    if (copy->from.dims != copy->to.dims)
        return false;
    for (int d = 0; d < copy->to.dims; d++)
        if (ferry_region_extent(copy->to, d) != ferry_region_extent(copy->from, copy->axis[d]))
            return false;
    return true;
}

static bool has_ratio(const ferry_plan_entry *copy)
{
    for (int d = 0; d < copy->to.dims; d++)
        if (copy->ratio[d] != 1)
            return true;
    return false;
}

/* A move that is being made. Its axes are not kept yet (axes.h). */
typedef struct draft {
    fy_move *move;
    int dims;
    fy_axis axis[2 * (FERRY_DIMS_MAX + 1)];
} draft;

/* Sorts the axes by the target's strides, the smallest last. */
static void sort_axes(draft *w)
{
    for (int i = 1; i < w->dims; i++) {
        for (int k = i; k > 0; k--) {
            fy_axis *a = &w->axis[k - 1], *b = &w->axis[k];
            if (llabs(a->d) > llabs(b->d) || (a->d == b->d && llabs(a->s) >= llabs(b->s)))
                break;
            fy_axis held = *a;
            *a = *b;
            *b = held;
        }
    }
}

/* Joins axes that lie end to end in both grids. */
static void join_axes(draft *w)
{
    int kept = 0;
    for (int i = 0; i < w->dims; i++) {
        fy_axis *outer = kept > 0 ? &w->axis[kept - 1] : NULL;
        const fy_axis *inner = &w->axis[i];
        if (inner->count == 1)
            continue;
        ptrdiff_t count = (ptrdiff_t)inner->count;
        if (outer != NULL && outer->d == inner->d * count && outer->s == inner->s * count) {
            outer->count *= inner->count;
            outer->d = inner->d;
            outer->s = inner->s;
        } else {
            w->axis[kept++] = *inner;
        }
    }
    w->dims = kept;
}

/* Chooses the loops of a plain copy. A contiguous run becomes the unit. If the source is contiguous
 * along another axis than the target, that axis becomes the one before the last (transpose.h). */
static void choose_kernel(draft *w, const fy_combine *how)
{
    const ptrdiff_t unit = (ptrdiff_t)how->unit;
    if (w->dims == 0) {
        w->axis[w->dims++] = (fy_axis){.count = 1, .d = unit, .s = unit};
        return;
    }
    fy_axis *last = &w->axis[w->dims - 1];
    if (how->row == NULL && last->d == unit && last->s == unit) {
        w->move->unit = how->unit * last->count;
        if (--w->dims == 0)
            w->axis[w->dims++] = (fy_axis){.count = 1};
        return;
    }
    if (how->row != NULL || last->d != unit)
        return;
    for (int i = 0; i < w->dims - 1; i++) {
        if (w->axis[i].s != unit)
            continue;
        fy_axis along = w->axis[i];
        for (int k = i; k < w->dims - 2; k++)
            w->axis[k] = w->axis[k + 1];
        w->axis[w->dims - 2] = along;
        w->move->kind = FY_MOVE_TRANSPOSE;
        return;
    }
}

static void init_rows(draft *w, const ferry_plan_entry *copy, const ferry_grid *target,
                      const ferry_grid *source, const fy_combine *how)
{
    w->move->kind = FY_MOVE_ROWS;
    for (int d = 0; d < copy->to.dims; d++) {
        ptrdiff_t step = copy->relation == FERRY_SAMPLE ? copy->ratio[d] : 1;
        w->axis[w->dims++] = (fy_axis){.count = (size_t)ferry_region_extent(copy->to, d),
                                       .d = target->stride[d],
                                       .s = source->stride[copy->axis[d]] * step};
    }
    if (how->each > 1)
        w->axis[w->dims++] =
            (fy_axis){.count = how->each, .d = (ptrdiff_t)how->unit, .s = (ptrdiff_t)how->unit};
    sort_axes(w);
    join_axes(w);
    choose_kernel(w, how);
}

/* Makes the table of offsets: for each axis of the finer side, those of the target, then of the
 * source. */
static int init_table(draft *w, const ferry_plan_entry *copy, const ferry_grid *target,
                      const ferry_grid *source, const fy_combine *how)
{
    const bool refine = copy->relation == FERRY_REFINE;
    size_t total = how->each;
    for (int d = 0; d < copy->to.dims; d++)
        total +=
            (size_t)ferry_region_extent(refine ? copy->to : copy->from, refine ? d : copy->axis[d]);
    ptrdiff_t *at = w->move->table = fy_malloc(2 * total * sizeof *at);
    if (at == NULL)
        return FERRY_ENOMEM;
    w->move->kind = FY_MOVE_TABLE;
    for (int d = 0; d < copy->to.dims; d++) {
        int a = copy->axis[d];
        int64_t first = refine ? copy->to.low.at[d] : copy->from.low.at[a];
        int64_t count =
            (int64_t)ferry_region_extent(refine ? copy->to : copy->from, refine ? d : a);
        int64_t phase = floor_mod(first, copy->ratio[d]);
        for (int64_t i = 0; i < count; i++) {
            int64_t coarse = (phase + i) / copy->ratio[d];
            at[i] = (refine ? i : coarse) * target->stride[d];
            at[count + i] = (refine ? coarse : i) * source->stride[a];
        }
        at += 2 * count;
        w->axis[w->dims++].count = (size_t)count;
    }
    if (how->each > 1) {
        for (size_t i = 0; i < how->each; i++)
            at[i] = at[how->each + i] = (ptrdiff_t)(i * how->unit);
        w->axis[w->dims++].count = how->each;
    }
    return 0;
}

static void init_reshape(draft *w, const ferry_plan_entry *copy, const ferry_grid *target,
                         const ferry_grid *source, const fy_combine *how)
{
    w->move->kind = FY_MOVE_RESHAPE;
    for (int side = 0; side < 2; side++) {
        const ferry_region *r = side == 0 ? &copy->to : &copy->from;
        const ferry_grid *grid = side == 0 ? target : source;
        const int before = w->dims;
        for (int d = 0; d < r->dims; d++)
            w->axis[w->dims++] =
                (fy_axis){.count = (size_t)ferry_region_extent(*r, d), .d = grid->stride[d]};
        if (how->each > 1)
            w->axis[w->dims++] = (fy_axis){.count = how->each, .d = (ptrdiff_t)how->unit};
        if (side == 1)
            w->move->from_dims = (uint8_t)(w->dims - before);
    }
}

int fy_move_init(fy_move *move, fy_axes *axes, const ferry_plan_entry *copy,
                 const ferry_grid *target, const ferry_grid *source, const fy_combine *how)
{
    draft w = {.move = move};
    *move = (fy_move){.unit = how->unit,
                      .source = ferry_grid_at(source, copy->from.low),
                      .target = ferry_grid_at(target, copy->to.low)};
    bool finer = copy->relation == FERRY_REFINE || copy->relation == FERRY_COARSEN;
    int error = 0;
    if (finer && has_ratio(copy))
        error = init_table(&w, copy, target, source, how);
    else if (copy->relation == FERRY_PLAIN && !same_shape(copy))
        init_reshape(&w, copy, target, source, how);
    else
        init_rows(&w, copy, target, source, how);
    move->axis = error == 0 ? fy_axes_keep(axes, w.axis, w.dims) : NULL;
    move->dims = (uint8_t)(w.dims - move->from_dims);
    return move->axis == NULL ? FERRY_ENOMEM : 0;
}

void fy_move_fini(fy_move *move)
{
    free(move->table);
    move->table = NULL;
}

void fy_copy_split(const ferry_plan_entry *copy, ferry_region *dense, ferry_plan_entry *pack,
                   ferry_plan_entry *unpack)
{
    *dense = copy->from;
    *pack = *unpack = *copy;
    fy_copy_plain(pack);
    if (copy->relation == FERRY_SAMPLE) {
        /* Only the sampled points travel, with the source's axes in order. */
        pack->relation = FERRY_SAMPLE;
        unpack->relation = FERRY_PLAIN;
        for (int d = 0; d < copy->to.dims; d++) {
            int a = copy->axis[d];
            int64_t extent = (int64_t)ferry_region_extent(copy->to, d);
            dense->high.at[a] = dense->low.at[a] + extent - 1;
            pack->ratio[a] = copy->ratio[d];
            unpack->ratio[d] = 1;
        }
    }
    pack->to = *dense;
    unpack->from = *dense;
}
