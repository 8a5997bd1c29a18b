/* Maps: they give each block an owner. */
#include <float.h>
#include <stdlib.h>

#include <ferry/mover_plan.h>

#include "base/alloc.h"
#include "mover/geometry/curve.h"
#include "mover/geometry/fail.h"

/* All maps need ranks, and a plan of which this rank has every block. */
static int check_map(const char *call, const ferry_floorplan *plan, int ranks)
{
    const fy_given given = {"plan", plan};
    const int error = fy_mover_given(call, &given, 1);
    if (error)
        return error;
    if (ranks < 1)
        return fy_mover_fail(NULL, FERRY_EINVAL, "%s: %d ranks, expected 1 or more", call, ranks);
    if (plan->numbers != NULL)
        return fy_mover_fail(NULL, FERRY_EINVAL, "%s: the plan is a share, expected a whole plan",
                             call);
    return 0;
}

int ferry_floorplan_map_block(ferry_floorplan *plan, int ranks)
{
    int error = check_map("floorplan_map_block", plan, ranks);
    if (error)
        return error;
    for (size_t i = 0; i < plan->count; i++)
        plan->blocks[i].owner = (int32_t)((uint64_t)i * (uint64_t)ranks / plan->count);
    return 0;
}

int ferry_floorplan_map_cyclic(ferry_floorplan *plan, int ranks, int chunk)
{
    int error = check_map("floorplan_map_cyclic", plan, ranks);
    if (error == 0 && chunk < 1)
        error =
            fy_mover_fail(NULL, FERRY_EINVAL,
                          "floorplan_map_cyclic: chunks of %d blocks, expected 1 or more", chunk);
    if (error)
        return error;
    for (size_t i = 0; i < plan->count; i++)
        plan->blocks[i].owner = (int32_t)(i / (size_t)chunk % (size_t)ranks);
    return 0;
}

int ferry_floorplan_map_grid(ferry_floorplan *plan, ferry_point parts, ferry_point ranks)
{
    int error = check_map("floorplan_map_grid", plan, 1);
    if (error)
        return error;
    const ferry_region grid = ferry_region_sized(plan->dims, parts.at);
    const uint64_t all = ferry_region_size(ferry_region_sized(plan->dims, ranks.at));
    if (ferry_region_size(grid) != plan->count)
        error = fy_mover_fail(NULL, FERRY_EINVAL,
                              "floorplan_map_grid: %llu parts, expected %zu, one for each block",
                              (unsigned long long)ferry_region_size(grid), plan->count);
    if (error == 0 && (all < 1 || all > INT32_MAX))
        error =
            fy_mover_fail(NULL, FERRY_EINVAL, "floorplan_map_grid: %llu ranks, expected 1 to %d",
                          (unsigned long long)all, INT32_MAX);
    if (error)
        return error;
    ferry_point at = grid.low;
    for (size_t i = 0; i < plan->count; i++, ferry_region_next(&grid, &at)) {
        int64_t owner = 0;
        for (int d = 0; d < plan->dims; d++)
            owner = owner * ranks.at[d] + at.at[d] % ranks.at[d];
        plan->blocks[i].owner = (int32_t)owner;
    }
    return 0;
}

/* The blocks in an order, with keys: the data of all maps by weight. */
typedef struct shares {
    ferry_floorplan *plan;
    const double *weights;
    fy_curve_item *items;
} shares;

static double weight_of(const shares *s, uint32_t block)
{
    double weight =
        s->weights ? s->weights[block] : (double)ferry_region_size(s->plan->blocks[block].region);
    return weight > 0 ? weight : 0;
}

static double sum_of(const shares *s, size_t first, size_t end)
{
    double sum = 0;
    for (size_t i = first; i < end; i++)
        sum += weight_of(s, s->items[i].number);
    return sum;
}

/* Refuses weights with an infinite sum: no share of it has a value. */
static int check_weights(const char *call, const shares *s)
{
    double sum = 0;
    for (size_t i = 0; s->weights != NULL && i < s->plan->count; i++) {
        sum += weight_of(s, (uint32_t)i);
        if (sum > DBL_MAX)
            return fy_mover_fail(NULL, FERRY_EINVAL,
                                 "%s: the sum of the weights is infinite from block %zu on, which "
                                 "has %g; expected a finite sum",
                                 call, i, s->weights[i]);
    }
    return 0;
}

