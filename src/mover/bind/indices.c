/* Movers over indices. The rank of a ghost knows both ends of each pair, so it asks the owner of
 * the original. The pairs travel once, at binding. A reduction tells each rank how many ranks will
 * ask it. After that both ends of a link have the same pairs, in the order asked, and the link is
 * as any other. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "mover/bind/link.h"

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

static int check_ghost(const ferry_mover *m, const ferry_ghost *ghost, size_t i, bool back)
{
    const ferry_grid *grid = back ? &m->plan.source_grid : &m->plan.target_grid;
    if (ghost->owner < 0 || ghost->owner >= ferry_ranks(m->f))
        return fy_fail(m->f, FERRY_EINVAL, "mover_bind_ghosts: ghost %zu is of rank %d of %d", i,
                       ghost->owner, ferry_ranks(m->f));
    if (!has_index(grid, ghost->local))
        return fy_fail(m->f, FERRY_EINVAL,
                       "mover_bind_ghosts: ghost %zu has index %lld, not %lld "
                       "to %lld",
                       i, (long long)ghost->local, (long long)grid->region.low.at[0],
                       (long long)grid->region.high.at[0]);
    return 0;
}

/* Makes a move over `count` pairs between two grids. A grid with 0 dimensions is a packed
 * buffer. */
