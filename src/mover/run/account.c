/* The statistics of a mover: as a whole, and for each link. */
#include "core/fail.h"
#include "mover/run/state.h"

static size_t direct_ends(const fy_direction *direction)
{
    size_t count = 0;
    for (size_t i = 0; i < direction->end_count; i++)
        count += direction->ends[i].channel != NULL;
    return count;
}

/* The number of messages into which mover_send_packed cuts the copies of an end. */
static uint64_t messages_of(const fy_planned *plan, const fy_link_end *end)
{
    const size_t packet = plan->options.packet_bytes, each = packet > 0 ? packet : end->bytes;
    if (end->mode != FY_LINK_MESSAGES || end->bytes == 0)
        return 0;
    return end->bytes / each + (end->bytes % each != 0);
}

static uint64_t messages(const fy_planned *plan, const fy_direction *direction)
{
    uint64_t count = 0;
    for (size_t i = 0; i < direction->end_count; i++)
        count += messages_of(plan, &direction->ends[i]);
    return count;
}

int ferry_mover_stats_get(const ferry_mover *m, ferry_mover_stats *out)
{
    const ferry_mover_stats stats = {.neighbours_in = m->bound.in.end_count,
                                     .neighbours_out = m->bound.out.end_count,
                                     .copies_local = m->bound.own_count,
                                     .copies_in = m->bound.in.count,
                                     .bytes_local = m->bound.own_points * m->plan.element_bytes,
                                     .bytes_in = m->bound.in.points * m->plan.element_bytes,
                                     .bytes_out = m->bound.out.points * m->plan.element_bytes,
                                     .direct_in = direct_ends(&m->bound.in),
                                     .direct_out = direct_ends(&m->bound.out),
                                     .movements = m->run.movements + m->run.epoch,
                                     .messages_in = messages(&m->plan, &m->bound.in),
                                     .messages_out = messages(&m->plan, &m->bound.out)};
    return fy_write_sized(m->plan.f, "mover_stats_get: ferry_mover_stats", out, &stats,
                          sizeof stats);
}

static ferry_mover_pair pair_of(const ferry_mover *m, const fy_link_end *end, bool outward)
{
    static const ferry_mover_way ways[] = {[FY_LINK_MESSAGES] = FERRY_WAY_MESSAGES,
                                           [FY_LINK_DIRECT] = FERRY_WAY_DIRECT,
                                           [FY_LINK_STAGED] = FERRY_WAY_STAGED};
    const int32_t self = ferry_rank(m->plan.f);
    return (ferry_mover_pair){.source = outward ? self : end->rank,
                              .target = outward ? end->rank : self,
                              .way = ways[end->mode],
                              .copies = end->count,
                              .bytes = end->points * m->plan.element_bytes,
                              .messages = messages_of(&m->plan, end)};
}

size_t ferry_mover_pairs_get(const ferry_mover *m, ferry_mover_pair *out, size_t capacity)
{
    const fy_direction *directions[] = {&m->bound.in, &m->bound.out};
    size_t count = 0;
    for (int way = 0; way < 2; way++)
        for (size_t i = 0; i < directions[way]->end_count; i++, count++)
            if (count < capacity)
                out[count] = pair_of(m, &directions[way]->ends[i], way == 1);
    return count;
}