static int shares_init(shares *s, const char *call, ferry_floorplan *plan, const double *weights)
{
    *s = (shares){.plan = plan, .weights = weights};
    int error = check_weights(call, s);
    if (error)
        return error;
    s->items = fy_calloc(plan->count + 1, sizeof *s->items);
    for (size_t i = 0; s->items != NULL && i < plan->count; i++)
        s->items[i].number = (uint32_t)i;
    return s->items != NULL ? 0
                            : fy_mover_fail(NULL, FERRY_ENOMEM,
                                            "floor plan: no memory to map %zu blocks", plan->count);
}

/* Divides the items from `first` to `end` among `count` ranks from `rank` on. Each rank has an
 * equal share of their weight, laid end to end. A block goes to the rank in whose share its middle
 * lies. */
static void deal(const shares *s, size_t first, size_t end, int rank, int count)
{
    double sum = sum_of(s, first, end), before = 0;
    for (size_t i = first; i < end; i++) {
        double weight = weight_of(s, s->items[i].number);
        double middle = sum > 0 ? (before + weight / 2) / sum
                                : ((double)(i - first) + 0.5) / (double)(end - first);
        int which = (int)(middle * count);
        s->plan->blocks[s->items[i].number].owner = rank + (which < count ? which : count - 1);
        before += weight;
    }
}

static ferry_region hull_of(const ferry_floorplan *plan)
{
    ferry_region hull = {.dims = 0};
    for (size_t i = 0; i < plan->count; i++)
        hull = ferry_region_bound(hull, plan->blocks[i].region);
    return hull;
}

int ferry_floorplan_map_curve(ferry_floorplan *plan, int ranks, const double *weights)
{
    shares s;
    int error = check_map("floorplan_map_curve", plan, ranks);
    if (error == 0)
        error = shares_init(&s, "floorplan_map_curve", plan, weights);
    if (error)
        return error;
    ferry_region hull = hull_of(plan);
    for (size_t i = 0; i < plan->count; i++)
        if (!ferry_region_is_empty(plan->blocks[i].region))
            s.items[i].key = fy_curve_hilbert(&hull, &plan->blocks[i].region);
    fy_curve_sort(s.items, plan->count);
    deal(&s, 0, plan->count, 0, ranks);
    free(s.items);
    return 0;
}

/* Sorts the items by their centres, along the dimension in which the centres lie furthest apart. */
static void sort_along(const shares *s, size_t first, size_t end)
{
    ferry_region hull = {.dims = 0};
    for (size_t i = first; i < end; i++)
        hull = ferry_region_bound(hull, s->plan->blocks[s->items[i].number].region);
    int d = 0;
    for (int e = 1; e < hull.dims; e++)
        if (ferry_region_extent(hull, e) > ferry_region_extent(hull, d))
            d = e;
    for (size_t i = first; i < end; i++) {
        const ferry_region *r = &s->plan->blocks[s->items[i].number].region;
        s->items[i].key =
            (uint64_t)(r->low.at[d] - hull.low.at[d]) + (uint64_t)(r->high.at[d] - hull.low.at[d]);
    }
    fy_curve_sort(s->items + first, end - first);
}

static void bisect(const shares *s, size_t first, size_t end, int rank, int count)
{
    if (count == 1 || first == end) {
        deal(s, first, end, rank, count);
        return;
    }
    sort_along(s, first, end);
    int lower = count / 2;
    double sum = sum_of(s, first, end), wanted = sum * lower / count, before = 0;
    size_t middle = first;
    while (middle < end) {
        double weight = weight_of(s, s->items[middle].number);
        if (sum > 0 ? before + weight / 2 > wanted
                    : (middle - first) * (size_t)count >= (end - first) * (size_t)lower)
            break;
        before += weight;
        middle++;
    }
    bisect(s, first, middle, rank, lower);
    bisect(s, middle, end, rank + lower, count - lower);
}

int ferry_floorplan_map_bisect(ferry_floorplan *plan, int ranks, const double *weights)
{
    shares s;
    int error = check_map("floorplan_map_bisect", plan, ranks);
    if (error == 0)
        error = shares_init(&s, "floorplan_map_bisect", plan, weights);
    if (error)
        return error;
    bisect(&s, 0, plan->count, 0, ranks);
    free(s.items);
    return 0;
}
