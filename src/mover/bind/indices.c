/* Movers over indices. The rank of a ghost knows both ends of each pair, so it asks the owner of
 * the original. The pairs travel once, at binding. A reduction tells each rank how many ranks will
 * ask it. After that both ends of a link have the same pairs, in the order asked, and the link is
 * as any other. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "mover/bind/form.h"

/* A ghost, to be sorted. */
typedef struct sorted_ghost {
    int order; /* of the owner, counted from this rank */
    ferry_ghost ghost;
} sorted_ghost;

static int by_owner(const void *a, const void *b)
{
    const sorted_ghost *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    if (x->ghost.remote != y->ghost.remote)
        return x->ghost.remote < y->ghost.remote ? -1 : 1;
    return (x->ghost.local > y->ghost.local) - (x->ghost.local < y->ghost.local);
}

static bool has_index(const ferry_grid *grid, int64_t i)
{
    return i >= grid->region.low.at[0] && i <= grid->region.high.at[0];
}

/* A pair of a mover. `back`: the original is the target, the ghost the source. */
static fy_pair pair_of(int64_t ghost, int64_t original, bool back)
{
    return back ? (fy_pair){.target = original, .source = ghost}
                : (fy_pair){.target = ghost, .source = original};
}

static int check_ghost(const fy_planned *plan, const ferry_ghost *ghost, size_t i, bool back)
{
    const ferry_grid *grid = back ? &plan->source_grid : &plan->target_grid;
    if (ghost->owner < 0 || ghost->owner >= ferry_ranks(plan->f))
        return fy_fail(
            plan->f, FERRY_EINVAL,
            "mover_bind_ghosts: the owner of ghost %zu is %d, expected a rank from 0 to %d", i,
            ghost->owner, ferry_ranks(plan->f) - 1);
    if (!has_index(grid, ghost->local))
        return fy_fail(plan->f, FERRY_EINVAL,
                       "mover_bind_ghosts: ghost %zu has index %lld, expected %lld "
                       "to %lld",
                       i, (long long)ghost->local, (long long)grid->region.low.at[0],
                       (long long)grid->region.high.at[0]);
    return 0;
}

/* Makes a move over `count` pairs between two grids. A grid with 0 dimensions is a packed
 * buffer. */
static int list_move(const fy_planned *plan, fy_axes *axes, const fy_pair *pairs, size_t count,
                     const ferry_grid *target, const ferry_grid *source, fy_move *out)
{
    const ptrdiff_t element = (ptrdiff_t)plan->element_bytes;
    const fy_axis axis = {.count = count};
    *out = (fy_move){.kind = FY_MOVE_LIST, .unit = plan->element_bytes, .dims = 1};
    out->axis = fy_axes_keep(axes, &axis, 1);
    if (out->axis != NULL)
        out->table = fy_malloc((2 * count + 1) * sizeof *out->table);
    if (out->table == NULL)
        return FERRY_ENOMEM;
    out->target = target->data;
    out->source = source->data;
    for (size_t i = 0; i < count; i++) {
        bool packed_target = target->region.dims == 0, packed_source = source->region.dims == 0;
        int64_t t = pairs[i].target - target->region.low.at[0];
        int64_t s = pairs[i].source - source->region.low.at[0];
        out->table[2 * i] = packed_target ? (ptrdiff_t)i * element : t * target->stride[0];
        out->table[2 * i + 1] = packed_source ? (ptrdiff_t)i * element : s * source->stride[0];
    }
    return 0;
}

static size_t packed_bytes(const fy_planned *plan, const fy_direction *direction,
                           const fy_link_end *end)
{
    (void)direction;
    return end->count * plan->element_bytes;
}

static int init_packed(const fy_planned *plan, fy_bound *bound, fy_link_end *end, bool outward)
{
    const fy_direction *direction = outward ? &bound->out : &bound->in;
    end->moves = fy_calloc(1, sizeof *end->moves);
    if (end->moves == NULL)
        return FERRY_ENOMEM;
    const ferry_grid packed = {.data = end->buffer};
    const fy_pair *pairs = direction->pairs + end->first;
    end->move_count = 1;
    return list_move(plan, &bound->axes, pairs, end->count, outward ? &packed : &plan->target_grid,
                     outward ? &plan->source_grid : &packed, &end->moves[0]);
}

