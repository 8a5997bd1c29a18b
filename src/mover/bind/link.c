/* Links: the code that movers over regions and over indices share. Two ranks that share memory use
 * counters and grids, other ranks packed copies. bind.c describes the steps of binding. */
#include "mover/bind/link.h"

#include <stdlib.h>
#include <string.h>

#include <ferry/memory.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "mover/geometry/fail.h"

bool fy_grid_is_known(ferry *f, const ferry_grid *grid)
{
    fy_port *port = fy_port_of(f);
    return port->ops->heap.owner(port, FY_APP, ferry_grid_at(grid, grid->region.low), 1) >= 0 &&
           port->ops->heap.owner(port, FY_APP, ferry_grid_at(grid, grid->region.high),
                                 grid->element_bytes) >= 0;
}

/* Whether the other ranks of the node can read the grids of a link out. */
static bool are_known(const ferry_mover *m, const fy_link_end *end)
{
    fy_mover_offer *offers = fy_malloc((end->count + 1) * sizeof *offers);
    size_t count = offers != NULL ? m->plan.form->offers(&m->plan, &m->bound.out, end, offers) : 0;
    bool known = offers != NULL;
    for (size_t i = 0; i < count && known; i++)
        known = fy_grid_is_known(m->f, &offers[i].grid);
    free(offers);
    return known;
}

/* Whether this rank and `rank` have one shared heap. A port over several nodes knows the boards of
 * exactly these ranks. */
static bool shares_memory(ferry *f, int rank)
{
    fy_port *port = fy_port_of(f);
    fy_port_info info;
    port->ops->transport.query(port, &info);
    return info.shares_memory || (port->ops->heap.owner != NULL && port->ops->heap.board != NULL &&
                                  port->ops->heap.board(port, rank) != NULL);
}

/* Whether the copies of a link travel packed. Both of its ends get the same result. */
static bool travels_packed(const ferry_mover *m, const fy_link_end *end)
{
    return m->plan.options.messages || !shares_memory(m->f, end->rank);
}

static fy_link_mode mode_of(const ferry_mover *m, const fy_link_end *end)
{
    if (travels_packed(m, end))
        return FY_LINK_MESSAGES;
    return end->bytes > FY_STAGE_BYTES && are_known(m, end) ? FY_LINK_DIRECT : FY_LINK_STAGED;
}

const ferry_grid *fy_link_offer(const fy_link_end *end, int32_t block)
{
    size_t low = 0, high = end->offer_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (end->offers[middle].block < block)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end->offer_count && end->offers[low].block == block ? &end->offers[low].grid
                                                                     : NULL;
}

int fy_direction_init(fy_direction *direction)
{
    size_t ends = 0;
    for (size_t i = 0; i < direction->count; i++)
        ends += i == 0 || direction->ranks[i] != direction->ranks[i - 1];
    direction->ends = fy_calloc(ends + 1, sizeof *direction->ends);
    direction->left = fy_calloc(ends + 1, sizeof *direction->left);
    if (direction->ends == NULL || direction->left == NULL)
        return FERRY_ENOMEM;
    for (size_t i = 0; i < direction->count; i++) {
        if (i == 0 || direction->ranks[i] != direction->ranks[i - 1])
            direction->ends[direction->end_count++] =
                (fy_link_end){.rank = direction->ranks[i], .first = i};
        direction->ends[direction->end_count - 1].count++;
    }
    return 0;
}

/* Allocates the counters of all links out and the slots of staged ones, as one piece of the
 * heap. */
static int alloc_channels(ferry_mover *m)
{
    const size_t count = m->bound.out.end_count;
    size_t bytes = count * sizeof *m->bound.channels;
    for (size_t i = 0; i < count; i++) {
        fy_link_end *end = &m->bound.out.ends[i];
        const size_t line = _Alignof(fy_mover_channel);
        end->bytes = m->plan.form->bytes(&m->plan, &m->bound.out, end);
        end->slot_bytes = (end->bytes + line - 1) / line * line;
        end->mode = mode_of(m, end);
        if (end->mode == FY_LINK_STAGED)
            bytes += FY_SLOTS * end->slot_bytes;
    }
    fy_retired *retired = fy_malloc(sizeof *retired + count * sizeof *retired->ranks);
    void *channels;
    int error = retired == NULL ? FERRY_ENOMEM : ferry_alloc(m->f, bytes, &channels);
    if (error) {
        free(retired);
        return error;
    }
    m->bound.channels = memset(channels, 0, bytes);
    *retired = (fy_retired){
        .number = m->number, .round = m->round, .channels = m->bound.channels, .count = count};
    for (size_t i = 0; i < count; i++)
        retired->ranks[i] =
            m->bound.out.ends[i].mode == FY_LINK_MESSAGES ? -1 : m->bound.out.ends[i].rank;
    m->bound.retired = retired;
    return 0;
}

static int open_out(ferry_mover *m)
{
    if (m->bound.out.end_count == 0)
        return 0;
    int error = alloc_channels(m);
    if (error)
        return error;
    char *slots = (char *)(m->bound.channels + m->bound.out.end_count);
    for (size_t i = 0; i < m->bound.out.end_count && error == 0; i++) {
        fy_link_end *end = &m->bound.out.ends[i];
        end->hash = m->plan.form->hash(m, end, true);
        if (end->mode != FY_LINK_MESSAGES)
            end->channel = &m->bound.channels[i];
        if (end->mode == FY_LINK_DIRECT)
            continue;
        if (end->mode == FY_LINK_STAGED) {
            end->buffer = slots;
            slots += FY_SLOTS * end->slot_bytes;
        } else if ((end->buffer = fy_calloc(end->bytes, 1)) == NULL) {
            return FERRY_ENOMEM;
        }
        error = m->plan.form->packed(m, end, true);
    }
    return error;
}

