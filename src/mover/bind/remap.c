/* Remapping: the blocks of an xarray get other owners. A second array is made, and grids move to
 * it. Then it takes the place of the first, and movers follow. With a share of a floor plan, old
 * owners first tell new owners which blocks come. */
#include <stdlib.h>
#include <string.h>

#include <ferry/memory.h>

#include "base/alloc.h"
#include "mover/bind/link.h"
#include "mover/geometry/fail.h"
#include "mover/plan/plan.h"

static int remap_check(const ferry_xarray *x, const int32_t *owners)
{
    const fy_arrays self = {.items = (ferry_xarray *const[]){(ferry_xarray *)(uintptr_t)x},
                            .count = 1};
    if (x->borrowed)
        return fy_mover_fail(x->f, FERRY_EINVAL, "xarray_remap: the grids are the caller's");
    if (x->mobile)
        return fy_mover_fail(x->f, FERRY_EINVAL,
                             "xarray_remap: the blocks are objects, which ferry_object_move moves");
    if (fy_mover_any_in_flight(x->f, self))
        return fy_mover_fail(x->f, FERRY_ESTATE, "xarray_remap: a mover is in flight");
    if (owners == NULL && x->blocks.count > 0)
        return fy_mover_fail(x->f, FERRY_EINVAL, "xarray_remap: owners is NULL, expected %zu ranks",
                             x->blocks.count);
    for (size_t i = 0; i < x->blocks.count; i++)
        if ((x->blocks.numbers == NULL || x->blocks.blocks[i].owner == ferry_rank(x->f)) &&
            (owners[i] < 0 || owners[i] >= ferry_ranks(x->f)))
            return fy_mover_fail(
                x->f, FERRY_EINVAL,
                "xarray_remap: the owner of block %d is %d, expected a rank from 0 to %d",
                fy_block_number(&x->blocks, i), owners[i], ferry_ranks(x->f) - 1);
    return 0;
}

/* Lists the changes of this rank, and makes the floor plan after them. For whole floor plans. */
static int decide_whole(const ferry_xarray *x, const int32_t *owners, fy_changes *changes,
                        ferry_floorplan *out)
{
    int error = fy_changes_between(x->f, &x->blocks, owners, changes);
    if (error == 0)
        error = ferry_floorplan_copy(&x->blocks, out);
    for (size_t i = 0; i < out->count; i++)
        out->blocks[i].owner = owners[i];
    return fy_mover_no_memory(x->f, error, "xarray_remap");
}

/* The same with a share. Collective, so a rank with an error takes part too. */
static int decide_share(int error, ferry_xarray *x, const int32_t *owners, fy_changes *changes,
                        ferry_floorplan *out)
{
    const int self = ferry_rank(x->f);
    for (size_t i = 0; i < x->blocks.count && error == 0; i++)
        if (x->blocks.blocks[i].owner == self && owners[i] != self)
            error = fy_changes_add(changes, x->blocks.numbers[i], &x->blocks.blocks[i], owners[i]);
    error = fy_changes_swap(x->f, fy_mover_no_memory(x->f, error, "xarray_remap"), changes);
    if (error)
        return error;
    error = fy_changes_apply(x->f, &x->blocks, changes, out);
    /* The mover that moves the grids needs their old owners in the floor plan. */
    return error
               ? error
               : fy_mover_no_memory(x->f, fy_floorplan_learn(&x->blocks, changes), "xarray_remap");
}

/* Gives the grids of blocks that stay to the new array, makes the others, and plans their moves. */
static int remap_prepare(const ferry_xarray *x, ferry_xarray *next, const fy_changes *changes,
                         ferry_plan *moves)
{
    int error = 0;
    for (size_t i = 0; i < next->local_count && error == 0; i++) {
        const ferry_grid *old = ferry_xarray_grid(x, next->local[i]);
        const ferry_block *block = ferry_floorplan_block(&next->blocks, next->local[i]);
        if (old != NULL)
            next->grids[i] = *old;
        else
            error = ferry_grid_alloc(x->f, ferry_region_grow(block->region, x->ghosts),
                                     x->element_bytes, &next->grids[i]);
    }
    for (size_t i = 0; i < changes->count && error == 0; i++) {
        const ferry_region whole = ferry_region_grow(changes->items[i].region, x->ghosts);
        const int32_t number = changes->items[i].number;
        error = ferry_plan_copy(moves, number, whole, number, whole);
    }
    return error;
}

/* Frees the grids of `x` that `other` does not have. Then `x` has none. */
static void drop_grids(ferry_xarray *x, const ferry_xarray *other)
{
    for (size_t i = 0; i < x->local_count; i++)
        if (x->grids[i].data != NULL && ferry_xarray_grid(other, x->local[i]) == NULL)
            ferry_free(x->f, x->grids[i].data);
    x->local_count = 0;
}

static int carry(ferry_xarray *x, ferry_xarray *next, const ferry_plan *moves)
{
    ferry_mover *m;
    int error = ferry_mover_bind(x->f, moves, x, next, NULL, &m);
    if (error)
        return error;
    error = ferry_mover_start(m, NULL);
    if (error == 0)
        error = ferry_mover_wait(m);
    int freed = ferry_mover_free(m);
    return error ? error : freed;
}

/* Makes the array that takes the place of `x`, and moves the grids. Collective. */
static int replace(int error, ferry_xarray *x, const int32_t *owners, fy_changes *changes,
                   ferry_xarray **next)
{
    ferry_floorplan blocks = {0};
    ferry_plan moves = {0};
    if (x->blocks.numbers != NULL)
        error = decide_share(error, x, owners, changes, &blocks);
    else if (error == 0)
        error = decide_whole(x, owners, changes, &blocks);
    if (error == 0)
        error = fy_xarray_make(x->f, &blocks, x->element_bytes, x->ghosts, next);
    ferry_floorplan_fini(&blocks);
    if (error == 0)
        error = fy_mover_no_memory(x->f, remap_prepare(x, *next, changes, &moves), "xarray_remap");
    error = fy_mover_agree(x->f, error);
    if (error == 0)
        error = fy_mover_agree(x->f, carry(x, *next, &moves));
    else
        fy_mover_skip(x->f, error);
    ferry_plan_fini(&moves);
    return error;
}

int ferry_xarray_remap(ferry_xarray *x, const int32_t *owners)
{
    ferry_xarray *next = NULL;
    fy_changes changes = {0};
    const fy_arrays self = {.items = &x, .count = 1};
    bool *marks = fy_calloc((size_t)ferry_ranks(x->f), sizeof *marks);
    int error = marks != NULL ? remap_check(x, owners)
                              : fy_mover_fail(x->f, FERRY_ENOMEM, "xarray_remap: no memory");
    fy_mover_give_up(x->f, self, false);
    error = replace(error, x, owners, &changes, &next);
    if (error != 0)
        fy_mover_give_up(x->f, self, true);
    if (error == 0) {
        drop_grids(x, next);
        ferry_xarray old = *x;
        *x = *next;
        *next = old;
        const fy_outcome outcome = {.changes = &changes, .old = &next->blocks, .marks = marks};
        fy_mover_follow(x->f, self, &outcome);
        fy_arrays_prune(x->f, self);
    } else if (next != NULL) {
        drop_grids(next, x);
    }
    ferry_xarray_destroy(next);
    free(changes.items);
    free(marks);
    return error;
}
