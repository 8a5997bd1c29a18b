/* Motion plans: adds and orders single copies, composes plans, counts and prints them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/mover_plan.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "mover/geometry/box.h"
#include "mover/geometry/fail.h"
#include "mover/plan/plan.h"

void fy_copy_plain(ferry_plan_entry *copy)
{
    copy->relation = FERRY_PLAIN;
    for (int d = 0; d < FERRY_DIMS_MAX; d++) {
        copy->ratio[d] = 1;
        copy->axis[d] = (int8_t)d;
    }
}

int ferry_plan_copy(ferry_plan *plan, int32_t target, ferry_region to, int32_t source,
                    ferry_region from)
{
    const uint64_t size = ferry_region_size(to);
    if (size != ferry_region_size(from))
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "plan_copy: %s and %s have different numbers of points",
                             fy_region_show(&from).text, fy_region_show(&to).text);
    if (size == 0)
        return 0;
    ferry_plan_entry copy = {.source = source, .target = target, .from = from, .to = to};
    fy_copy_plain(&copy);
    return ferry_plan_add(plan, &copy);
}

/* Whether `copy` is plain, and both regions have the same extents. */
static bool copy_is_simple(const ferry_plan_entry *copy)
{
    if (copy->relation != FERRY_PLAIN || copy->from.dims != copy->to.dims)
        return false;
    for (int d = 0; d < copy->to.dims; d++)
        if (copy->axis[d] != d ||
            ferry_region_extent(copy->from, d) != ferry_region_extent(copy->to, d))
            return false;
    return true;
}

uint64_t ferry_plan_entry_points(const ferry_plan_entry *copy)
{
    return ferry_region_size(copy->relation == FERRY_COARSEN ? copy->from : copy->to);
}

static int plan_compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_regions(const ferry_region *a, const ferry_region *b)
{
    int order = plan_compare(a->dims, b->dims);
    for (int d = 0; d < a->dims && order == 0; d++)
        order = plan_compare(a->low.at[d], b->low.at[d]);
    for (int d = 0; d < a->dims && order == 0; d++)
        order = plan_compare(a->high.at[d], b->high.at[d]);
    return order;
}

int fy_copy_compare(const ferry_plan_entry *a, const ferry_plan_entry *b)
{
    int order = plan_compare(a->target, b->target);
    if (order == 0)
        order = compare_regions(&a->to, &b->to);
    if (order == 0)
        order = plan_compare(a->source, b->source);
    if (order == 0)
        order = compare_regions(&a->from, &b->from);
    if (order == 0)
        order = plan_compare(a->relation, b->relation);
    for (int d = 0; d < a->to.dims && order == 0; d++) {
        order = plan_compare(a->axis[d], b->axis[d]);
        if (order == 0)
            order = plan_compare(a->ratio[d], b->ratio[d]);
    }
    return order;
}

/* An entry of the first of two plans, to be sorted by the block that it writes. */
typedef struct sorted_entry {
    int32_t target;
    uint32_t index;
} sorted_entry;

static int by_target(const void *a, const void *b)
{
    const sorted_entry *x = a, *y = b;
    if (x->target != y->target)
        return x->target < y->target ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Composes two entries. `first` writes points that `second` reads. Takes their common points, and
 * carries these back to the source of `first` and on to the target of `second`. */
static int plan_join(const ferry_plan_entry *first, const ferry_plan_entry *second, ferry_plan *out)
{
    ferry_region middle = ferry_region_intersect(first->to, second->from);
    if (ferry_region_is_empty(middle))
        return 0;
    ferry_point back, ahead;
    for (int d = 0; d < FERRY_DIMS_MAX; d++) {
        back.at[d] = d < middle.dims ? first->from.low.at[d] - first->to.low.at[d] : 0;
        ahead.at[d] = d < middle.dims ? second->to.low.at[d] - second->from.low.at[d] : 0;
    }
    return ferry_plan_copy(out, second->target, ferry_region_shift(middle, ahead), first->source,
                           ferry_region_shift(middle, back));
}

static bool all_simple(const ferry_plan *plan)
{
    ferry_plan_entry copy;
    for (size_t i = 0; i < plan->count; i++) {
        fy_plan_read(plan, i, &copy);
        if (!copy_is_simple(&copy))
            return false;
    }
    return true;
}

/* Composes `copy`, an entry of the second plan, with all entries of the first that write points
 * which it reads. */
static int join_all(const ferry_plan *first, const sorted_entry *sorted,
                    const ferry_plan_entry *copy, ferry_plan *out)
{
    ferry_plan_entry before;
    size_t low = 0, high = first->count;
    int error = 0;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (sorted[middle].target < copy->source)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < first->count && sorted[low].target == copy->source && error == 0; low++) {
        fy_plan_read(first, sorted[low].index, &before);
        error = plan_join(&before, copy, out);
    }
    return error;
}

