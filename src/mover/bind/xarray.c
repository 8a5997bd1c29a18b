/* XArrays: the blocks of one rank. */
#include <stdlib.h>
#include <string.h>

#include <ferry/memory.h>

#include "base/alloc.h"
#include "mover/bind/link.h"
#include "mover/geometry/fail.h"
#include "mover/plan/plan.h"

static int check_array(ferry *f, const ferry_floorplan *blocks, size_t element_bytes,
                       const ferry_point *ghosts)
{
    if (element_bytes == 0)
        return fy_mover_fail(f, FERRY_EINVAL, "xarray: elements of 0 bytes, expected 1 or more");
    int error = ferry_floorplan_check(f, blocks, ferry_ranks(f), (ferry_region){0}, 0);
    for (int d = 0; error == 0 && d < blocks->dims; d++)
        if (ghosts->at[d] < 0 || ghosts->at[d] > FERRY_COORDINATE_MAX)
            error = fy_mover_fail(f, FERRY_EINVAL,
                                  "xarray: %lld ghosts in dimension %d, expected 0 or more",
                                  (long long)ghosts->at[d], d);
    return error;
}

int fy_xarray_make(ferry *f, const ferry_floorplan *blocks, size_t element_bytes,
                   ferry_point ghosts, ferry_xarray **out)
{
    int error = check_array(f, blocks, element_bytes, &ghosts);
    if (error)
        return error;
    size_t count = 0;
    for (size_t i = 0; i < blocks->count; i++)
        count += blocks->blocks[i].owner == ferry_rank(f);
    ferry_xarray *x = fy_calloc(1, sizeof *x);
    if (x == NULL)
        return fy_mover_fail(f, FERRY_ENOMEM, "xarray: no memory");
    x->f = f;
    x->element_bytes = element_bytes;
    x->ghosts = ghosts;
    x->local = fy_calloc(count + 1, sizeof *x->local);
    x->grids = fy_calloc(count + 1, sizeof *x->grids);
    if (x->local == NULL || x->grids == NULL || ferry_floorplan_copy(blocks, &x->blocks)) {
        ferry_xarray_destroy(x);
        return fy_mover_fail(f, FERRY_ENOMEM, "xarray: no memory for %zu blocks", blocks->count);
    }
    for (size_t i = 0; i < blocks->count; i++)
        if (blocks->blocks[i].owner == ferry_rank(f))
            x->local[x->local_count++] = fy_block_number(blocks, i);
    *out = x;
    return 0;
}

static ferry_region with_ghosts(const ferry_xarray *x, size_t i)
{
    return ferry_region_grow(ferry_floorplan_block(&x->blocks, x->local[i])->region, x->ghosts);
}

int ferry_xarray_create(ferry *f, const ferry_floorplan *blocks, size_t element_bytes,
                        ferry_point ghosts, ferry_xarray **out)
{
    ferry_xarray *x;
    if (out == NULL)
        return fy_mover_fail(f, FERRY_EINVAL, "xarray: the result is missing");
    int error = fy_xarray_make(f, blocks, element_bytes, ghosts, &x);
    if (error)
        return error;
    for (size_t i = 0; i < x->local_count; i++) {
        error = ferry_grid_alloc(f, with_ghosts(x, i), element_bytes, &x->grids[i]);
        if (error) {
            ferry_xarray_destroy(x);
            return error;
        }
        memset(x->grids[i].data, 0, ferry_region_size(x->grids[i].region) * element_bytes);
    }
    *out = x;
    return 0;
}

int ferry_xarray_create_over(ferry *f, const ferry_floorplan *blocks, size_t element_bytes,
                             ferry_point ghosts, const ferry_grid *grids, ferry_xarray **out)
{
    ferry_xarray *x;
    if (out == NULL)
        return fy_mover_fail(f, FERRY_EINVAL, "xarray: the result is missing");
    int error = fy_xarray_make(f, blocks, element_bytes, ghosts, &x);
    if (error)
        return error;
    x->borrowed = true;
    if (grids == NULL && x->local_count > 0) {
        error = fy_mover_fail(f, FERRY_EINVAL, "xarray: grids is NULL, expected %zu grids",
                              x->local_count);
        ferry_xarray_destroy(x);
        return error;
    }
    for (size_t i = 0; i < x->local_count; i++) {
        x->grids[i] = grids[i];
        ferry_region wanted = with_ghosts(x, i);
        if (ferry_region_equal(wanted, grids[i].region) &&
            grids[i].element_bytes == element_bytes && grids[i].data != NULL)
            continue;
        error =
            fy_mover_fail(f, FERRY_EINVAL,
                          "xarray: grid %zu has %s with elements of %zu bytes at %p, block %d "
                          "needs %s with %zu bytes, and an address",
                          i, fy_region_show(&grids[i].region).text, grids[i].element_bytes,
                          grids[i].data, x->local[i], fy_region_show(&wanted).text, element_bytes);
        ferry_xarray_destroy(x);
        return error;
    }
    *out = x;
    return 0;
}

void ferry_xarray_destroy(ferry_xarray *x)
{
    if (x == NULL)
        return;
    for (size_t i = 0; i < x->local_count && !x->borrowed && !x->mobile; i++)
        ferry_free(x->f, x->grids[i].data);
    ferry_floorplan_fini(&x->blocks);
    free(x->local);
    free(x->grids);
    free(x);
}

ferry_grid *ferry_xarray_grid(const ferry_xarray *x, int32_t block)
{
    size_t low = 0, high = x->local_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (x->local[middle] < block)
            low = middle + 1;
        else
            high = middle;
    }
    return low < x->local_count && x->local[low] == block ? &x->grids[low] : NULL;
}
