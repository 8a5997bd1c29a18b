/* Following: movers stay valid when the blocks of their xarrays change owners.
 *
 * A rank knows the copies from and to its blocks. When a block leaves, the old owner sends the new
 * one the copies of this block that it cannot know yet. Both forget copies that are no longer from
 * or to their blocks. So no plan is made again, and a copy between two blocks that stay is not
 * sent.
 *
 * One of the two old owners of a copy sends it to the new owner: that of the source, if the source
 * moves there, else that of the target. The floor plans tell each rank from which ranks it will
 * receive. Then all links are opened again, because neighbours and grids have changed. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "mover/bind/link.h"
#include "mover/geometry/fail.h"
#include "mover/plan/plan.h"

/* A mover that follows `arrays`. */
typedef struct following {
    ferry_mover *m;
    fy_arrays arrays;
    const fy_outcome *outcome;
    ferry_plan known; /* the copies of this rank: before the change, then after it */
    size_t before;
} following;

/* A copy that is sent, and its two blocks with their present owners. */
typedef struct told_copy {
    ferry_plan_entry copy;
    ferry_block source, target;
} told_copy;

static int old_owner(const following *w, const ferry_xarray *of, int32_t block)
{
    const ferry_floorplan *blocks = &of->blocks;
    for (size_t i = 0; i < w->arrays.count; i++)
        if (w->arrays.items[i] == of)
            blocks = &w->outcome->old[i];
    return fy_block_owner(blocks, block);
}

/* Whether this rank has to send copy `index` to `rank`. */
static bool tells(const following *w, size_t index, int rank)
{
    const ferry_mover *m = w->m;
    const int32_t source_block = fy_plan_source(&w->known, index);
    const int32_t target_block = fy_plan_target(&w->known, index);
    const bool reads = fy_block_owner(&m->plan.source->blocks, source_block) == rank;
    if (!reads && fy_block_owner(&m->plan.target->blocks, target_block) != rank)
        return false;
    const int source = old_owner(w, m->plan.source, source_block);
    const int target = old_owner(w, m->plan.target, target_block);
    return source != rank && target != rank && (reads ? source : target) == ferry_rank(m->plan.f);
}

static bool touches(void *arg, const ferry_plan_entry *copy)
{
    const ferry_mover *m = arg;
    const int self = ferry_rank(m->plan.f);
    return fy_block_owner(&m->plan.source->blocks, copy->source) == self ||
           fy_block_owner(&m->plan.target->blocks, copy->target) == self;
}

static int list_known(following *w)
{
    fy_copies_walk walk = {.list = &w->m->plan.kept};
    int error = 0;
    while (error == 0 && fy_copies_next(&walk))
        error = ferry_plan_add(&w->known, &walk.copy);
    w->before = w->known.count;
    return error;
}

static int follow_tell(following *w, int rank)
{
    const ferry_mover *m = w->m;
    size_t count = 0;
    for (size_t i = 0; i < w->before; i++)
        count += tells(w, i, rank);
    told_copy *told = fy_malloc((count + 1) * sizeof *told);
    int error = told == NULL ? FERRY_ENOMEM : 0;
    count = 0;
    for (size_t i = 0; i < w->before && error == 0; i++) {
        if (!tells(w, i, rank))
            continue;
        told_copy *t = &told[count++];
        fy_plan_read(&w->known, i, &t->copy);
        t->source = *ferry_floorplan_block(&m->plan.source->blocks, t->copy.source);
        t->target = *ferry_floorplan_block(&m->plan.target->blocks, t->copy.target);
    }
    if (error == 0)
        error = fy_mover_send(w->m, rank, FY_MOVER_ASK, 0, 0, told, count * sizeof *told);
    free(told);
    return error;
}

/* Marks the ranks to which blocks of this one go; with `inward` those from which blocks come.
 * Returns how many. */
static int partners(const following *w, bool inward)
{
    const fy_changes *changes = w->outcome->changes;
    bool *marks = w->outcome->marks;
    int self = ferry_rank(w->m->plan.f), count = 0;
    memset(marks, 0, (size_t)ferry_ranks(w->m->plan.f) * sizeof *marks);
    for (size_t i = 0; i < changes->count; i++) {
        const fy_owner_change *c = &changes->items[i];
        int other = inward ? c->from : c->to;
        if ((inward ? c->to : c->from) != self || marks[other])
            continue;
        marks[other] = true;
        count++;
    }
    return count;
}

/* Notes a block that a received copy names. Data of another rank may be wrong: a number that is not
 * a block of `x` is refused. */
