/* Floor plans: the table of blocks, and its checks. */
#include <stdlib.h>
#include <string.h>

#include <ferry/mover_plan.h>

#include "base/alloc.h"
#include "mover/geometry/array.h"
#include "mover/geometry/box.h"
#include "mover/geometry/fail.h"
#include "mover/geometry/floorplan.h"
#include "mover/geometry/tree.h"

void ferry_floorplan_fini(ferry_floorplan *plan)
{
    if (plan == NULL)
        return;
    free(plan->blocks);
    free(plan->numbers);
    *plan = (ferry_floorplan){.dims = plan->dims};
}

int ferry_floorplan_add(ferry_floorplan *plan, ferry_region region, int owner)
{
    if (plan == NULL)
        return fy_mover_fail(NULL, FERRY_EINVAL, "floorplan_add: plan is NULL");
    if (region.dims != plan->dims)
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "floorplan_add: the region has %d dimensions, expected %d as the plan",
                             region.dims, plan->dims);
    if (plan->count >= INT32_MAX || plan->numbers != NULL)
        return fy_mover_fail(NULL, FERRY_EINVAL, "floorplan_add: the plan %s",
                             plan->numbers != NULL ? "is a share, expected a whole plan"
                                                   : "has 2147483647 blocks and cannot have more");
    int error = fy_array_reserve((void **)&plan->blocks, &plan->capacity, plan->count + 1,
                                 sizeof *plan->blocks);
    if (error)
        return error;
    plan->blocks[plan->count++] = (ferry_block){.region = region, .owner = owner};
    return 0;
}

int ferry_floorplan_copy(const ferry_floorplan *plan, ferry_floorplan *out)
{
    const fy_given given[] = {{"plan", plan}, {"out", out}};
    int error = fy_mover_given("floorplan_copy", given, 2);
    if (error)
        return error;
    ferry_floorplan copy = {.dims = plan->dims, .total = plan->total, .rank = plan->rank};
    error = fy_array_reserve((void **)&copy.blocks, &copy.capacity, plan->count + 1,
                             sizeof *copy.blocks);
    if (error == 0 && plan->numbers != NULL &&
        (copy.numbers = fy_malloc((plan->count + 1) * sizeof *copy.numbers)) == NULL)
        error = fy_mover_no_memory(NULL, FERRY_ENOMEM, "floorplan_copy");
    if (error) {
        ferry_floorplan_fini(&copy);
        return error;
    }
    if (plan->count > 0)
        memcpy(copy.blocks, plan->blocks, plan->count * sizeof *copy.blocks);
    if (plan->count > 0 && plan->numbers != NULL)
        memcpy(copy.numbers, plan->numbers, plan->count * sizeof *copy.numbers);
    copy.count = plan->count;
    *out = copy;
    return 0;
}

