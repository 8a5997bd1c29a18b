/* The entries of a motion plan in memory. An entry has the numbers of its blocks, the low corners
 * of its regions and the number of its shape (shape.h). It takes only the bytes that the dimensions
 * in use need. Programs see an entry as a ferry_plan_entry, which is four times as large. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "mover/geometry/array.h"
#include "mover/geometry/fail.h"
#include "mover/plan/plan.h"
#include "mover/plan/shape.h"

/* The head of an entry. The corners follow: of `to`, then of `from`. */
typedef struct entry_head {
    int32_t source, target;
    uint32_t shape, unused;
} entry_head;

static size_t bytes_for(int dims)
{
    return sizeof(entry_head) + 2 * (size_t)dims * sizeof(int64_t);
}

/* The dimensions that the corners of an entry have room for. */
static int dims_of(const ferry_plan *plan)
{
    return (int)((plan->entry_bytes - sizeof(entry_head)) / (2 * sizeof(int64_t)));
}

static entry_head *head_of(const ferry_plan *plan, size_t index)
{
    return (entry_head *)(void *)(plan->entries + index * plan->entry_bytes);
}

static int64_t *corners_of(entry_head *head)
{
    return (int64_t *)(void *)(head + 1);
}

void ferry_plan_fini(ferry_plan *plan)
{
    if (plan == NULL)
        return;
    free(plan->entries);
    fy_shapes_destroy(plan->shapes);
    *plan = (ferry_plan){0};
}

int32_t fy_plan_source(const ferry_plan *plan, size_t index)
{
    return head_of(plan, index)->source;
}

int32_t fy_plan_target(const ferry_plan *plan, size_t index)
{
    return head_of(plan, index)->target;
}

void fy_plan_read(const ferry_plan *plan, size_t index, ferry_plan_entry *copy)
{
    entry_head *head = head_of(plan, index);
    const int dims = dims_of(plan);
    const int64_t *to = corners_of(head), *from = to + dims;
    copy->source = head->source;
    copy->target = head->target;
    for (int d = 0; d < FERRY_DIMS_MAX; d++) {
        copy->to.low.at[d] = d < dims ? to[d] : 0;
        copy->from.low.at[d] = d < dims ? from[d] : 0;
    }
    fy_shape_give(&plan->shapes->items[head->shape], copy);
}

ferry_plan_entry ferry_plan_at(const ferry_plan *plan, size_t index)
{
    ferry_plan_entry copy = {.source = -1, .target = -1};
    if (index < plan->count)
        fy_plan_read(plan, index, &copy);
    return copy;
}

/* Makes all entries larger, so that they have room for more dimensions. */
static int plan_widen(ferry_plan *plan, int dims)
{
    ferry_plan wide = *plan;
    const int before = dims_of(plan);
    wide.entry_bytes = bytes_for(dims);
    wide.entries = fy_malloc((plan->capacity + 1) * wide.entry_bytes);
    if (wide.entries == NULL)
        return fy_mover_no_memory(NULL, FERRY_ENOMEM, "plan_add");
    for (size_t i = 0; i < plan->count; i++) {
        entry_head *old = head_of(plan, i), *new = head_of(&wide, i);
        memset(new, 0, wide.entry_bytes);
        *new = *old;
        memcpy(corners_of(new), corners_of(old), (size_t)before * sizeof(int64_t));
        memcpy(corners_of(new) + dims, corners_of(old) + before, (size_t)before * sizeof(int64_t));
    }
    free(plan->entries);
    *plan = wide;
    return 0;
}

/* Makes room for the dimensions of an entry, and finds its shape. */
static int plan_store_prepare(ferry_plan *plan, const ferry_plan_entry *copy, uint32_t *shape)
{
    const int to = fy_dims_kept(copy->to.dims), from = fy_dims_kept(copy->from.dims);
    const int dims = to > from ? to : from;
    if (plan->shapes == NULL && (plan->shapes = fy_shapes_create()) == NULL)
        return fy_mover_no_memory(NULL, FERRY_ENOMEM, "plan_add");
    if (plan->entries == NULL)
        plan->entry_bytes = bytes_for(dims);
    if (plan->count == 0) /* a program that uses a plan again may have other shapes each time */
        fy_shapes_clear(plan->shapes);
    int error = dims > dims_of(plan) ? plan_widen(plan, dims) : 0;
    if (error == 0)
        error = fy_mover_no_memory(NULL, fy_shapes_number(plan->shapes, copy, shape), "plan_add");
    return error;
}

