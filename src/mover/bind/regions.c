/* Movers over regions: what a rank does to bind one without any other rank. It sorts its copies by
 * direction and neighbour, and makes the moves within the rank, the links and their moves. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mix.h"
#include "core/fail.h"
#include "mover/bind/form.h"
#include "mover/plan/plan.h"

/* A copy, to be sorted. */
typedef struct sorted_copy {
    int order;
    uint32_t index;
    const ferry_plan *plan;
} sorted_copy;

static int by_order(const void *a, const void *b)
{
    const sorted_copy *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return fy_plan_compare(x->plan, x->index, y->index);
}

/* The place of entry `i` of the plan in the order of copies: those within the rank, then those in,
 * then those out; each sorted by the other rank, counted from this one. -1: the entry does not
 * concern this rank. */
static int order_of(const fy_planned *plan, size_t i)
{
    const int all = ferry_ranks(plan->f), self = ferry_rank(plan->f);
    const int source = fy_block_owner(&plan->source->blocks, fy_plan_source(plan->entries, i));
    const int target = fy_block_owner(&plan->target->blocks, fy_plan_target(plan->entries, i));
    if (target == self)
        return (source - self + all) % all;
    return source == self ? all + (target - self + all) % all : -1;
}

/* Lists the entries of the plan that concern this rank, sorted, and the other rank of each. */
static int sort_copies(fy_planned *plan, fy_bound *bound)
{
    const int all = ferry_ranks(plan->f), self = ferry_rank(plan->f);
    const size_t most = plan->entries->count + 1;
    sorted_copy *sorted = fy_malloc(most * sizeof *sorted);
    plan->copies = fy_malloc(most * sizeof *plan->copies);
    bound->in.ranks = fy_malloc(most * sizeof *bound->in.ranks);
    bound->out.ranks = fy_malloc(most * sizeof *bound->out.ranks);
    if (sorted == NULL || plan->copies == NULL || bound->in.ranks == NULL ||
        bound->out.ranks == NULL) {
        free(sorted);
        return FERRY_ENOMEM;
    }
    size_t count = 0;
    for (size_t i = 0; i < plan->entries->count; i++) {
        const int order = order_of(plan, i);
        if (order >= 0)
            sorted[count++] =
                (sorted_copy){.order = order, .index = (uint32_t)i, .plan = plan->entries};
    }
    qsort(sorted, count, sizeof *sorted, by_order);
    for (size_t i = 0; i < count; i++) {
        const int order = sorted[i].order;
        fy_direction *direction = order < all ? &bound->in : &bound->out;
        plan->copies[i] = sorted[i].index;
        if (order == 0)
            bound->own_count++;
        else
            direction->ranks[direction->count++] = (order + self) % all;
    }
    bound->in.copies = plan->copies + bound->own_count;
    bound->out.copies = bound->in.copies + bound->in.count;
    free(sorted);
    return 0;
}

static uint64_t hash_copy(const ferry_plan_entry *c, int source, int target)
{
    uint64_t hash = fy_mix(fy_mix((uint64_t)source, (uint64_t)target), c->relation);
    hash = fy_mix(fy_mix(hash, (uint64_t)c->source), (uint64_t)c->target);
    for (int d = 0; d < c->to.dims; d++) {
        hash = fy_mix(fy_mix(hash, (uint64_t)c->to.low.at[d]), (uint64_t)c->to.high.at[d]);
        hash = fy_mix(fy_mix(hash, (uint64_t)c->axis[d]), (uint64_t)c->ratio[d]);
    }
    for (int d = 0; d < c->from.dims; d++)
        hash = fy_mix(fy_mix(hash, (uint64_t)c->from.low.at[d]), (uint64_t)c->from.high.at[d]);
    return hash;
}

static uint64_t hash_end(const fy_planned *plan, const fy_bound *bound, const fy_link_end *end,
                         bool outward)
{
    const fy_direction *direction = outward ? &bound->out : &bound->in;
    const int self = ferry_rank(plan->f);
    uint64_t sum = 0;
    for (size_t i = end->first; i < end->first + end->count; i++) {
        const ferry_plan_entry copy = ferry_plan_at(plan->entries, direction->copies[i]);
        sum += hash_copy(&copy, outward ? self : end->rank, outward ? end->rank : self);
    }
    return sum;
}

enum { PIECE_ALIGNMENT = 16 };

/* Bytes that the dense form of a copy (fy_copy_split) takes in a buffer. */
static size_t piece_bytes(const ferry_plan_entry *copy, size_t element_bytes)
{
    const ferry_region dense = copy->relation == FERRY_SAMPLE ? copy->to : copy->from;
    size_t bytes = (size_t)ferry_region_size(dense) * element_bytes;
    return (bytes + PIECE_ALIGNMENT - 1) / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
}