const ferry_block *ferry_floorplan_block(const ferry_floorplan *plan, int32_t number)
{
    if (plan == NULL)
        return NULL;
    if (plan->numbers == NULL)
        return number >= 0 && (size_t)number < plan->count ? &plan->blocks[number] : NULL;
    size_t low = 0, high = plan->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (plan->numbers[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < plan->count && plan->numbers[low] == number ? &plan->blocks[low] : NULL;
}

static int check_block(ferry *f, const ferry_floorplan *plan, int ranks, size_t i,
                       const ferry_region *domain, int rules)
{
    const ferry_block *block = &plan->blocks[i];
    const int32_t number = fy_block_number(plan, i);
    if (block->region.dims != plan->dims)
        return fy_mover_fail(f, FERRY_EINVAL, "floor plan: block %d has %d dimensions, expected %d",
                             number, block->region.dims, plan->dims);
    if (ferry_region_is_empty(block->region))
        return fy_mover_fail(f, FERRY_EINVAL, "floor plan: block %d %s is empty", number,
                             fy_region_show(&block->region).text);
    if (!fy_box_is_sound(&block->region, plan->dims))
        return fy_mover_fail(f, FERRY_EINVAL,
                             "floor plan: block %d %s has coordinates beyond the limit", number,
                             fy_region_show(&block->region).text);
    if (block->owner < 0 || block->owner >= ranks)
        return fy_mover_fail(f, FERRY_EINVAL,
                             "floor plan: block %d belongs to rank %d; there are %d ranks", number,
                             block->owner, ranks);
    if ((rules & FERRY_FLOORPLAN_INSIDE) && !ferry_region_contains(*domain, block->region))
        return fy_mover_fail(f, FERRY_EINVAL, "floor plan: block %d %s is not inside %s", number,
                             fy_region_show(&block->region).text, fy_region_show(domain).text);
    return 0;
}

static int check_disjoint(ferry *f, const ferry_floorplan *plan, const fy_tree *tree)
{
    for (size_t i = 0; i < plan->count; i++) {
        fy_tree_walk walk;
        uint32_t other;
        const ferry_region *region;
        fy_tree_find(&walk, tree, &plan->blocks[i].region);
        while (fy_tree_next(&walk, &other, &region))
            if (other > i)
                return fy_mover_fail(
                    f, FERRY_EINVAL, "floor plan: block %d %s overlaps block %d %s",
                    fy_block_number(plan, i), fy_region_show(&plan->blocks[i].region).text,
                    fy_block_number(plan, other), fy_region_show(region).text);
    }
    return 0;
}

/* Checks that the blocks cover the domain. `open` lists the pieces that are not known to be
 * covered. One block that intersects a piece is subtracted from it, and what is left goes back to
 * the list. If no block intersects a piece, it is not covered. */
static int check_cover(ferry *f, const fy_tree *tree, ferry_region domain)
{
    ferry_regions open = {0};
    int error = ferry_regions_add(&open, domain);
    while (error == 0 && open.count > 0) {
        ferry_region piece = open.items[--open.count];
        fy_tree_walk walk;
        uint32_t number;
        const ferry_region *block;
        fy_tree_find(&walk, tree, &piece);
        if (!fy_tree_next(&walk, &number, &block)) {
            error = fy_mover_fail(f, FERRY_EINVAL, "floor plan: no block has %s",
                                  fy_region_show(&piece).text);
            break;
        }
        ferry_region rest[2 * FERRY_DIMS_MAX];
        int count = ferry_region_difference(piece, *block, rest);
        for (int i = 0; i < count && error == 0; i++)
            error = ferry_regions_add(&open, rest[i]);
    }
    ferry_regions_fini(&open);
    return error;
}

int ferry_floorplan_check(ferry *f, const ferry_floorplan *plan, int ranks, ferry_region domain,
                          int rules)
{
    if (plan == NULL)
        return fy_mover_fail(f, FERRY_EINVAL, "floor plan: NULL, expected a floor plan");
    if (plan->dims < 1 || plan->dims > FERRY_DIMS_MAX)
        return fy_mover_fail(f, FERRY_EINVAL, "floor plan: %d dimensions, expected 1 to %d",
                             plan->dims, FERRY_DIMS_MAX);
    if ((rules & (FERRY_FLOORPLAN_INSIDE | FERRY_FLOORPLAN_COVER)) && domain.dims != plan->dims)
        return fy_mover_fail(f, FERRY_EINVAL,
                             "floor plan: domain %s has %d dimensions, expected %d",
                             fy_region_show(&domain).text, domain.dims, plan->dims);
    for (size_t i = 0; i < plan->count; i++) {
        int error = check_block(f, plan, ranks, i, &domain, rules);
        if (error)
            return error;
    }
    if (!(rules & (FERRY_FLOORPLAN_DISJOINT | FERRY_FLOORPLAN_COVER)))
        return 0;
    fy_tree tree;
    int error = fy_tree_init(&tree, plan->dims, plan->blocks ? &plan->blocks->region : NULL,
                             sizeof *plan->blocks, plan->count);
    if (error == 0 && (rules & FERRY_FLOORPLAN_DISJOINT))
        error = check_disjoint(f, plan, &tree);
    if (error == 0 && (rules & FERRY_FLOORPLAN_COVER))
        error = check_cover(f, &tree, domain);
    fy_tree_fini(&tree);
    return error == FERRY_ENOMEM
               ? fy_mover_fail(f, error, "floor plan: no memory to check %zu blocks", plan->count)
               : error;
}