static int learn_block(const ferry_mover *m, const ferry_xarray *x, int32_t number,
                       const ferry_block *block, fy_changes *known)
{
    if (number < 0 || (size_t)number >= x->blocks.total || block->owner < 0 ||
        block->owner >= ferry_ranks(m->plan.f) || !fy_box_is_sound(&block->region, x->blocks.dims))
        return FERRY_EINVAL;
    return fy_changes_add(known, number, block, 0);
}

/* Notes the blocks of `x` that received copies name. */
static int learn(const ferry_mover *m, ferry_xarray *x)
{
    fy_changes known = {0};
    int error = 0;
    for (const fy_ask *ask = m->bound.asks; ask != NULL && x->blocks.numbers != NULL;
         ask = ask->next) {
        const told_copy *told = (const told_copy *)(const void *)ask->pairs;
        for (size_t i = 0; i < ask->size_bytes / sizeof *told && error == 0; i++) {
            if (m->plan.source == x)
                error = learn_block(m, x, told[i].copy.source, &told[i].source, &known);
            if (m->plan.target == x && error == 0)
                error = learn_block(m, x, told[i].copy.target, &told[i].target, &known);
        }
    }
    if (error == 0 && known.count > 0)
        error = fy_floorplan_learn(&x->blocks, &known);
    free(known.items);
    return error;
}

static int hear(following *w, int expected)
{
    ferry_mover *m = w->m;
    while (m->bound.ask_count < expected && m->run.error == 0) {
        (void)ferry_wait(m->plan.f, FY_LOOK_NS);
        if (m->bound.ask_count < expected && fy_mover_any_dead(m->plan.f))
            return FERRY_EPEER;
    }
    int error = m->run.error;
    for (const fy_ask *ask = m->bound.asks; ask != NULL && error == 0; ask = ask->next) {
        const told_copy *told = (const told_copy *)(const void *)ask->pairs;
        for (size_t i = 0; i < ask->size_bytes / sizeof *told && error == 0; i++)
            error = ferry_plan_add(&w->known, &told[i].copy);
    }
    if (error == 0)
        error = learn(m, m->plan.source);
    if (error == 0 && m->plan.target != m->plan.source)
        error = learn(m, m->plan.target);
    return error;
}

/* Sends and receives copies. Then `known` has the copies of this rank from now on. After an error
 * the other ranks get that in place of copies. */
static int follow_exchange(following *w)
{
    ferry_mover *m = w->m;
    const bool *marks = w->outcome->marks;
    int error = m->run.error != 0 ? m->run.error : list_known(w);
    (void)partners(w, false);
    for (int rank = 0; rank < ferry_ranks(m->plan.f); rank++) {
        if (marks[rank] && error == 0)
            error = follow_tell(w, rank);
        if (marks[rank] && error != 0)
            (void)fy_mover_tell(m->plan.f, rank, FY_MOVER_LOST, fy_mover_name(m->number, m->round),
                                (uint64_t)(int64_t)error);
    }
    const int expected = partners(w, true);
    if (error == 0)
        error = hear(w, expected);
    ferry_plan_filter(&w->known, touches, m);
    return error;
}

static void follow(ferry_mover *m, fy_arrays arrays, const fy_outcome *outcome)
{
    following w = {.m = m, .arrays = arrays, .outcome = outcome};
    int error = follow_exchange(&w);
    fy_mover_unlink(m);
    m->round++;
    if (error == 0)
        error = fy_mover_analyse(&m->plan, &m->bound, &w.known);
    if (error == 0)
        error = fy_mover_link(m);
    m->plan.entries = NULL;
    ferry_plan_fini(&w.known);
    if (error) {
        m->run.error = error;
        fy_handshakes_refuse(m->plan.f, m->number, error);
    }
}

void fy_mover_follow(ferry *f, fy_arrays arrays, const fy_outcome *outcome)
{
    for (ferry_mover *m = NULL; (m = fy_movers_next(f, arrays, m)) != NULL;)
        follow(m, arrays, outcome);
    /* No rank goes on before all have followed. If a rank dies, its movers are lost already. */
    (void)fy_mover_agree(f, 0);
}

void fy_mover_give_up(ferry *f, fy_arrays arrays, bool gives_up)
{
    for (ferry_mover *m = NULL; (m = fy_movers_next(f, arrays, m)) != NULL;) {
        m->given_up = gives_up;
        if (gives_up)
            fy_handshakes_refuse(f, m->number, FERRY_EPEER);
    }
}

bool fy_mover_any_in_flight(ferry *f, fy_arrays arrays)
{
    const fy_movers *movers = fy_movers_of(f);
    for (const fy_link *link = movers->active.next; link != &movers->active; link = link->next) {
        const ferry_mover *m = (const ferry_mover *)(const void *)link;
        if (fy_arrays_have(arrays, m->plan.source) || fy_arrays_have(arrays, m->plan.target))
            return true;
    }
    return false;
}