static int init_direct(const fy_planned *plan, fy_bound *bound, fy_link_end *end)
{
    const ferry_grid *grid = fy_link_offer(end, 0);
    end->move_count = 1;
    end->moves = fy_calloc(1, sizeof *end->moves);
    if (end->moves == NULL)
        return FERRY_ENOMEM;
    if (grid == NULL || grid->element_bytes != plan->element_bytes)
        return FERRY_EINVAL;
    for (size_t i = end->first; i < end->first + end->count; i++)
        if (!has_index(grid, bound->in.pairs[i].source))
            return FERRY_EINVAL;
    if (!fy_grid_is_known(plan->f, grid))
        return FERRY_ENOENT;
    return list_move(plan, &bound->axes, bound->in.pairs + end->first, end->count,
                     &plan->target_grid, grid, &end->moves[0]);
}

static size_t list_offers(const fy_planned *plan, const fy_direction *direction,
                          const fy_link_end *end, fy_mover_offer *out)
{
    (void)direction;
    (void)end;
    out[0] = (fy_mover_offer){.grid = plan->source_grid, .block = 0};
    return 1;
}

/* Makes the sequence: own pairs, then those of the other ranks by number. */
static int init_sequence(const fy_planned *plan, fy_bound *bound)
{
    bound->sequence = fy_calloc(bound->in.end_count + 2, sizeof *bound->sequence);
    if (bound->sequence == NULL)
        return FERRY_ENOMEM;
    if (bound->own_count > 0)
        bound->sequence[bound->sequence_count++] = (fy_mover_step){.move = bound->own_moves};
    for (int pass = 0, self = ferry_rank(plan->f); pass < 2; pass++)
        for (size_t i = 0; i < bound->in.end_count; i++)
            if ((bound->in.ends[i].rank > self) == (pass == 1))
                bound->sequence[bound->sequence_count++] =
                    (fy_mover_step){.move = bound->in.ends[i].moves, .end = &bound->in.ends[i]};
    return 0;
}

/* The hash of an end: the number of its pairs. They are surely the same at both ends, since one
 * rank got them from the other. */
static uint64_t count_pairs(const fy_planned *plan, const fy_bound *bound, const fy_link_end *end,
                            bool outward)
{
    (void)plan;
    (void)bound;
    (void)outward;
    return end->count;
}

const fy_mover_form fy_indices_form = {.bytes = packed_bytes,
                                       .packed = init_packed,
                                       .direct = init_direct,
                                       .hash = count_pairs,
                                       .offers = list_offers,
                                       .sequence = init_sequence};

static int init_ends(fy_direction *direction)
{
    int error = fy_direction_init(direction);
    direction->points = direction->count;
    for (size_t i = 0; i < direction->end_count; i++)
        direction->ends[i].points = direction->ends[i].count;
    return error;
}

