/* Checks a plan. Its errors name the entry, the block and the region that are wrong. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "mover/geometry/fail.h"
#include "mover/plan/plan.h"

typedef struct checker {
    ferry *f;
    const ferry_plan *plan;
    const ferry_floorplan *blocks;
    ferry_point ghosts;
    const char *end;
} checker;

/* Checks one end of an entry: the block exists and contains the region. */
static int check_end(const checker *c, size_t entry, int32_t block, const ferry_region *r)
{
    const ferry_block *named = ferry_floorplan_block(c->blocks, block);
    if (named == NULL)
        return fy_mover_fail(c->f, FERRY_EINVAL, "plan: entry %zu: no %s block %d of %zu%s", entry,
                             c->end, block,
                             c->blocks->numbers != NULL ? c->blocks->total : c->blocks->count,
                             c->blocks->numbers != NULL ? " in this rank's share" : "");
    const ferry_region *own = &named->region;
    ferry_region grid = ferry_region_grow(*own, c->ghosts);
    if (r->dims == own->dims && ferry_region_is_empty(*r))
        return fy_mover_fail(c->f, FERRY_EINVAL, "plan: entry %zu: %s region %s is empty", entry,
                             c->end, fy_region_show(r).text);
    if (r->dims != own->dims || !ferry_region_contains(grid, *r))
        return fy_mover_fail(c->f, FERRY_EINVAL,
                             "plan: entry %zu: %s region %s is not inside block %d %s with ghosts "
                             "%s",
                             entry, c->end, fy_region_show(r).text, block, fy_region_show(own).text,
                             fy_region_show(&grid).text);
    return 0;
}

/* Whether `extent` source points are as many as axis `d` of the target needs. */
static bool suffices(const ferry_plan_entry *copy, int d, int64_t extent)
{
    int64_t ratio = copy->ratio[d];
    int64_t count = (int64_t)ferry_region_extent(copy->to, d);
    int64_t phase = copy->to.low.at[d] - fy_floor_div(copy->to.low.at[d], ratio) * ratio;
    if (copy->relation == FERRY_SAMPLE)
        return (extent - 1) / ratio == count - 1 && (extent - 1) % ratio == 0;
    return extent == (copy->relation == FERRY_REFINE ? (phase + count - 1) / ratio + 1 : count);
}

/* Whether the two regions of an entry fit, whose axes are good. */
static bool copy_fits(const ferry_plan_entry *copy)
{
    if (copy->from.dims != copy->to.dims)
        return copy->relation == FERRY_PLAIN &&
               ferry_region_size(copy->from) == ferry_region_size(copy->to);
    bool same = true, ordered = true;
    for (int d = 0; d < copy->to.dims; d++) {
        int a = copy->axis[d];
        ordered &= a == d;
        int64_t extent = (int64_t)ferry_region_extent(copy->from, a);
        if (copy->relation == FERRY_COARSEN) {
            int64_t low = copy->from.low.at[a], ratio = copy->ratio[d];
            int64_t cells =
                fy_floor_div(copy->from.high.at[a], ratio) - fy_floor_div(low, ratio) + 1;
            same &= cells == (int64_t)ferry_region_extent(copy->to, d);
        } else {
            same &= suffices(copy, d, extent);
        }
    }
    return same || (ordered && copy->relation == FERRY_PLAIN &&
                    ferry_region_size(copy->from) == ferry_region_size(copy->to));
}

/* Checks the axes and ratios of an entry between regions of the same dimensions. */
static int check_axes(ferry *f, const ferry_plan_entry *copy, size_t i)
{
    unsigned seen = 0;
    for (int d = 0; d < copy->to.dims && copy->from.dims == copy->to.dims; d++) {
        const int a = copy->axis[d];
        if (a < 0 || a >= copy->to.dims || (seen & (1u << a)))
            return fy_mover_fail(f, FERRY_EINVAL,
                                 "plan: entry %zu: axis[%d] is %d; expected each of 0 to %d once",
                                 i, d, a, copy->to.dims - 1);
        if (copy->ratio[d] < 1)
            return fy_mover_fail(f, FERRY_EINVAL,
                                 "plan: entry %zu: ratio[%d] is %d; expected 1 or more", i, d,
                                 copy->ratio[d]);
        seen |= 1u << a;
    }
    return 0;
}

