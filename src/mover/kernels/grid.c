/* Grids, and single copies between them. */
#include <ferry/memory.h>

#include "mover/geometry/fail.h"
#include "mover/kernels/move.h"
#include "mover/plan/plan.h"

ferry_grid ferry_grid_over(ferry_region region, size_t element_bytes, void *data)
{
    ferry_grid grid = {.region = region, .element_bytes = element_bytes, .data = data};
    size_t stride = element_bytes;
    for (int d = region.dims - 1; d >= 0; d--) {
        grid.stride[d] = (ptrdiff_t)stride;
        stride *= ferry_region_extent(region, d);
    }
    return grid;
}

int ferry_grid_alloc(ferry *f, ferry_region region, size_t element_bytes, ferry_grid *out)
{
    uint64_t size = ferry_region_size(region);
    if (size == 0 || element_bytes == 0)
        return fy_mover_fail(f, FERRY_EINVAL,
                             "grid: region %s with elements of %zu bytes, expected at least one "
                             "point, and 1 byte or more",
                             fy_region_show(&region).text, element_bytes);
    if (size > PTRDIFF_MAX / element_bytes)
        return fy_mover_fail(f, FERRY_ENOMEM, "grid: region %s of elements of %zu bytes is too big",
                             fy_region_show(&region).text, element_bytes);
    void *data;
    int error = ferry_alloc(f, size * element_bytes, &data);
    if (error == 0)
        *out = ferry_grid_over(region, element_bytes, data);
    return error;
}

int ferry_grid_move(const ferry_grid *target, const ferry_grid *source,
                    const ferry_plan_entry *copy, const ferry_operation *operation)
{
    const fy_given given[] = {{"target", target}, {"source", source}, {"copy", copy}};
    int error = fy_mover_given("grid_move", given, 3);
    fy_combine how;
    fy_axes axes = {0};
    fy_move move;
    if (error)
        return error;
    if (copy->to.dims != target->region.dims || copy->from.dims != source->region.dims ||
        ferry_region_is_empty(copy->to) || ferry_region_is_empty(copy->from) ||
        !ferry_region_contains(target->region, copy->to) ||
        !ferry_region_contains(source->region, copy->from))
        return fy_mover_fail(NULL, FERRY_EINVAL, "grid: %s <= %s is not inside %s and %s",
                             fy_region_show(&copy->to).text, fy_region_show(&copy->from).text,
                             fy_region_show(&target->region).text,
                             fy_region_show(&source->region).text);
    if (source->element_bytes != target->element_bytes || target->element_bytes == 0)
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "grid: elements of %zu bytes go to elements of %zu; expected equal "
                             "sizes of 1 byte or more",
                             source->element_bytes, target->element_bytes);
    error = fy_plan_check_entry(NULL, copy, 0);
    if (error == 0)
        error = fy_combine_init(&how, operation, target->element_bytes);
    if (error == 0)
        error = fy_move_init(&move, &axes, copy, target, source, &how);
    else
        return error;
    if (error == 0)
        fy_move_run(&move, &how, 0, 0);
    fy_move_fini(&move);
    fy_axes_fini(&axes);
    return error;
}