int fy_ghosts_take(const fy_planned *plan, fy_bound *bound, const ferry_ghosts *ghosts,
                   fy_direction *near)
{
    int all = ferry_ranks(plan->f), self = ferry_rank(plan->f), error = 0;
    sorted_ghost *sorted = fy_malloc((ghosts->count + 1) * sizeof *sorted);
    fy_pair *own = fy_malloc((ghosts->count + 1) * sizeof *own);
    near->pairs = fy_malloc((ghosts->count + 1) * sizeof *near->pairs);
    near->ranks = fy_malloc((ghosts->count + 1) * sizeof *near->ranks);
    bound->own_moves = fy_calloc(1, sizeof *bound->own_moves);
    if (sorted == NULL || own == NULL || near->pairs == NULL || near->ranks == NULL ||
        bound->own_moves == NULL)
        error = FERRY_ENOMEM;
    for (size_t i = 0; i < ghosts->count && error == 0; i++) {
        error = check_ghost(plan, &ghosts->items[i], i, ghosts->back);
        sorted[i] = (sorted_ghost){.order = (ghosts->items[i].owner - self + all) % all,
                                   .ghost = ghosts->items[i]};
    }
    if (error == 0)
        qsort(sorted, ghosts->count, sizeof *sorted, by_owner);
    const ferry_grid *originals = ghosts->back ? &plan->target_grid : &plan->source_grid;
    for (size_t i = 0; i < ghosts->count && error == 0; i++) {
        const ferry_ghost *g = &sorted[i].ghost;
        fy_pair pair = pair_of(g->local, g->remote, ghosts->back);
        if (g->owner == self) {
            own[bound->own_points++] = pair;
            if (!has_index(originals, g->remote))
                error = fy_fail(plan->f, FERRY_EINVAL,
                                "mover_bind_ghosts: no original with index "
                                "%lld",
                                (long long)g->remote);
        } else {
            near->ranks[near->count] = g->owner;
            near->pairs[near->count++] = pair;
        }
    }
    if (error == 0 && bound->own_points > 0) {
        error = list_move(plan, &bound->axes, own, bound->own_points, &plan->target_grid,
                          &plan->source_grid, bound->own_moves);
        bound->own_count = error == 0;
    }
    free(sorted);
    free(own);
    return error ? error : init_ends(near);
}

static int by_source(const void *a, const void *b)
{
    const fy_ask *const *x = a, *const *y = b;
    return ((*x)->rank > (*y)->rank) - ((*x)->rank < (*y)->rank);
}

int fy_asks_take(const fy_planned *plan, const fy_bound *bound, int count, bool back,
                 fy_direction *far)
{
    const ferry_grid *originals = back ? &plan->target_grid : &plan->source_grid;
    const fy_ask **asks = fy_malloc(((size_t)count + 1) * sizeof *asks);
    size_t total = 0, found = 0;
    for (const fy_ask *ask = bound->asks; ask != NULL && asks != NULL && found < (size_t)count;
         ask = ask->next) {
        asks[found++] = ask;
        total += ask->count;
    }
    far->pairs = fy_malloc((total + 1) * sizeof *far->pairs);
    far->ranks = fy_malloc((total + 1) * sizeof *far->ranks);
    if (asks == NULL || far->pairs == NULL || far->ranks == NULL) {
        free(asks);
        return FERRY_ENOMEM;
    }
    qsort(asks, found, sizeof *asks, by_source);
    int error = 0, all = ferry_ranks(plan->f), self = ferry_rank(plan->f);
    /* The ends are sorted from the rank after this one on, as in all directions. */
    for (int turn = 1; turn < all; turn++) {
        for (size_t a = 0; a < found; a++) {
            if (asks[a]->rank != (self + turn) % all)
                continue;
            for (size_t i = 0; i < asks[a]->count; i++) {
                const fy_pair pair = asks[a]->pairs[i];
                int64_t original = back ? pair.target : pair.source;
                if (!has_index(originals, original))
                    error = fy_fail(plan->f, FERRY_EINVAL,
                                    "mover_bind_ghosts: rank %d asks for index %lld, which is not "
                                    "here",
                                    asks[a]->rank, (long long)original);
                far->ranks[far->count] = asks[a]->rank;
                far->pairs[far->count++] = pair;
            }
        }
    }
    free(asks);
    return error ? error : init_ends(far);
}

int fy_ghosts_check(const fy_planned *plan, const ferry_grid *source, const ferry_grid *target)
{
    if (source->region.dims != 1 || target->region.dims != 1)
        return fy_fail(plan->f, FERRY_EINVAL,
                       "mover_bind_ghosts: grids of %d and %d dimensions, expected "
                       "one",
                       source->region.dims, target->region.dims);
    if (source->element_bytes != target->element_bytes || target->element_bytes == 0)
        return fy_fail(
            plan->f, FERRY_EINVAL,
            "mover_bind_ghosts: source elements of %zu bytes and target elements of %zu, "
            "expected one size above 0",
            source->element_bytes, target->element_bytes);
    return 0;
}
