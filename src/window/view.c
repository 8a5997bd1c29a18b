/* Views of elements, and block arrays over them. */
#include <stdlib.h>

#include <ferry/window_blocks.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "window/state.h"

int ferry_window_view(ferry_window *w, int64_t first, size_t count, size_t value_bytes, void **out)
{
    static const char call[] = "window_view";
    size_t bytes;
    if (out == NULL || first < 0 || count == 0 || value_bytes == 0)
        return fy_fail(w->f, FERRY_EINVAL,
                       "%s: %zu elements of %zu bytes from %lld, at %p; expected some from 0 on",
                       call, count, value_bytes, (long long)first, (void *)out);
    uint64_t taken = 0;
    int error = FERRY_ENOMEM;
    if (!__builtin_mul_overflow(count, value_bytes, &bytes) && bytes <= PTRDIFF_MAX / 2 &&
        count <= INT64_MAX - (uint64_t)first)
        error = fy_array_view(w->f, w->array, ferry_rank(w->f),
                              (fy_extent){(uint64_t)first, count, value_bytes}, &taken, out);
    if (error == FERRY_EINVAL)
        return fy_fail(w->f, error, "%s: element %llu has a value; expected none", call,
                       (unsigned long long)taken);
    if (error != 0)
        return fy_fail(w->f, error, "%s: no memory for %zu elements of %zu bytes", call, count,
                       value_bytes);
    return 0;
}

/* Grids for the blocks of this rank, `*cells` cells in all. Their data have no place yet and are
 * any address. */
static ferry_grid *lay_out(const ferry_floorplan *blocks, int rank, size_t element_bytes,
                           ferry_point ghosts, uint64_t *cells)
{
    ferry_grid *grids = fy_calloc(blocks->count + 1, sizeof(*grids));
    size_t count = 0;
    *cells = 0;
    for (size_t i = 0; grids != NULL && i < blocks->count; i++) {
        if (blocks->blocks[i].owner != rank)
            continue;
        const ferry_region region = ferry_region_grow(blocks->blocks[i].region, ghosts);
        const uint64_t size = ferry_region_size(region);
        *cells = size > UINT64_MAX - *cells ? UINT64_MAX : *cells + size;
        grids[count++] = ferry_grid_over(region, element_bytes, grids);
    }
    return grids;
}

/* Gives the grids of `x` their places in the view. */
static int view_place(ferry_window *w, int64_t first, ferry_xarray *x, uint64_t cells)
{
    void *at = NULL;
    int error =
        x->local_count == 0 ? 0 : ferry_window_view(w, first, (size_t)cells, x->element_bytes, &at);
    for (size_t i = 0; i < x->local_count && error == 0; i++) {
        x->grids[i].data = at;
        at = (char *)at + ferry_region_size(x->grids[i].region) * x->element_bytes;
    }
    return error;
}

int ferry_window_xarray_create(ferry_window *w, int64_t first, const ferry_floorplan *blocks,
                               size_t element_bytes, ferry_point ghosts, ferry_xarray **out)
{
    uint64_t cells;
    ferry_xarray *x = NULL;
    if (out == NULL)
        return fy_fail(w->f, FERRY_EINVAL, "window_xarray_create: the result is missing");
    int error = ferry_floorplan_check(w->f, blocks, ferry_ranks(w->f), (ferry_region){0}, 0);
    if (error != 0)
        return error;
    ferry_grid *grids = lay_out(blocks, ferry_rank(w->f), element_bytes, ghosts, &cells);
    if (grids == NULL)
        return fy_fail(w->f, FERRY_ENOMEM, "window_xarray_create: no memory for %zu blocks",
                       blocks->count);
    error = ferry_xarray_create_over(w->f, blocks, element_bytes, ghosts, grids, &x);
    free(grids);
    if (error == 0)
        error = view_place(w, first, x, cells);
    if (error != 0)
        ferry_xarray_destroy(x);
    else
        *out = x;
    return error;
}

/* The place of a point in the grid of `region`, the last dimension fastest. */
static int64_t offset(const ferry_region *region, const ferry_point *point)
{
    int64_t at = 0;
    for (int d = 0; d < region->dims; d++)
        at = at * (region->high.at[d] - region->low.at[d] + 1) + point->at[d] - region->low.at[d];
    return at;
}

int ferry_window_xarray_find(const ferry_xarray *x, int64_t first, int32_t block, ferry_point point,
                             int *rank, int64_t *index)
{
    static const char call[] = "window_xarray_find";
    const ferry_floorplan *plan = &x->blocks;
    if (plan->numbers != NULL)
        return fy_fail(x->f, FERRY_EINVAL, "%s: the floor plan is a share; expected a whole one",
                       call);
    if (block < 0 || (size_t)block >= plan->count)
        return fy_fail(x->f, FERRY_EINVAL, "%s: block %d does not exist; there are %zu", call,
                       (int)block, plan->count);
    const ferry_block *found = &plan->blocks[block];
    const ferry_region region = ferry_region_grow(found->region, x->ghosts);
    if (!ferry_region_contains_point(region, point)) {
        char text[FERRY_DIMS_MAX * 24];
        (void)ferry_point_format(point, plan->dims, text, sizeof(text));
        return fy_fail(x->f, FERRY_EINVAL, "%s: block %d has no cell %s", call, (int)block, text);
    }
    int64_t at = first + offset(&region, &point);
    for (const ferry_block *b = plan->blocks; b < found; b++)
        if (b->owner == found->owner)
            at += (int64_t)ferry_region_size(ferry_region_grow(b->region, x->ghosts));
    *rank = found->owner;
    *index = at;
    return 0;
}
