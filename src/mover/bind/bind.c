/* Binding: makes a mover from a plan.
 *
 * Each rank sorts its copies by direction and neighbour, and makes the counters and buffers that
 * neighbours will use. Then it exchanges handshakes with its neighbours (handshake.c): the two ends
 * of a link compare a hash of its copies, and the source says where its grids and counters are. A
 * rank waits only for ranks with which it shares a copy. */
#include <stdlib.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "mover/bind/link.h"
#include "mover/geometry/fail.h"

bool fy_mover_any_dead(ferry *f)
{
    fy_port *port = fy_port_of(f);
    for (int place = 0; place < ferry_member_count(f); place++) {
        const int rank = ferry_member_rank(f, place);
        if (rank != ferry_rank(f) && port->ops->members.peer(port, rank) != FY_PEER_ALIVE)
            return true;
    }
    return false;
}

int fy_mover_agree_on(ferry *f, int error, uint64_t *number)
{
    /* The largest error, with the rank that has it, and the largest number. */
    uint64_t all[2] = {error == 0 ? 0 : (uint64_t)-error << 32 | (uint32_t)ferry_rank(f), *number};
    int lost = ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, all, all, 2);
    int theirs = -(int)(all[0] >> 32);
    if (lost == 0)
        *number = all[1];
    if (error || lost || theirs == 0)
        return error ? error : lost;
    return fy_fail(f, theirs, "the call failed on rank %d: %s", (int)(uint32_t)all[0],
                   ferry_strerror(theirs));
}

int fy_mover_agree(ferry *f, int error)
{
    uint64_t none = 0;
    return fy_mover_agree_on(f, error, &none);
}

/* As fy_mover_agree, while all ranks bind `m`, which may be NULL on some. The mover gets one number
 * on all. After a death they may have counted different numbers of movers before. */
static int agree_to_bind(ferry *f, ferry_mover *m, int error)
{
    uint64_t next = fy_movers_of(f)->next;
    int failed = fy_mover_agree_on(f, error, &next);
    int named = next == fy_movers_of(f)->next ? 0 : fy_movers_rename(f, m, (uint32_t)next);
    return failed ? failed : named;
}

void fy_mover_skip(ferry *f, int error)
{
    fy_handshakes_refuse(f, fy_movers_of(f)->next++, error);
}

static int connect(ferry_mover *m)
{
    int error = fy_mover_handshake(m);
    for (size_t i = 0; i < m->bound.in.end_count && error == 0; i++) {
        fy_link_end *end = &m->bound.in.ends[i];
        error = fy_link_connect(&m->plan, &m->bound, end);
        if (error == FERRY_ENOENT) {
            /* The source was bound, and has freed all. Its data never become ready. */
            m->bound.orphan = end;
            error = 0;
        }
        if (error)
            error =
                fy_fail(m->plan.f, error, "mover_bind: cannot open the link from rank %d: %s",
                        end->rank, error == FERRY_ENOMEM ? "no memory" : "it offers other grids");
        free(end->offers);
        end->offers = NULL;
    }
    if (error == 0 && m->plan.options.ordered)
        error = m->plan.form->sequence(&m->plan, &m->bound);
    return error;
}

/* Makes a mover without copies and gives it a number. On failure `*out` is a mover to be destroyed,
 * or NULL. */
static int mover_make(ferry *f, const fy_mover_form *form, const ferry_mover_options *options,
                      ferry_mover **out)
{
    ferry_mover *m = *out = fy_calloc(1, sizeof *m);
    if (m == NULL) {
        fy_movers_of(f)->next++;
        return fy_fail(f, FERRY_ENOMEM, "mover_bind: no memory");
    }
    m->plan.f = f;
    m->round = 1;
    m->plan.form = form;
    fy_list_init(&m->active);
    if (fy_movers_enter(m))
        return fy_fail(f, FERRY_ENOMEM, "mover_bind: no memory");
    return fy_mover_read(f, "mover_bind: ferry_mover_options", options, &m->plan.options,
                         sizeof m->plan.options);
}

/* Frees memory that only binding needs. */
static void forget_copies(ferry_mover *m)
{
    fy_direction *directions[] = {&m->bound.in, &m->bound.out};
    for (int way = 0; way < 2; way++) {
        free(directions[way]->ranks);
        directions[way]->ranks = NULL;
        directions[way]->copies = NULL;
    }
    free(m->plan.copies);
    m->plan.copies = NULL;
    m->plan.entries = NULL;
}

int fy_mover_link(ferry_mover *m)
{
    int error = connect(m);
    if (error) {
        m->run.error = error;
        fy_mover_tell_loss(m);
    } else {
        m->bound.stage = FY_STAGE_BOUND;
        forget_copies(m);
    }
    return error;
}

/* Connects the links, if `error` is 0. Then gives the mover; otherwise destroys `m`, which may be
 * NULL. With options.check all ranks return an error if one has one. */
static int bind_finish(ferry *f, const ferry_mover_options *options, ferry_mover *m, int error,
                       ferry_mover **out)
{
    const bool agrees = options != NULL && options->check;
    if (agrees)
        error = agree_to_bind(f, m, error);
    const uint32_t number = m != NULL ? m->number : fy_movers_of(f)->next - 1;
    if (error == 0) {
        error = fy_mover_link(m);
        if (agrees)
            error = fy_mover_agree(f, error);
    }
    if (error == 0) {
        *out = m;
        return 0;
    }
    if (m != NULL) {
        fy_movers_leave(m);
        fy_mover_destroy(m);
    }
    fy_handshakes_refuse(f, number, error);
    return error;
}