static size_t packed_bytes(const fy_planned *plan, const fy_direction *direction,
                           const fy_link_end *end)
{
    size_t bytes = 0;
    for (size_t i = end->first; i < end->first + end->count; i++) {
        const ferry_plan_entry copy = ferry_plan_at(plan->entries, direction->copies[i]);
        bytes += piece_bytes(&copy, plan->element_bytes);
    }
    return bytes;
}

/* Makes the moves of a packed link. `outward`: from the grids to the buffer; else back. */
static int init_packed(const fy_planned *plan, fy_bound *bound, fy_link_end *end, bool outward)
{
    const fy_direction *direction = outward ? &bound->out : &bound->in;
    const size_t element = plan->source->element_bytes;
    end->move_count = end->count;
    end->moves = fy_calloc(end->count, sizeof *end->moves);
    if (end->moves == NULL)
        return FERRY_ENOMEM;
    char *at = end->buffer;
    for (size_t i = 0; i < end->count; i++) {
        const ferry_plan_entry copy =
            ferry_plan_at(plan->entries, direction->copies[end->first + i]);
        ferry_region dense;
        ferry_plan_entry pack, unpack;
        fy_copy_split(&copy, &dense, &pack, &unpack);
        ferry_grid piece = ferry_grid_over(dense, element, at);
        int error =
            outward
                ? fy_move_init(&end->moves[i], &bound->axes, &pack, &piece,
                               ferry_xarray_grid(plan->source, copy.source), &plan->copying)
                : fy_move_init(&end->moves[i], &bound->axes, &unpack,
                               ferry_xarray_grid(plan->target, copy.target), &piece, &plan->how);
        if (error)
            return error;
        at += piece_bytes(&copy, element);
    }
    return 0;
}

static int init_direct(const fy_planned *plan, fy_bound *bound, fy_link_end *end)
{
    end->move_count = end->count;
    end->moves = fy_calloc(end->count, sizeof *end->moves);
    if (end->moves == NULL)
        return FERRY_ENOMEM;
    const ferry_grid *grid = NULL;
    int32_t block = -1;
    for (size_t i = 0; i < end->count; i++) {
        const ferry_plan_entry copy =
            ferry_plan_at(plan->entries, bound->in.copies[end->first + i]);
        if (grid == NULL || copy.source != block)
            grid = fy_link_offer(end, copy.source);
        block = copy.source;
        if (grid == NULL || grid->element_bytes != plan->target->element_bytes ||
            !ferry_region_contains(grid->region, copy.from))
            return FERRY_EINVAL;
        if (!fy_grid_is_known(plan->f, grid))
            return FERRY_ENOENT;
        int error = fy_move_init(&end->moves[i], &bound->axes, &copy,
                                 ferry_xarray_grid(plan->target, copy.target), grid, &plan->how);
        if (error)
            return error;
    }
    return 0;
}

/* A move and its copy, to be sorted. */
typedef struct step {
    const ferry_plan *plan;
    uint32_t index;
    fy_mover_step step;
} step;

static int by_copy(const void *a, const void *b)
{
    const step *x = a, *y = b;
    return fy_plan_compare(x->plan, x->index, y->index);
}

static int init_sequence(const fy_planned *plan, fy_bound *bound)
{
    size_t count = 0;
    step *steps = fy_malloc((bound->own_count + bound->in.count + 1) * sizeof *steps);
    bound->sequence = fy_calloc(bound->own_count + bound->in.count + 1, sizeof *bound->sequence);
    if (steps == NULL || bound->sequence == NULL) {
        free(steps);
        return FERRY_ENOMEM;
    }
    for (size_t i = 0; i < bound->own_count; i++)
        steps[count++] = (step){.plan = plan->entries,
                                .index = plan->copies[i],
                                .step = {.move = &bound->own_moves[i]}};
    for (size_t e = 0; e < bound->in.end_count; e++)
        for (size_t i = 0; i < bound->in.ends[e].count; i++)
            steps[count++] =
                (step){.plan = plan->entries,
                       .index = bound->in.copies[bound->in.ends[e].first + i],
                       .step = {.move = &bound->in.ends[e].moves[i], .end = &bound->in.ends[e]}};
    qsort(steps, count, sizeof *steps, by_copy);
    for (size_t i = 0; i < count; i++)
        bound->sequence[i] = steps[i].step;
    bound->sequence_count = count;
    free(steps);
    return 0;
}

static int by_block(const void *a, const void *b)
{
    const fy_mover_offer *x = a, *y = b;
    return (x->block > y->block) - (x->block < y->block);
}

