/* Binding: from a plan to a mover.
 *
 * Each rank sorts its copies by direction and neighbour, and makes all that others will see of it.
 * Then it shakes hands with its neighbours (handshake.c): the two ends of a link compare a hash of
 * its copies, and sources tell where grids and counters are. Nobody waits for ranks that it shares
 * no copy with. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mix.h"
#include "mover/bind/link.h"
#include "mover/plan/plan.h"

/* A copy on its way to its place. */
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

/* Copies within the rank come first, those in next and those out last, each by the other rank
 * counted from this one. -1: entry `i` of the plan concerns others alone. */
static int order_of(const ferry_mover *m, size_t i)
{
    const int all = ferry_ranks(m->f), self = ferry_rank(m->f);
    const int source = fy_block_owner(&m->source->blocks, fy_plan_source(m->plan, i));
    const int target = fy_block_owner(&m->target->blocks, fy_plan_target(m->plan, i));
    if (target == self)
        return (source - self + all) % all;
    return source == self ? all + (target - self + all) % all : -1;
}

/* Lists the entries of the plan that concern this rank, sorted, and the ranks at the other ends. */
static int sort_copies(ferry_mover *m)
{
    const int all = ferry_ranks(m->f), self = ferry_rank(m->f);
    const size_t most = m->plan->count + 1;
    sorted_copy *sorted = fy_malloc(most * sizeof *sorted);
    m->copies = fy_malloc(most * sizeof *m->copies);
    m->in.ranks = fy_malloc(most * sizeof *m->in.ranks);
    m->out.ranks = fy_malloc(most * sizeof *m->out.ranks);
    if (sorted == NULL || m->copies == NULL || m->in.ranks == NULL || m->out.ranks == NULL) {
        free(sorted);
        return FERRY_ENOMEM;
    }
    size_t count = 0;
    for (size_t i = 0; i < m->plan->count; i++) {
        const int order = order_of(m, i);
        if (order >= 0)
            sorted[count++] = (sorted_copy){.order = order, .index = (uint32_t)i, .plan = m->plan};
    }
    qsort(sorted, count, sizeof *sorted, by_order);
    for (size_t i = 0; i < count; i++) {
        const int order = sorted[i].order;
        fy_direction *direction = order < all ? &m->in : &m->out;
        m->copies[i] = sorted[i].index;
        if (order == 0)
            m->own_count++;
        else
            direction->ranks[direction->count++] = (order + self) % all;
    }
    m->in.copies = m->copies + m->own_count;
    m->out.copies = m->in.copies + m->in.count;
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

static uint64_t hash_end(const ferry_mover *m, const fy_link_end *end, bool outward)
{
    const fy_direction *direction = outward ? &m->out : &m->in;
    const int self = ferry_rank(m->f);
    uint64_t sum = 0;
    for (size_t i = end->first; i < end->first + end->count; i++) {
        const ferry_plan_entry copy = ferry_plan_at(m->plan, direction->copies[i]);
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

static size_t packed_bytes(const ferry_mover *m, const fy_link_end *end, bool outward)
{
    const fy_direction *direction = outward ? &m->out : &m->in;
    size_t bytes = 0;
    for (size_t i = end->first; i < end->first + end->count; i++) {
        const ferry_plan_entry copy = ferry_plan_at(m->plan, direction->copies[i]);
        bytes += piece_bytes(&copy, m->element_bytes);
    }
    return bytes;
}

/* The moves of a packed link: out of the grids at the source, into them at the target. */
static int init_packed(ferry_mover *m, fy_link_end *end, bool outward)
{
    const fy_direction *direction = outward ? &m->out : &m->in;
    const size_t element = m->source->element_bytes;
    end->move_count = end->count;
    end->moves = fy_calloc(end->count, sizeof *end->moves);
    if (end->moves == NULL)
        return FERRY_ENOMEM;
    char *at = end->buffer;
    for (size_t i = 0; i < end->count; i++) {
        const ferry_plan_entry copy = ferry_plan_at(m->plan, direction->copies[end->first + i]);
        ferry_region dense;
        ferry_plan_entry pack, unpack;
        fy_copy_split(&copy, &dense, &pack, &unpack);
        ferry_grid piece = ferry_grid_over(dense, element, at);
        int error = outward
                        ? fy_move_init(&end->moves[i], &m->axes, &pack, &piece,
                                       ferry_xarray_grid(m->source, copy.source), &m->copying)
                        : fy_move_init(&end->moves[i], &m->axes, &unpack,
                                       ferry_xarray_grid(m->target, copy.target), &piece, &m->how);
        if (error)
            return error;
        at += piece_bytes(&copy, element);
    }
    return 0;
}

static int init_direct(ferry_mover *m, fy_link_end *end)
{
    end->move_count = end->count;
    end->moves = fy_calloc(end->count, sizeof *end->moves);
    if (end->moves == NULL)
        return FERRY_ENOMEM;
    const ferry_grid *grid = NULL;
    int32_t block = -1;
    for (size_t i = 0; i < end->count; i++) {
        const ferry_plan_entry copy = ferry_plan_at(m->plan, m->in.copies[end->first + i]);
        if (grid == NULL || copy.source != block)
            grid = fy_link_offer(end, copy.source);
        block = copy.source;
        if (grid == NULL || grid->element_bytes != m->target->element_bytes ||
            !ferry_region_contains(grid->region, copy.from) || !fy_grid_is_known(m->f, grid))
            return FERRY_EINVAL;
        int error = fy_move_init(&end->moves[i], &m->axes, &copy,
                                 ferry_xarray_grid(m->target, copy.target), grid, &m->how);
        if (error)
            return error;
    }
    return 0;
}

/* A move and its copy, to be sorted. */
typedef struct step {
    const ferry_plan *plan;
    uint32_t index;
    fy_step step;
} step;

static int by_copy(const void *a, const void *b)
{
    const step *x = a, *y = b;
    return fy_plan_compare(x->plan, x->index, y->index);
}

static int init_sequence(ferry_mover *m)
{
    size_t count = 0;
    step *steps = fy_malloc((m->own_count + m->in.count + 1) * sizeof *steps);
    m->sequence = fy_calloc(m->own_count + m->in.count + 1, sizeof *m->sequence);
    if (steps == NULL || m->sequence == NULL) {
        free(steps);
        return FERRY_ENOMEM;
    }
    for (size_t i = 0; i < m->own_count; i++)
        steps[count++] =
            (step){.plan = m->plan, .index = m->copies[i], .step = {.move = &m->own_moves[i]}};
    for (size_t e = 0; e < m->in.end_count; e++)
        for (size_t i = 0; i < m->in.ends[e].count; i++)
            steps[count++] =
                (step){.plan = m->plan,
                       .index = m->in.copies[m->in.ends[e].first + i],
                       .step = {.move = &m->in.ends[e].moves[i], .end = &m->in.ends[e]}};
    qsort(steps, count, sizeof *steps, by_copy);
    for (size_t i = 0; i < count; i++)
        m->sequence[i] = steps[i].step;
    m->sequence_count = count;
    free(steps);
    return 0;
}

static int by_block(const void *a, const void *b)
{
    const fy_offer *x = a, *y = b;
    return (x->block > y->block) - (x->block < y->block);
}

/* The grids that a link out reads, each once. */
static size_t list_offers(const ferry_mover *m, const fy_link_end *end, fy_offer *out)
{
    size_t listed = 0, count = 0;
    for (size_t i = end->first; i < end->first + end->count; i++) {
        const int32_t block = fy_plan_source(m->plan, m->out.copies[i]);
        if (listed == 0 || out[listed - 1].block != block)
            out[listed++] = (fy_offer){.block = block};
    }
    qsort(out, listed, sizeof *out, by_block);
    for (size_t i = 0; i < listed; i++)
        if (count == 0 || out[count - 1].block != out[i].block)
            out[count++].block = out[i].block;
    for (size_t i = 0; i < count; i++)
        out[i].grid = *ferry_xarray_grid(m->source, (int32_t)out[i].block);
    return count;
}

static const fy_binding regions = {.bytes = packed_bytes,
                                   .packed = init_packed,
                                   .direct = init_direct,
                                   .hash = hash_end,
                                   .offers = list_offers,
                                   .sequence = init_sequence};

static int init_own(ferry_mover *m)
{
    m->own_moves = fy_calloc(m->own_count + 1, sizeof *m->own_moves);
    if (m->own_moves == NULL)
        return FERRY_ENOMEM;
    int error = 0;
    for (size_t i = 0; i < m->own_count && error == 0; i++) {
        const ferry_plan_entry copy = ferry_plan_at(m->plan, m->copies[i]);
        error = fy_move_init(&m->own_moves[i], &m->axes, &copy,
                             ferry_xarray_grid(m->target, copy.target),
                             ferry_xarray_grid(m->source, copy.source), &m->how);
    }
    /* Combining may depend on the order, and `ordered` goes by that of the copies. */
    if (error == 0 && m->how.row == NULL && !m->options.ordered)
        error = fy_moves_pair(m->own_moves, m->own_count);
    return error;
}

static int check(ferry_mover *m, const ferry_plan *plan)
{
    const bool disjoint = m->options.check && m->options.operation.reduction == FERRY_REPLACE;
    if (m->source->element_bytes != m->target->element_bytes)
        return fy_fail(m->f, FERRY_EINVAL, "mover_bind: elements of %zu bytes to %zu",
                       m->source->element_bytes, m->target->element_bytes);
    int error = fy_combine_init(&m->how, &m->options.operation, m->target->element_bytes);
    if (error)
        return fy_fail(m->f, error, "%s", ferry_error_message(NULL));
    (void)fy_combine_init(&m->copying, NULL, m->source->element_bytes);
    return ferry_plan_check(m->f, plan, &m->source->blocks, m->source->ghosts, &m->target->blocks,
                            m->target->ghosts, disjoint);
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

int fy_mover_analyse(ferry_mover *m, const ferry_plan *plan)
{
    int error = check(m, plan);
    if (error)
        return error;
    m->plan = plan;
    error = plan->count > UINT32_MAX ? FERRY_ENOMEM : 0;
    if (error == 0)
        error = sort_copies(m);
    if (error == 0)
        error = fy_direction_init(&m->in);
    if (error == 0)
        error = fy_direction_init(&m->out);
    if (error == 0)
        error = init_own(m);
    if (error == 0)
        error = fy_mover_open(m);
    if (error == 0)
        error =
            fy_copies_make(&m->kept, plan, m->copies, m->own_count + m->in.count + m->out.count);
    if (error)
        return fy_fail(m->f, error, "mover_bind: no memory for %zu copies", plan->count);
    m->own_points = points_of(plan, m->copies, m->own_count);
    sum_points(plan, &m->in);
    sum_points(plan, &m->out);
    return 0;
}

int ferry_mover_bind(ferry *f, const ferry_plan *plan, ferry_xarray *source, ferry_xarray *target,
                     const ferry_mover_options *options, ferry_mover **out)
{
    if (fy_in_handler(f))
        return fy_fail(f, FERRY_ESTATE, "mover_bind: not allowed inside a handler or callback");
    ferry_mover *m;
    int error = fy_mover_make(f, &regions, options, &m);
    if (error == 0) {
        m->source = source;
        m->target = target;
        m->element_bytes = target->element_bytes;
        error = fy_mover_analyse(m, plan);
    }
    return fy_mover_connect(f, options, m, error, out);
}