/* Makes the buffers of the ends in. That comes before the handshakes: a source that is bound may
 * send while this rank still waits for others. */
static int open_in(ferry_mover *m)
{
    const size_t line = _Alignof(fy_mover_channel);
    for (size_t i = 0; i < m->bound.in.end_count; i++) {
        fy_link_end *end = &m->bound.in.ends[i];
        end->hash = m->plan.form->hash(m, end, false);
        end->bytes = m->plan.form->bytes(&m->plan, &m->bound.in, end);
        end->slot_bytes = (end->bytes + line - 1) / line * line;
        end->mode = travels_packed(m, end) ? FY_LINK_MESSAGES : FY_LINK_DIRECT;
        if (end->mode == FY_LINK_MESSAGES && (end->buffer = fy_calloc(end->bytes, 1)) == NULL)
            return FERRY_ENOMEM;
    }
    return 0;
}

int fy_mover_open(ferry_mover *m)
{
    int error = open_out(m);
    return error ? error : open_in(m);
}

bool fy_mover_any_dead(ferry *f)
{
    fy_port *port = fy_port_of(f);
    for (int rank = 0; rank < ferry_ranks(f); rank++)
        if (rank != ferry_rank(f) && port->ops->members.peer(port, rank) != FY_PEER_ALIVE)
            return true;
    return false;
}

/* Makes the moves of an end in. The handshake of its source has said which mode it has. */
static int connect_in(ferry_mover *m, fy_link_end *end)
{
    fy_port *port = fy_port_of(m->f);
    if (end->mode > FY_LINK_STAGED)
        return FERRY_EINVAL;
    if (end->mode != FY_LINK_MESSAGES &&
        port->ops->heap.owner(port, FY_APP, end->channel, sizeof *end->channel) < 0)
        return FERRY_EINVAL;
    if (end->mode == FY_LINK_DIRECT)
        return m->plan.form->direct(m, end);
    if (end->mode == FY_LINK_STAGED &&
        port->ops->heap.owner(port, FY_APP, end->buffer, FY_SLOTS * end->slot_bytes) < 0)
        return FERRY_EINVAL;
    return m->plan.form->packed(m, end, false);
}

static int connect(ferry_mover *m)
{
    int error = fy_mover_handshake(m);
    for (size_t i = 0; i < m->bound.in.end_count && error == 0; i++) {
        fy_link_end *end = &m->bound.in.ends[i];
        error = connect_in(m, end);
        if (error)
            error =
                fy_fail(m->f, error, "mover_bind: cannot open the link from rank %d: %s", end->rank,
                        error == FERRY_ENOMEM ? "no memory" : "it offers other grids");
        free(end->offers);
        end->offers = NULL;
    }
    if (error == 0 && m->plan.options.ordered)
        error = m->plan.form->sequence(m);
    return error;
}

int fy_mover_agree(ferry *f, int error)
{
    /* The largest error, and the rank that has it. */
    uint64_t worst = error == 0 ? 0 : (uint64_t)-error << 32 | (uint32_t)ferry_rank(f);
    int lost = ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, &worst, &worst, 1);
    int theirs = -(int)(worst >> 32);
    if (error || lost || theirs == 0)
        return error ? error : lost;
    return fy_fail(f, theirs == FERRY_EPEER ? theirs : FERRY_EINVAL,
                   "the call failed on rank %d: %s", (int)(uint32_t)worst, ferry_strerror(theirs));
}

int fy_mover_make(ferry *f, const fy_mover_form *form, const ferry_mover_options *options,
                  ferry_mover **out)
{
    ferry_mover *m = *out = fy_calloc(1, sizeof *m);
    if (m == NULL) {
        fy_movers_of(f)->next++;
        return fy_fail(f, FERRY_ENOMEM, "mover_bind: no memory");
    }
    m->f = f;
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

int fy_mover_connect(ferry *f, const ferry_mover_options *options, ferry_mover *m, int error,
                     ferry_mover **out)
{
    const uint32_t number = m != NULL ? m->number : fy_movers_of(f)->next - 1;
    const bool agrees = options != NULL && options->check;
    if (agrees)
        error = fy_mover_agree(f, error);
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

static void fini_direction(fy_direction *direction)
{
    for (size_t i = 0; i < direction->end_count; i++) {
        fy_link_end *end = &direction->ends[i];
        for (size_t k = 0; end->moves != NULL && k < end->move_count; k++)
            fy_move_fini(&end->moves[k]);
        free(end->moves);
        if (end->mode == FY_LINK_MESSAGES)
            free(end->buffer);
        free(end->offers);
    }
    free(direction->ends);
    free(direction->left);
    free(direction->pairs);
    *direction = (fy_direction){0};
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
    fini_direction(&m->bound.in);
    fini_direction(&m->bound.out);
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
    ferry *f = m->f;
    if (m->run.in_flight)
        return fy_fail(f, FERRY_ESTATE, "mover_free: the mover is in flight");
    if (fy_in_handler(f))
        return fy_fail(f, FERRY_ESTATE, "mover_free: not allowed inside a handler or callback");
    fy_movers_leave(m);
    fy_mover_destroy(m);
    return 0;
}