/* Lists the grids that a link out reads, each once. */
static size_t list_offers(const fy_planned *plan, const fy_direction *direction,
                          const fy_link_end *end, fy_mover_offer *out)
{
    size_t listed = 0, count = 0;
    for (size_t i = end->first; i < end->first + end->count; i++) {
        const int32_t block = fy_plan_source(plan->entries, direction->copies[i]);
        if (listed == 0 || out[listed - 1].block != block)
            out[listed++] = (fy_mover_offer){.block = block};
    }
    qsort(out, listed, sizeof *out, by_block);
    for (size_t i = 0; i < listed; i++)
        if (count == 0 || out[count - 1].block != out[i].block)
            out[count++].block = out[i].block;
    for (size_t i = 0; i < count; i++)
        out[i].grid = *ferry_xarray_grid(plan->source, (int32_t)out[i].block);
    return count;
}

const fy_mover_form fy_regions_form = {.bytes = packed_bytes,
                                       .packed = init_packed,
                                       .direct = init_direct,
                                       .hash = hash_end,
                                       .offers = list_offers,
                                       .sequence = init_sequence};

static int init_own(const fy_planned *plan, fy_bound *bound)
{
    bound->own_moves = fy_calloc(bound->own_count + 1, sizeof *bound->own_moves);
    if (bound->own_moves == NULL)
        return FERRY_ENOMEM;
    int error = 0;
    for (size_t i = 0; i < bound->own_count && error == 0; i++) {
        const ferry_plan_entry copy = ferry_plan_at(plan->entries, plan->copies[i]);
        error = fy_move_init(&bound->own_moves[i], &bound->axes, &copy,
                             ferry_xarray_grid(plan->target, copy.target),
                             ferry_xarray_grid(plan->source, copy.source), &plan->how);
    }
    /* Pairing changes the order of moves. The result of combining may depend on it, and an ordered
     * mover must keep it. */
    if (error == 0 && plan->how.row == NULL && !plan->options.ordered)
        error = fy_moves_pair(bound->own_moves, bound->own_count);
    return error;
}

static int regions_check(fy_planned *plan, const ferry_plan *entries)
{
    const bool disjoint = plan->options.check && plan->options.operation.reduction == FERRY_REPLACE;
    if (plan->source->element_bytes != plan->target->element_bytes)
        return fy_fail(
            plan->f, FERRY_EINVAL,
            "mover_bind: elements of %zu bytes go to elements of %zu; expected equal sizes",
            plan->source->element_bytes, plan->target->element_bytes);
    int error = fy_combine_init(&plan->how, &plan->options.operation, plan->target->element_bytes);
    if (error)
        return fy_fail(plan->f, error, "%s", ferry_error_message(NULL));
    (void)fy_combine_init(&plan->copying, NULL, plan->source->element_bytes);
    return ferry_plan_check(plan->f, entries, &plan->source->blocks, plan->source->ghosts,
                            &plan->target->blocks, plan->target->ghosts, disjoint);
}

static uint64_t points_of(const ferry_plan *plan, const uint32_t *copies, size_t count)
{
    uint64_t points = 0;
    for (size_t i = 0; i < count; i++) {
        const ferry_plan_entry copy = ferry_plan_at(plan, copies[i]);
        points += ferry_plan_entry_points(&copy);
    }
    return points;
}

static void sum_points(const ferry_plan *plan, fy_direction *direction)
{
    for (size_t i = 0; i < direction->end_count; i++) {
        fy_link_end *end = &direction->ends[i];
        end->points = points_of(plan, direction->copies + end->first, end->count);
        direction->points += end->points;
    }
}

int fy_mover_analyse(fy_planned *plan, fy_bound *bound, const ferry_plan *entries)
{
    int error = regions_check(plan, entries);
    if (error)
        return error;
    plan->entries = entries;
    error = entries->count > UINT32_MAX ? FERRY_ENOMEM : 0;
    if (error == 0)
        error = sort_copies(plan, bound);
    if (error == 0)
        error = fy_direction_init(&bound->in);
    if (error == 0)
        error = fy_direction_init(&bound->out);
    if (error == 0)
        error = init_own(plan, bound);
    if (error == 0)
        error = fy_mover_open(plan, bound);
    if (error == 0)
        error = fy_copies_make(&plan->kept, entries, plan->copies,
                               bound->own_count + bound->in.count + bound->out.count);
    if (error)
        return fy_fail(plan->f, error, "mover_bind: no memory for %zu copies", entries->count);
    bound->own_points = points_of(entries, plan->copies, bound->own_count);
    sum_points(entries, &bound->in);
    sum_points(entries, &bound->out);
    return 0;
}
