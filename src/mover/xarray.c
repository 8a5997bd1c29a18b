/* XArrays: the blocks of one rank. */
#include <stdlib.h>
#include <string.h>

#include <ferry/memory.h>

#include "base/alloc.h"
#include "mover/fail.h"
#include "mover/link.h"
#include "mover/plan.h"

static int check_array(ferry *f, const ferry_floorplan *blocks, size_t element_bytes,
                       const ferry_point *ghosts)
{
    if (element_bytes == 0)
        return fy_mover_fail(f, FERRY_EINVAL, "xarray: elements of 0 bytes");
    int error = ferry_floorplan_check(f, blocks, ferry_ranks(f), (ferry_region){0}, 0);
    for (int d = 0; d < blocks->dims && error == 0; d++)
        if (ghosts->at[d] < 0 || ghosts->at[d] > FERRY_COORDINATE_MAX)
            error = fy_mover_fail(f, FERRY_EINVAL, "xarray: %lld ghosts in dimension %d",
                                  (long long)ghosts->at[d], d);
    return error;
}

/* Everything but the data of the grids. */
static int make(ferry *f, const ferry_floorplan *blocks, size_t element_bytes, ferry_point ghosts,
                ferry_xarray **out)
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
    int error = make(f, blocks, element_bytes, ghosts, &x);
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
    int error = make(f, blocks, element_bytes, ghosts, &x);
    if (error)
        return error;
    x->borrowed = true;
    for (size_t i = 0; i < x->local_count; i++) {
        x->grids[i] = grids[i];
        ferry_region wanted = with_ghosts(x, i);
        if (ferry_region_equal(wanted, grids[i].region) &&
            grids[i].element_bytes == element_bytes && grids[i].data != NULL)
            continue;
        error = fy_mover_fail(f, FERRY_EINVAL,
                              "xarray: grid %zu has %s with elements of %zu bytes, block %d wants "
                              "%s with %zu",
                              i, fy_region_says(&grids[i].region).text, grids[i].element_bytes,
                              x->local[i], fy_region_says(&wanted).text, element_bytes);
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

int fy_xarray_check_whole(const ferry_xarray *x, const char *call)
{
    return x->blocks.numbers == NULL
               ? 0
               : fy_mover_fail(x->f, FERRY_EINVAL,
                               "%s: the xarray has a share of a floor plan, not a whole one", call);
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

/* Grids of the blocks that stay are handed over, others made; says with what the arrays differ. */
static int prepare(const ferry_xarray *x, ferry_xarray *next, ferry_plan *changes)
{
    int self = ferry_rank(x->f), error = 0;
    for (size_t i = 0; i < next->local_count && error == 0; i++) {
        const ferry_grid *old = ferry_xarray_grid(x, next->local[i]);
        if (old != NULL)
            next->grids[i] = *old;
        else
            error = ferry_grid_alloc(x->f, with_ghosts(next, i), x->element_bytes, &next->grids[i]);
    }
    for (size_t b = 0; b < x->blocks.count && error == 0; b++) {
        int from = x->blocks.blocks[b].owner, to = next->blocks.blocks[b].owner;
        ferry_region whole = ferry_region_grow(x->blocks.blocks[b].region, x->ghosts);
        if (from != to && (from == self || to == self))
            error = ferry_plan_copy(changes, (int32_t)b, whole, (int32_t)b, whole);
    }
    return error;
}

/* Frees the grids of `x` that `other` does not have, and forgets all. */
static void drop_grids(ferry_xarray *x, const ferry_xarray *other)
{
    for (size_t i = 0; i < x->local_count; i++)
        if (x->grids[i].data != NULL && ferry_xarray_grid(other, x->local[i]) == NULL)
            ferry_free(x->f, x->grids[i].data);
    x->local_count = 0;
}

static int carry(ferry_xarray *x, ferry_xarray *next, const ferry_plan *changes)
{
    ferry_mover *m;
    int error = ferry_mover_bind(x->f, changes, x, next, NULL, &m);
    if (error)
        return error;
    error = ferry_mover_start(m, NULL);
    if (error == 0)
        error = ferry_mover_wait(m);
    int freed = ferry_mover_free(m);
    return error ? error : freed;
}

int ferry_xarray_remap(ferry_xarray *x, const int32_t *owners)
{
    ferry_floorplan blocks;
    ferry_xarray *next = NULL;
    ferry_plan changes = {0};
    const fy_arrays self = {.items = &x, .count = 1};
    bool *marks = fy_calloc((size_t)ferry_ranks(x->f), sizeof *marks);
    int error = marks != NULL ? 0 : fy_mover_fail(x->f, FERRY_ENOMEM, "xarray_remap: no memory");
    if (error == 0 && x->borrowed)
        error = fy_mover_fail(x->f, FERRY_EINVAL, "xarray_remap: the grids are the caller's");
    if (error == 0)
        error = fy_xarray_check_whole(x, "xarray_remap");
    if (error == 0 && x->mobile)
        error =
            fy_mover_fail(x->f, FERRY_EINVAL,
                          "xarray_remap: the blocks are objects, which ferry_object_move moves");
    if (error == 0 && fy_mover_any_under_way(x->f, self))
        error = fy_mover_fail(x->f, FERRY_ESTATE, "xarray_remap: a mover is under way");
    if (error == 0)
        error = ferry_floorplan_copy(&x->blocks, &blocks);
    if (error == 0) {
        for (size_t i = 0; i < blocks.count; i++)
            blocks.blocks[i].owner = owners[i];
        error = make(x->f, &blocks, x->element_bytes, x->ghosts, &next);
        ferry_floorplan_fini(&blocks);
    }
    if (error == 0)
        error = prepare(x, next, &changes);
    error = fy_mover_agree(x->f, error);
    if (error == 0)
        error = fy_mover_agree(x->f, carry(x, next, &changes));
    ferry_plan_fini(&changes);
    if (error == 0) {
        drop_grids(x, next);
        ferry_xarray old = *x;
        *x = *next;
        *next = old;
        error = fy_mover_agree(x->f, fy_mover_follow(x->f, self, &next->blocks, marks));
    } else if (next != NULL) {
        drop_grids(next, x);
    }
    ferry_xarray_destroy(next);
    free(marks);
    return error;
}
