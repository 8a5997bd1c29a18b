/* Links: the code that movers over regions and over indices share. Two ranks that share memory use
 * counters and grids, other ranks packed copies. bind.c describes the steps of binding. */
#include "mover/bind/form.h"

#include <stdlib.h>
#include <string.h>

#include <ferry/memory.h>

#include "base/alloc.h"
#include "core/head.h"
#include "port/port.h"

bool fy_grid_is_known(ferry *f, const ferry_grid *grid)
{
    fy_port *port = fy_port_of(f);
    return port->ops->heap.owner(port, FY_APP, ferry_grid_at(grid, grid->region.low), 1) >= 0 &&
           port->ops->heap.owner(port, FY_APP, ferry_grid_at(grid, grid->region.high),
                                 grid->element_bytes) >= 0;
}

/* Whether the other ranks of the node can read the grids of a link out. */
static bool are_known(const fy_planned *plan, const fy_direction *out, const fy_link_end *end)
{
    fy_mover_offer *offers = fy_malloc((end->count + 1) * sizeof *offers);
    size_t count = offers != NULL ? plan->form->offers(plan, out, end, offers) : 0;
    bool known = offers != NULL;
    for (size_t i = 0; i < count && known; i++)
        known = fy_grid_is_known(plan->f, &offers[i].grid);
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
static bool travels_packed(const fy_planned *plan, const fy_link_end *end)
{
    return plan->options.messages || !shares_memory(plan->f, end->rank);
}

static fy_link_mode mode_of(const fy_planned *plan, const fy_direction *out, const fy_link_end *end)
{
    if (travels_packed(plan, end))
        return FY_LINK_MESSAGES;
    return end->bytes > FY_STAGE_BYTES && are_known(plan, out, end) ? FY_LINK_DIRECT
                                                                    : FY_LINK_STAGED;
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
static int alloc_channels(const fy_planned *plan, fy_bound *bound)
{
    const size_t count = bound->out.end_count;
    size_t bytes = count * sizeof *bound->channels;
    for (size_t i = 0; i < count; i++) {
        fy_link_end *end = &bound->out.ends[i];
        const size_t line = _Alignof(fy_mover_channel);
        end->bytes = plan->form->bytes(plan, &bound->out, end);
        end->slot_bytes = (end->bytes + line - 1) / line * line;
        end->mode = mode_of(plan, &bound->out, end);
        if (end->mode == FY_LINK_STAGED)
            bytes += FY_SLOTS * end->slot_bytes;
    }
    fy_retired *retired = fy_malloc(sizeof *retired + count * sizeof *retired->ranks);
    void *channels;
    int error = retired == NULL ? FERRY_ENOMEM : ferry_alloc(plan->f, bytes, &channels);
    if (error) {
        free(retired);
        return error;
    }
    bound->channels = memset(channels, 0, bytes);
    *retired = (fy_retired){.channels = bound->channels, .count = count};
    for (size_t i = 0; i < count; i++)
        retired->ranks[i] =
            bound->out.ends[i].mode == FY_LINK_MESSAGES ? -1 : bound->out.ends[i].rank;
    bound->retired = retired;
    return 0;
}

static int open_out(const fy_planned *plan, fy_bound *bound)
{
    if (bound->out.end_count == 0)
        return 0;
    int error = alloc_channels(plan, bound);
    if (error)
        return error;
    char *slots = (char *)(bound->channels + bound->out.end_count);
    for (size_t i = 0; i < bound->out.end_count && error == 0; i++) {
        fy_link_end *end = &bound->out.ends[i];
        end->hash = plan->form->hash(plan, bound, end, true);
        if (end->mode != FY_LINK_MESSAGES)
            end->channel = &bound->channels[i];
        if (end->mode == FY_LINK_DIRECT)
            continue;
        if (end->mode == FY_LINK_STAGED) {
            end->buffer = slots;
            slots += FY_SLOTS * end->slot_bytes;
        } else if ((end->buffer = fy_calloc(end->bytes, 1)) == NULL) {
            return FERRY_ENOMEM;
        }
        error = plan->form->packed(plan, bound, end, true);
    }
    return error;
}

/* Makes the buffers of the ends in. That comes before the handshakes: a source that is bound may
 * send while this rank still waits for others. */
static int open_in(const fy_planned *plan, fy_bound *bound)
{
    const size_t line = _Alignof(fy_mover_channel);
    for (size_t i = 0; i < bound->in.end_count; i++) {
        fy_link_end *end = &bound->in.ends[i];
        end->hash = plan->form->hash(plan, bound, end, false);
        end->bytes = plan->form->bytes(plan, &bound->in, end);
        end->slot_bytes = (end->bytes + line - 1) / line * line;
        end->mode = travels_packed(plan, end) ? FY_LINK_MESSAGES : FY_LINK_DIRECT;
        if (end->mode == FY_LINK_MESSAGES && (end->buffer = fy_calloc(end->bytes, 1)) == NULL)
            return FERRY_ENOMEM;
    }
    return 0;
}

int fy_mover_open(const fy_planned *plan, fy_bound *bound)
{
    int error = open_out(plan, bound);
    return error ? error : open_in(plan, bound);
}

/* Makes the moves of an end in. The handshake of its source has said which mode it has. */
int fy_link_connect(const fy_planned *plan, fy_bound *bound, fy_link_end *end)
{
    fy_port *port = fy_port_of(plan->f);
    if (end->mode > FY_LINK_STAGED)
        return FERRY_EINVAL;
    if (end->mode != FY_LINK_MESSAGES &&
        port->ops->heap.owner(port, FY_APP, end->channel, sizeof *end->channel) < 0)
        return FERRY_EINVAL;
    if (end->mode == FY_LINK_DIRECT)
        return plan->form->direct(plan, bound, end);
    if (end->mode == FY_LINK_STAGED &&
        port->ops->heap.owner(port, FY_APP, end->buffer, FY_SLOTS * end->slot_bytes) < 0)
        return FERRY_EINVAL;
    return plan->form->packed(plan, bound, end, false);
}

void fy_direction_fini(fy_direction *direction)
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
