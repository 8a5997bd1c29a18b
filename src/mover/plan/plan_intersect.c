/* The intersection of two floor plans. For each target block the tree of sources gives the blocks
 * that intersect its image in source coordinates. A rank that plans its own part alone also asks
 * the tree of targets for each of its source blocks. One function makes the copy of a pair of
 * blocks, so both ranks of a copy make the same one.
 *
 * Here q is a point of the target after the shift. So q and its source point differ only in the
 * order of axes and in the ratio. */
#include <inttypes.h>

#include "mover/geometry/fail.h"
#include "mover/plan/plan.h"

typedef struct planner {
    ferry_plan *plan;
    const ferry_floorplan *source, *target;
    ferry_intersection how;
    int dims, rank;
} planner;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return -fy_floor_div(-a, b);
}

/* The coarse points that contain the fine points [low, high]. */
static void to_coarse(int64_t ratio, int64_t *low, int64_t *high)
{
    *low = fy_floor_div(*low, ratio);
    *high = fy_floor_div(*high, ratio);
}

/* The fine points in the coarse points [low, high]. */
static void to_fine(int64_t ratio, int64_t *low, int64_t *high)
{
    *low *= ratio;
    *high = *high * ratio + ratio - 1;
}

/* Along target axis d: turns the interval [low, high] of q into the source coordinates that it
 * reads. */
static void to_source(const planner *p, int d, int64_t *low, int64_t *high)
{
    int64_t ratio = p->how.ratio[d];
    if (p->how.relation == FERRY_REFINE) {
        to_coarse(ratio, low, high);
    } else if (p->how.relation == FERRY_COARSEN) {
        to_fine(ratio, low, high);
    } else if (p->how.relation == FERRY_SAMPLE) {
        *low *= ratio;
        *high *= ratio;
    }
}

/* Turns an interval of source coordinates into the interval of q that gets values from it. */
static void to_target(const planner *p, int d, int64_t *low, int64_t *high)
{
    int64_t ratio = p->how.ratio[d];
    if (p->how.relation == FERRY_REFINE) {
        to_fine(ratio, low, high);
    } else if (p->how.relation == FERRY_COARSEN) {
        to_coarse(ratio, low, high);
    } else if (p->how.relation == FERRY_SAMPLE) {
        *low = ceil_div(*low, ratio);
        *high = fy_floor_div(*high, ratio);
    }
}

/* The points q of a target block and its ghost cells. */
static ferry_region wanted(const planner *p, const ferry_region *block)
{
    ferry_region q = *block;
    for (int d = 0; d < p->dims; d++) {
        q.low.at[d] += p->how.shift.at[d] - p->how.low.at[d];
        q.high.at[d] += p->how.shift.at[d] + p->how.high.at[d];
    }
    return q;
}

static ferry_region source_of(const planner *p, const ferry_region *q)
{
    ferry_region s = {.dims = p->dims};
    for (int d = 0; d < p->dims; d++) {
        int64_t low = q->low.at[d], high = q->high.at[d];
        to_source(p, d, &low, &high);
        s.low.at[p->how.axis[d]] = low;
        s.high.at[p->how.axis[d]] = high;
    }
    return s;
}

static ferry_region target_of(const planner *p, const ferry_region *s)
{
    ferry_region q = {.dims = p->dims};
    for (int d = 0; d < p->dims; d++) {
        int64_t low = s->low.at[p->how.axis[d]], high = s->high.at[p->how.axis[d]];
        to_target(p, d, &low, &high);
        q.low.at[d] = low;
        q.high.at[d] = high;
    }
    return q;
}

/* Adds the copy from one block to another, if they have points in common. */
static int emit(planner *p, uint32_t target, uint32_t source)
{
    ferry_region q = wanted(p, &p->target->blocks[target].region), common;
    ferry_region from = source_of(p, &q);
    if (!fy_box_intersect(&from, &p->source->blocks[source].region, &common))
        return 0;
    ferry_region fed = target_of(p, &common), to;
    if (!fy_box_intersect(&fed, &q, &to))
        return 0;
    if (p->how.relation != FERRY_COARSEN)
        common = source_of(p, &to);
    ferry_plan_entry copy = {.source = fy_block_number(p->source, source),
                             .target = fy_block_number(p->target, target),
                             .from = common,
                             .to = to,
                             .relation = (uint8_t)p->how.relation};
    for (int d = 0; d < p->dims; d++) {
        copy.to.low.at[d] -= p->how.shift.at[d];
        copy.to.high.at[d] -= p->how.shift.at[d];
    }
    for (int d = 0; d < FERRY_DIMS_MAX; d++) {
        copy.axis[d] = p->how.axis[d];
        copy.ratio[d] = p->how.relation == FERRY_PLAIN ? 1 : p->how.ratio[d];
    }
    return ferry_plan_add(p->plan, &copy);
}

static int as_targets(planner *p)
{
    fy_tree tree;
    int error = fy_plan_tree(&tree, p->source);
    for (uint32_t t = 0; t < p->target->count && error == 0; t++) {
        const ferry_block *block = &p->target->blocks[t];
        if ((p->rank >= 0 && block->owner != p->rank) || ferry_region_is_empty(block->region))
            continue;
        ferry_region q = wanted(p, &block->region);
        ferry_region where = source_of(p, &q);
        fy_tree_walk walk;
        uint32_t s;
        const ferry_region *region;
        fy_tree_find(&walk, &tree, &where);
        while (error == 0 && fy_tree_next(&walk, &s, &region))
            error = emit(p, t, s);
    }
    fy_tree_fini(&tree);
    return error;
}