int fy_plan_check_entry(ferry *f, const ferry_plan_entry *copy, size_t i)
{
    if (copy->relation > FERRY_COARSEN)
        return fy_mover_fail(f, FERRY_EINVAL,
                             "plan: entry %zu: relation %d; expected FERRY_PLAIN (%d) to "
                             "FERRY_COARSEN (%d)",
                             i, (int)copy->relation, FERRY_PLAIN, FERRY_COARSEN);
    if (check_axes(f, copy, i))
        return FERRY_EINVAL;
    if (copy_fits(copy))
        return 0;
    return fy_mover_fail(f, FERRY_EINVAL,
                         "plan: entry %zu: source block %d on %s does not fit target block %d on "
                         "%s",
                         i, copy->source, fy_region_show(&copy->from).text, copy->target,
                         fy_region_show(&copy->to).text);
}

/* Checks that no entry after `i` writes points that `i` writes too. */
static int check_other(ferry *f, const ferry_plan *plan, const fy_tree *tree,
                       const ferry_region *targets, size_t i)
{
    fy_tree_walk walk;
    uint32_t other;
    const ferry_region *region;
    fy_tree_find(&walk, tree, &targets[i]);
    while (fy_tree_next(&walk, &other, &region))
        if (other > i && fy_plan_target(plan, other) == fy_plan_target(plan, i))
            return fy_mover_fail(f, FERRY_EINVAL,
                                 "plan: entries %zu %s and %u %s overlap in target block %d", i,
                                 fy_region_show(&targets[i]).text, (unsigned)other,
                                 fy_region_show(region).text, fy_plan_target(plan, i));
    return 0;
}

/* Checks that no two entries write the same point of a block. One tree has the target regions of
 * all blocks. If two regions intersect in it, their blocks are compared. */
static int check_disjoint(ferry *f, const ferry_plan *plan, const ferry_floorplan *target)
{
    fy_tree tree = {0};
    ferry_region *targets = fy_malloc((plan->count + 1) * sizeof *targets);
    for (size_t i = 0; i < plan->count && targets != NULL; i++)
        targets[i] = ferry_plan_at(plan, i).to;
    int error = targets == NULL
                    ? FERRY_ENOMEM
                    : fy_tree_init(&tree, target->dims, targets, sizeof *targets, plan->count);
    if (error)
        (void)fy_mover_fail(f, error, "plan: no memory to check %zu entries", plan->count);
    for (size_t i = 0; i < plan->count && error == 0; i++)
        error = check_other(f, plan, &tree, targets, i);
    fy_tree_fini(&tree);
    free(targets);
    return error;
}

int ferry_plan_check(ferry *f, const ferry_plan *plan, const ferry_floorplan *source,
                     ferry_point source_ghosts, const ferry_floorplan *target,
                     ferry_point target_ghosts, bool disjoint)
{
    const fy_given given[] = {{"plan", plan}, {"source", source}, {"target", target}};
    const int missing = fy_mover_given("plan_check", given, 3);
    if (missing)
        return f == NULL ? missing : fy_mover_fail(f, missing, "%s", fy_error_text());
    checker from = {f, plan, source, source_ghosts, "source"};
    checker to = {f, plan, target, target_ghosts, "target"};
    for (size_t i = 0; i < plan->count; i++) {
        const ferry_plan_entry copy = ferry_plan_at(plan, i);
        int error = check_end(&from, i, copy.source, &copy.from);
        if (error == 0)
            error = check_end(&to, i, copy.target, &copy.to);
        if (error == 0)
            error = fy_plan_check_entry(f, &copy, i);
        if (error)
            return error;
    }
    return disjoint ? check_disjoint(f, plan, target) : 0;
}