/* Frees the requests of other ranks. */
static void drop_asks(fy_bound *bound)
{
    for (fy_ask *ask = bound->asks, *next; ask != NULL; ask = next) {
        next = ask->next;
        free(ask);
    }
}

void fy_mover_unlink(ferry_mover *m)
{
    for (size_t i = 0; m->bound.own_moves != NULL && i < m->bound.own_count; i++)
        fy_move_fini(&m->bound.own_moves[i]);
    free(m->bound.own_moves);
    free(m->bound.sequence);
    forget_copies(m);
    fy_copies_fini(&m->plan.kept);
    fy_mover_disconnect(m);
    drop_asks(&m->bound);
    fy_direction_fini(&m->bound.in);
    fy_direction_fini(&m->bound.out);
    fy_axes_fini(&m->bound.axes);
    m->bound = (fy_bound){0};
    m->run.movements += m->run.epoch;
    m->run.epoch = 0;
}

void fy_mover_destroy(ferry_mover *m)
{
    fy_mover_unlink(m);
    free(m);
}

int ferry_mover_free(ferry_mover *m)
{
    if (m == NULL)
        return 0;
    ferry *f = m->plan.f;
    if (m->run.in_flight)
        return fy_fail(f, FERRY_ESTATE, "mover_free: the mover is in flight");
    if (fy_in_handler(f))
        return fy_fail(f, FERRY_ESTATE, "mover_free: not allowed inside a handler or callback");
    fy_movers_leave(m);
    fy_mover_destroy(m);
    return 0;
}

int ferry_mover_bind(ferry *f, const ferry_plan *plan, ferry_xarray *source, ferry_xarray *target,
                     const ferry_mover_options *options, ferry_mover **out)
{
    if (fy_in_handler(f))
        return fy_fail(f, FERRY_ESTATE, "mover_bind: not allowed inside a handler or callback");
    ferry_mover *m;
    const char *missing = plan == NULL     ? "plan"
                          : source == NULL ? "source"
                          : target == NULL ? "target"
                          : out == NULL    ? "out"
                                           : NULL;
    int error = mover_make(f, &fy_regions_form, options, &m);
    if (error == 0 && missing != NULL)
        error = fy_fail(f, FERRY_EINVAL, "mover_bind: %s is NULL", missing);
    if (error == 0) {
        m->plan.source = source;
        m->plan.target = target;
        m->plan.element_bytes = target->element_bytes;
        error = fy_mover_analyse(&m->plan, &m->bound, plan);
    }
    return bind_finish(f, options, m, error, out);
}

/* Sets `*count` to the number of ranks that will ask this one. Collective. */
static int count_asks(ferry_mover *m, const fy_direction *near, int error, int *count)
{
    int all = ferry_ranks(m->plan.f);
    int64_t *asked = fy_calloc((size_t)all, sizeof *asked);
    /* First all ranks agree that each has the memory for the reduction, a word per rank. */
    error = agree_to_bind(m->plan.f, m, error != 0 ? error : asked == NULL ? FERRY_ENOMEM : 0);
    if (error == 0) {
        for (size_t i = 0; i < near->end_count; i++)
            asked[near->ends[i].rank] = 1;
        error = ferry_allreduce(m->plan.f, FERRY_INT64, FERRY_SUM, asked, asked, (size_t)all);
        *count = error ? 0 : (int)asked[ferry_rank(m->plan.f)];
    }
    free(asked);
    return error;
}

/* Asks the owners, and waits until `count` ranks have asked this one. */
static int mover_exchange(ferry_mover *m, const fy_direction *near, int count)
{
    int error = 0;
    for (size_t i = 0; i < near->end_count; i++) {
        const fy_link_end *end = &near->ends[i];
        int sent = fy_mover_send(m, end->rank, FY_MOVER_ASK, 0, 0, near->pairs + end->first,
                                 end->count * sizeof *near->pairs);
        if (sent != 0) /* the other rank waits */
            (void)fy_mover_tell(m->plan.f, end->rank, FY_MOVER_LOST,
                                fy_mover_name(m->number, m->round), (uint64_t)(int64_t)sent);
        error = error ? error : sent;
    }
    while (m->bound.ask_count < count && error == 0 && m->run.error == 0) {
        int waited = ferry_wait(m->plan.f, FY_LOOK_NS);
        error = waited < 0 ? waited : fy_mover_any_dead(m->plan.f) ? FERRY_EPEER : 0;
    }
    return error ? error : m->run.error;
}

int ferry_mover_bind_ghosts(ferry *f, const ferry_ghosts *ghosts, const ferry_grid *source,
                            const ferry_grid *target, const ferry_mover_options *options,
                            ferry_mover **out)
{
    if (fy_in_handler(f))
        return fy_fail(f, FERRY_ESTATE, "mover_bind_ghosts: not allowed inside a handler");
    ferry_mover *m;
    int count = 0, error = mover_make(f, &fy_indices_form, options, &m);
    if (error == 0)
        error = fy_ghosts_check(&m->plan, source, target);
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
        error = fy_ghosts_take(&m->plan, &m->bound, ghosts, near);
    error = m == NULL ? agree_to_bind(f, m, error) : count_asks(m, near, error, &count);
    if (error == 0) {
        error = mover_exchange(m, near, count);
        if (error == 0)
            error = fy_asks_take(&m->plan, &m->bound, count, ghosts->back, far);
        if (error == 0)
            error = fy_mover_open(&m->plan, &m->bound);
        error = fy_mover_agree(f, error);
    }
    return bind_finish(f, options, m, error, out);
}