int ferry_plan_compose(const ferry_plan *first, const ferry_plan *second, ferry_plan *out)
{
    const fy_given given[] = {{"first", first}, {"second", second}, {"out", out}};
    const int missing = fy_mover_given("plan_compose", given, 3);
    if (missing)
        return missing;
    if (!all_simple(first) || !all_simple(second))
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "plan_compose: the %s plan has an entry that is not one to one, with "
                             "axes in order and equal shapes",
                             all_simple(first) ? "second" : "first");
    sorted_entry *sorted =
        first->count > UINT32_MAX ? NULL : fy_malloc((first->count + 1) * sizeof *sorted);
    if (sorted == NULL)
        return fy_mover_no_memory(NULL, FERRY_ENOMEM, "plan_compose");
    for (size_t i = 0; i < first->count; i++)
        sorted[i] = (sorted_entry){.target = fy_plan_target(first, i), .index = (uint32_t)i};
    qsort(sorted, first->count, sizeof *sorted, by_target);
    const size_t count = second->count; /* `out` may be one of the two */
    int error = 0;
    for (size_t k = 0; k < count && error == 0; k++) {
        const ferry_plan_entry copy = ferry_plan_at(second, k);
        error = join_all(first, sorted, &copy, out);
    }
    free(sorted);
    return error;
}

static int by_pair(const void *a, const void *b)
{
    const ferry_plan_pair *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    return (x->target > y->target) - (x->target < y->target);
}

/* Merges neighbouring pairs of the same ranks. The pairs are sorted. */
static size_t merge_pairs(ferry_plan_pair *pairs, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && by_pair(&pairs[kept - 1], &pairs[i]) == 0) {
            pairs[kept - 1].copies += pairs[i].copies;
            pairs[kept - 1].points += pairs[i].points;
        } else {
            pairs[kept++] = pairs[i];
        }
    }
    return kept;
}

int ferry_plan_account(const ferry_plan *plan, const ferry_floorplan *source,
                       const ferry_floorplan *target, ferry_plan_stats *out)
{
    const fy_given given[] = {{"plan", plan}, {"source", source}, {"target", target}};
    const int missing = fy_mover_given("plan_account", given, 3);
    if (missing)
        return missing;
    ferry_plan_stats stats = {.copies = plan->count};
    ferry_plan_pair *pairs = fy_malloc((plan->count + 1) * sizeof *pairs);
    if (pairs == NULL)
        return fy_mover_no_memory(NULL, FERRY_ENOMEM, "plan_account");
    for (size_t i = 0; i < plan->count; i++) {
        const ferry_plan_entry copy = ferry_plan_at(plan, i);
        const ferry_block *from = ferry_floorplan_block(source, copy.source);
        const ferry_block *to = ferry_floorplan_block(target, copy.target);
        if (from == NULL || to == NULL) {
            free(pairs);
            return fy_mover_fail(
                NULL, FERRY_EINVAL, "plan_account: entry %zu: no %s block %" PRId32, i,
                from == NULL ? "source" : "target", from == NULL ? copy.source : copy.target);
        }
        ferry_plan_pair pair = {.source = from->owner,
                                .target = to->owner,
                                .copies = 1,
                                .points = ferry_plan_entry_points(&copy)};
        stats.points += pair.points;
        if (pair.source == pair.target) {
            stats.local_copies++;
            stats.local_points += pair.points;
        } else {
            pairs[stats.pair_count++] = pair;
        }
    }
    qsort(pairs, stats.pair_count, sizeof *pairs, by_pair);
    stats.pair_count = merge_pairs(pairs, stats.pair_count);
    stats.pairs = pairs;
    int error = fy_write_sized(NULL, "plan_account: ferry_plan_stats", out, &stats, sizeof stats);
    if (error != 0)
        free(pairs);
    return error;
}

int ferry_plan_print(const ferry_plan *plan, FILE *out)
{
    static const char *const names[] = {"", " sample", " refine", " coarsen"};
    const fy_given given[] = {{"plan", plan}, {"out", out}};
    const int missing = fy_mover_given("plan_print", given, 2);
    if (missing)
        return missing;
    for (size_t i = 0; i < plan->count; i++) {
        const ferry_plan_entry copy = ferry_plan_at(plan, i);
        char to[320], from[320];
        ferry_region_format(copy.to, to, sizeof to);
        ferry_region_format(copy.from, from, sizeof from);
        fprintf(out, "%zu: %" PRId32 " on %s <= %" PRId32 " on %s%s", i, copy.target, to,
                copy.source, from, names[copy.relation & 3]);
        for (int d = 0; d < copy.to.dims && copy.relation != FERRY_PLAIN; d++)
            fprintf(out, "%c%" PRId32, d ? ',' : ' ', copy.ratio[d]);
        bool permuted = false;
        for (int d = 0; d < copy.to.dims; d++)
            permuted |= copy.axis[d] != d;
        for (int d = 0; d < copy.to.dims && permuted; d++)
            fprintf(out, "%s%d", d ? "," : " axes ", copy.axis[d]);
        fputc('\n', out);
    }
    return ferror(out) ? fy_mover_fail(NULL, FERRY_ESYSTEM, "plan_print: cannot write") : 0;
}