static int list_move(ferry_mover *m, const fy_pair *pairs, size_t count, const ferry_grid *target,
                     const ferry_grid *source, fy_move *out)
{
    const ptrdiff_t element = (ptrdiff_t)m->plan.element_bytes;
    const fy_axis axis = {.count = count};
    *out = (fy_move){.kind = FY_MOVE_LIST, .unit = m->plan.element_bytes, .dims = 1};
    out->axis = fy_axes_keep(&m->bound.axes, &axis, 1);
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

static int init_packed(ferry_mover *m, fy_link_end *end, bool outward)
{
    const fy_direction *direction = outward ? &m->bound.out : &m->bound.in;
    end->moves = fy_calloc(1, sizeof *end->moves);
    if (end->moves == NULL)
        return FERRY_ENOMEM;
    const ferry_grid packed = {.data = end->buffer};
    const fy_pair *pairs = direction->pairs + end->first;
    end->move_count = 1;
    return list_move(m, pairs, end->count, outward ? &packed : &m->plan.target_grid,
                     outward ? &m->plan.source_grid : &packed, &end->moves[0]);
}

static int init_direct(ferry_mover *m, fy_link_end *end)
{
    const ferry_grid *grid = fy_link_offer(end, 0);
    end->move_count = 1;
    end->moves = fy_calloc(1, sizeof *end->moves);
    if (end->moves == NULL)
        return FERRY_ENOMEM;
    if (grid == NULL || grid->element_bytes != m->plan.element_bytes ||
        !fy_grid_is_known(m->f, grid))
        return FERRY_EINVAL;
    for (size_t i = end->first; i < end->first + end->count; i++)
        if (!has_index(grid, m->bound.in.pairs[i].source))
            return FERRY_EINVAL;
    return list_move(m, m->bound.in.pairs + end->first, end->count, &m->plan.target_grid, grid,
                     &end->moves[0]);
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
static int init_sequence(ferry_mover *m)
{
    m->bound.sequence = fy_calloc(m->bound.in.end_count + 2, sizeof *m->bound.sequence);
    if (m->bound.sequence == NULL)
        return FERRY_ENOMEM;
    if (m->bound.own_count > 0)
        m->bound.sequence[m->bound.sequence_count++] = (fy_mover_step){.move = m->bound.own_moves};
    for (int pass = 0, self = ferry_rank(m->f); pass < 2; pass++)
        for (size_t i = 0; i < m->bound.in.end_count; i++)
            if ((m->bound.in.ends[i].rank > self) == (pass == 1))
                m->bound.sequence[m->bound.sequence_count++] =
                    (fy_mover_step){.move = m->bound.in.ends[i].moves, .end = &m->bound.in.ends[i]};
    return 0;
}

/* The hash of an end: the number of its pairs. They are surely the same at both ends, since one
 * rank got them from the other. */
static uint64_t count_pairs(const ferry_mover *m, const fy_link_end *end, bool outward)
{
    (void)m;
    (void)outward;
    return end->count;
}

static const fy_mover_form indices = {.bytes = packed_bytes,
                                      .packed = init_packed,
                                      .direct = init_direct,
                                      .hash = count_pairs,
                                      .offers = list_offers,
                                      .sequence = init_sequence};

/* Sorts the ghosts into the near direction and the rank's own move. */
static int take_ghosts(ferry_mover *m, const ferry_ghosts *ghosts, fy_direction *near)
{
    int all = ferry_ranks(m->f), self = ferry_rank(m->f), error = 0;
    sorted_ghost *sorted = fy_malloc((ghosts->count + 1) * sizeof *sorted);
    fy_pair *own = fy_malloc((ghosts->count + 1) * sizeof *own);
    near->pairs = fy_malloc((ghosts->count + 1) * sizeof *near->pairs);
    near->ranks = fy_malloc((ghosts->count + 1) * sizeof *near->ranks);
    m->bound.own_moves = fy_calloc(1, sizeof *m->bound.own_moves);
    if (sorted == NULL || own == NULL || near->pairs == NULL || near->ranks == NULL ||
        m->bound.own_moves == NULL)
        error = FERRY_ENOMEM;
    for (size_t i = 0; i < ghosts->count && error == 0; i++) {
        error = check_ghost(m, &ghosts->items[i], i, ghosts->back);
        sorted[i] = (sorted_ghost){.order = (ghosts->items[i].owner - self + all) % all,
                                   .ghost = ghosts->items[i]};
    }
    if (error == 0)
        qsort(sorted, ghosts->count, sizeof *sorted, by_owner);
    const ferry_grid *originals = ghosts->back ? &m->plan.target_grid : &m->plan.source_grid;
    for (size_t i = 0; i < ghosts->count && error == 0; i++) {
        const ferry_ghost *g = &sorted[i].ghost;
        fy_pair pair = pair_of(g->local, g->remote, ghosts->back);
        if (g->owner == self) {
            own[m->bound.own_points++] = pair;
            if (!has_index(originals, g->remote))
                error = fy_fail(m->f, FERRY_EINVAL,
                                "mover_bind_ghosts: no original with index "
                                "%lld",
                                (long long)g->remote);
        } else {
            near->ranks[near->count] = g->owner;
            near->pairs[near->count++] = pair;
        }
    }
    if (error == 0 && m->bound.own_points > 0) {
        error = list_move(m, own, m->bound.own_points, &m->plan.target_grid, &m->plan.source_grid,
                          m->bound.own_moves);
        m->bound.own_count = error == 0;
    }
    free(sorted);
    free(own);
    return error ? error : fy_direction_init(near);
}

/* Sets `*count` to the number of ranks that will ask this one. Collective. */
static int count_asks(ferry_mover *m, const fy_direction *near, int error, int *count)
{
    int all = ferry_ranks(m->f);
    int64_t *asked = fy_calloc((size_t)all, sizeof *asked);
    /* First all ranks agree that each has the memory for the reduction, a word per rank. */
    error = fy_mover_agree(m->f, error != 0 ? error : asked == NULL ? FERRY_ENOMEM : 0);
    if (error == 0) {
        for (size_t i = 0; i < near->end_count; i++)
            asked[near->ends[i].rank] = 1;
        error = ferry_allreduce(m->f, FERRY_INT64, FERRY_SUM, asked, asked, (size_t)all);
        *count = error ? 0 : (int)asked[ferry_rank(m->f)];
    }
    free(asked);
    return error;
}

static int by_source(const void *a, const void *b)
{
    const fy_ask *const *x = a, *const *y = b;
    return ((*x)->rank > (*y)->rank) - ((*x)->rank < (*y)->rank);
}

/* Makes the far direction from the pairs that were asked. */
static int take_asks(ferry_mover *m, int count, bool back, fy_direction *far)
{
    const ferry_grid *originals = back ? &m->plan.target_grid : &m->plan.source_grid;
    const fy_ask **asks = fy_malloc(((size_t)count + 1) * sizeof *asks);
    size_t total = 0, found = 0;
    for (const fy_ask *ask = m->bound.asks; ask != NULL && asks != NULL && found < (size_t)count;
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
    int error = 0, all = ferry_ranks(m->f), self = ferry_rank(m->f);
    /* The ends are sorted from the rank after this one on, as in all directions. */
    for (int turn = 1; turn < all; turn++) {
        for (size_t a = 0; a < found; a++) {
            if (asks[a]->rank != (self + turn) % all)
                continue;
            for (size_t i = 0; i < asks[a]->count; i++) {
                const fy_pair pair = asks[a]->pairs[i];
                int64_t original = back ? pair.target : pair.source;
                if (!has_index(originals, original))
                    error = fy_fail(m->f, FERRY_EINVAL,
                                    "mover_bind_ghosts: rank %d asks for index %lld, which is not "
                                    "here",
                                    asks[a]->rank, (long long)original);
                far->ranks[far->count] = asks[a]->rank;
                far->pairs[far->count++] = pair;
            }
        }
    }
    free(asks);
    return error ? error : fy_direction_init(far);
}

/* Asks the owners, and waits until `count` ranks have asked this one. */
static int exchange(ferry_mover *m, const fy_direction *near, int count)
{
    int error = 0;
    for (size_t i = 0; i < near->end_count; i++) {
        const fy_link_end *end = &near->ends[i];
        int sent = fy_mover_send(m, end->rank, FY_MOVER_ASK, 0, 0, near->pairs + end->first,
                                 end->count * sizeof *near->pairs);
        error = error ? error : sent;
    }
    while (m->bound.ask_count < count && error == 0) {
        int waited = ferry_wait(m->f, FY_LOOK_NS);
        error = waited < 0 ? waited : fy_mover_any_dead(m->f) ? FERRY_EPEER : 0;
    }
    return error ? error : m->run.error;
}

static void sum_points(fy_direction *direction)
{
    direction->points = direction->count;
    for (size_t i = 0; i < direction->end_count; i++)
        direction->ends[i].points = direction->ends[i].count;
}

static int check_grids(const ferry_mover *m, const ferry_grid *source, const ferry_grid *target)
{
    if (source->region.dims != 1 || target->region.dims != 1)
        return fy_fail(m->f, FERRY_EINVAL,
                       "mover_bind_ghosts: grids of %d and %d dimensions, not "
                       "one",
                       source->region.dims, target->region.dims);
    if (source->element_bytes != target->element_bytes || target->element_bytes == 0)
        return fy_fail(m->f, FERRY_EINVAL,
                       "mover_bind_ghosts: elements of %zu bytes to %zu, not of one size above 0",
                       source->element_bytes, target->element_bytes);
    return 0;
}

int ferry_mover_bind_ghosts(ferry *f, const ferry_ghosts *ghosts, const ferry_grid *source,
                            const ferry_grid *target, const ferry_mover_options *options,
                            ferry_mover **out)
{
    if (fy_in_handler(f))
        return fy_fail(f, FERRY_ESTATE, "mover_bind_ghosts: not allowed inside a handler");
    ferry_mover *m;
    int count = 0, error = fy_mover_make(f, &indices, options, &m);
    if (error == 0)
        error = check_grids(m, source, target);
    if (error == 0) {
        m->plan.source_grid = *source;
        m->plan.target_grid = *target;
        m->plan.element_bytes = target->element_bytes;
        error = fy_combine_init(&m->plan.how, &m->plan.options.operation, m->plan.element_bytes);
        (void)fy_combine_init(&m->plan.copying, NULL, m->plan.element_bytes);
    }
    fy_direction *near = m == NULL ? NULL : ghosts->back ? &m->bound.out : &m->bound.in;
    fy_direction *far = m == NULL ? NULL : ghosts->back ? &m->bound.in : &m->bound.out;
    if (error == 0)
        error = take_ghosts(m, ghosts, near);
    error = m == NULL ? fy_mover_agree(f, error) : count_asks(m, near, error, &count);
    if (error == 0) {
        error = exchange(m, near, count);
        if (error == 0)
            error = take_asks(m, count, ghosts->back, far);
        if (error == 0)
            error = fy_mover_open(m);
        error = fy_mover_agree(f, error);
    }
    if (error == 0) {
        sum_points(&m->bound.in);
        sum_points(&m->bound.out);
    }
    return fy_mover_connect(f, options, m, error, out);
}