static int as_sources(planner *p)
{
    fy_tree tree;
    int error = fy_plan_tree(&tree, p->target);
    for (uint32_t s = 0; s < p->source->count && error == 0; s++) {
        const ferry_block *block = &p->source->blocks[s];
        if (block->owner != p->rank || ferry_region_is_empty(block->region))
            continue;
        ferry_region where = target_of(p, &block->region);
        for (int d = 0; d < p->dims; d++) {
            where.low.at[d] -= p->how.shift.at[d] + p->how.high.at[d];
            where.high.at[d] -= p->how.shift.at[d] - p->how.low.at[d];
        }
        fy_tree_walk walk;
        uint32_t t;
        const ferry_region *region;
        fy_tree_find(&walk, &tree, &where);
        while (error == 0 && fy_tree_next(&walk, &t, &region))
            if (p->target->blocks[t].owner != p->rank)
                error = emit(p, t, s);
    }
    fy_tree_fini(&tree);
    return error;
}

/* Checks ratio, shift and widths of dimension `d`. Offsets are multiplied by the ratio as
 * coordinates are (check_coordinates). */
static int check_dimension(const ferry_intersection *how, int d)
{
    const int64_t shift = how->shift.at[d], low = how->low.at[d], high = how->high.at[d];
    if (how->relation != FERRY_PLAIN && how->ratio[d] < 1)
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "plan_intersect: ratio %d in dimension %d, expected 1 or more",
                             (int)how->ratio[d], d);
    const int64_t ratio = how->relation == FERRY_PLAIN ? 1 : how->ratio[d];
    const int64_t far = FERRY_COORDINATE_MAX / 4 / ratio;
    if (how->relation == FERRY_REFINE && shift % ratio != 0)
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "plan_intersect: shift %" PRId64 " in dimension %d, expected a "
                             "multiple of the ratio %" PRId64,
                             shift, d, ratio);
    if (shift > far || shift < -far || low < 0 || low > far || high < 0 || high > far)
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "plan_intersect: shift %" PRId64 " and widths %" PRId64 " and %" PRId64
                             " in dimension %d, expected widths of at least 0 and at most %" PRId64
                             " of each",
                             shift, low, high, d, far);
    return 0;
}

static int intersect_check(planner *p)
{
    unsigned seen = 0;
    if (p->source->dims != p->dims || p->dims < 1 || p->dims > FERRY_DIMS_MAX)
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "plan_intersect: source blocks of %d dimensions and target blocks of "
                             "%d, expected the same, 1 to %d",
                             p->source->dims, p->dims, FERRY_DIMS_MAX);
    if (p->how.relation > FERRY_COARSEN)
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "plan_intersect: relation %d, expected FERRY_PLAIN to FERRY_COARSEN",
                             (int)p->how.relation);
    for (int d = 0; d < p->dims; d++) {
        int axis = p->how.permuted ? p->how.axis[d] : d;
        if (axis < 0 || axis >= p->dims || (seen & (1u << axis)))
            return fy_mover_fail(NULL, FERRY_EINVAL,
                                 "plan_intersect: axis %d in dimension %d, expected each of 0 to "
                                 "%d once",
                                 axis, d, p->dims - 1);
        seen |= 1u << axis;
        p->how.axis[d] = (int8_t)axis;
        int error = check_dimension(&p->how, d);
        if (error)
            return error;
    }
    for (int d = p->dims; d < FERRY_DIMS_MAX; d++)
        p->how.axis[d] = (int8_t)d;
    return 0;
}

/* Checks that coordinates stay within the limit when they are multiplied by the ratio. */
static int check_coordinates(const planner *p, const ferry_floorplan *blocks)
{
    for (size_t i = 0; i < blocks->count; i++) {
        for (int d = 0; d < blocks->dims; d++) {
            const ferry_region *r = &blocks->blocks[i].region;
            int64_t room = FERRY_COORDINATE_MAX / 2;
            for (int e = 0; e < p->dims && p->how.relation != FERRY_PLAIN; e++)
                room = fy_min(room, FERRY_COORDINATE_MAX / 2 / p->how.ratio[e]);
            if (r->low.at[d] < -room || r->high.at[d] > room)
                return fy_mover_fail(NULL, FERRY_EINVAL,
                                     "plan_intersect: block %d %s has a coordinate beyond %" PRId64,
                                     fy_block_number(blocks, i), fy_region_show(r).text, room);
        }
    }
    return 0;
}

int ferry_plan_intersect(ferry_plan *plan, const ferry_floorplan *source,
                         const ferry_floorplan *target, const ferry_intersection *intersection,
                         int rank)
{
    const fy_given given[] = {{"plan", plan}, {"source", source}, {"target", target}};
    const int missing = fy_mover_given("plan_intersect", given, 3);
    if (missing)
        return missing;
    planner p = {
        .plan = plan, .source = source, .target = target, .dims = target->dims, .rank = rank};
    size_t before = plan->count;
    int error = fy_mover_read(NULL, "plan_intersect: ferry_intersection", intersection, &p.how,
                              sizeof p.how);
    if (error == 0)
        error = intersect_check(&p);
    if (error == 0)
        error = check_coordinates(&p, source);
    if (error == 0)
        error = check_coordinates(&p, target);
    if (error == 0)
        error = as_targets(&p);
    if (error == 0 && rank >= 0)
        error = as_sources(&p);
    if (error)
        plan->count = before;
    return error;
}