static void write_entry(ferry_plan *plan, size_t index, const ferry_plan_entry *copy,
                        uint32_t shape)
{
    entry_head *head = head_of(plan, index);
    const int dims = dims_of(plan);
    int64_t *to = corners_of(head), *from = to + dims;
    *head = (entry_head){.source = copy->source, .target = copy->target, .shape = shape};
    for (int d = 0; d < dims; d++) {
        to[d] = d < fy_dims_kept(copy->to.dims) ? copy->to.low.at[d] : 0;
        from[d] = d < fy_dims_kept(copy->from.dims) ? copy->from.low.at[d] : 0;
    }
}

int ferry_plan_add(ferry_plan *plan, const ferry_plan_entry *copy)
{
    const fy_given given[] = {{"plan", plan}, {"copy", copy}};
    uint32_t shape;
    int error = fy_mover_given("plan_add", given, 2);
    if (error == 0)
        error = plan_store_prepare(plan, copy, &shape);
    if (error == 0)
        error = fy_array_reserve((void **)&plan->entries, &plan->capacity, plan->count + 1,
                                 plan->entry_bytes);
    if (error == 0)
        write_entry(plan, plan->count++, copy, shape);
    return error;
}

int ferry_plan_set(ferry_plan *plan, size_t index, const ferry_plan_entry *copy)
{
    const fy_given given[] = {{"plan", plan}, {"copy", copy}};
    uint32_t shape;
    int error = fy_mover_given("plan_set", given, 2);
    if (error)
        return error;
    if (index >= plan->count)
        return fy_mover_fail(NULL, FERRY_EINVAL, "plan_set: entry %zu of %zu does not exist", index,
                             plan->count);
    error = plan_store_prepare(plan, copy, &shape);
    if (error == 0)
        write_entry(plan, index, copy, shape);
    return error;
}

int ferry_plan_append(ferry_plan *plan, const ferry_plan *other)
{
    const fy_given given[] = {{"plan", plan}, {"other", other}};
    int error = fy_mover_given("plan_append", given, 2);
    if (error)
        return error;
    const size_t before = plan->count, count = other->count; /* `other` may be `plan` */
    for (size_t i = 0; i < count && error == 0; i++) {
        const ferry_plan_entry copy = ferry_plan_at(other, i);
        error = ferry_plan_add(plan, &copy);
    }
    if (error)
        plan->count = before;
    return error;
}

void ferry_plan_filter(ferry_plan *plan, ferry_plan_keep_fn *keep, void *arg)
{
    size_t kept = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const ferry_plan_entry copy = ferry_plan_at(plan, i);
        if (keep(arg, &copy))
            memmove(head_of(plan, kept++), head_of(plan, i), plan->entry_bytes);
    }
    plan->count = kept;
}

void ferry_plan_reverse(ferry_plan *plan)
{
    if (plan->shapes == NULL)
        return;
    const int dims = dims_of(plan);
    for (size_t i = 0; i < plan->count; i++) {
        entry_head *head = head_of(plan, i);
        const int32_t source = head->source;
        head->source = head->target;
        head->target = source;
        for (int d = 0; d < dims; d++) {
            int64_t *to = corners_of(head) + d, *from = to + dims, held = *to;
            *to = *from;
            *from = held;
        }
    }
    fy_shapes_reverse(plan->shapes);
}

int fy_plan_compare(const ferry_plan *plan, size_t a, size_t b)
{
    entry_head *x = head_of(plan, a), *y = head_of(plan, b);
    if (x->target != y->target)
        return x->target < y->target ? -1 : 1;
    const fy_shape *shapes = plan->shapes->items;
    const int32_t dims = shapes[x->shape].to_dims;
    for (int d = 0; d < fy_dims_kept(dims) && dims == shapes[y->shape].to_dims; d++) {
        const int64_t p = corners_of(x)[d], q = corners_of(y)[d];
        if (p != q)
            return p < q ? -1 : 1;
    }
    ferry_plan_entry first, second;
    fy_plan_read(plan, a, &first);
    fy_plan_read(plan, b, &second);
    return fy_copy_compare(&first, &second);
}
