/* What is given back of a rank that has gone: the rings between it and this rank, of which each
 * survivor has its own, and the pages of its heap on which nothing lives. Others may release
 * blocks of that heap later, and then give back their pages (fy_shm_release). What stays is what
 * can still be asked for: its control block, its board with its cells, the tables of its heap. */
#include "port/shm/port_state.h"

#include <sys/mman.h>

static void give_back(const fy_segment *s, shm_ring *first)
{
    (void)madvise(first, SHM_CHANNELS * s->ring_stride, MADV_REMOVE);
}

/* Takes an inbox off the list of those that are polled. */
static void forget(shm_port *p, fy_lane lane, inbox *in)
{
    lane_state *l = &p->lanes[lane];
    uint32_t at = 0;
    while (at < l->count && l->order[at] != in)
        at++;
    if (at == l->count)
        return;
    for (l->count--; at < l->count; at++)
        l->order[at] = l->order[at + 1];
    l->first = l->turn = 0;
    in->ring = NULL;
}

/* Whether everything that it sent on a channel has been taken. */
static bool is_empty(const shm_port *p, uint32_t channel, uint32_t gone)
{
    const inbox *in = &p->in[channel][gone];
    if (in->ring == NULL)
        /* acquire: pairs with the sender's when it opened the ring */
        return (atomic_load_explicit(&p->self->open[channel][gone / 64], memory_order_acquire) &
                UINT64_C(1) << gone % 64) == 0;
    uint64_t head = atomic_load_explicit(&in->head, memory_order_relaxed);
    /* acquire: pairs with the store in send.c's publish */
    return atomic_load_explicit(&in->slots[head & p->slot_mask].turn, memory_order_acquire) !=
           (uint32_t)(head >> p->slot_shift) + 1;
}

bool fy_shm_silent(fy_port *port, int rank)
{
    const shm_port *p = state_of(port);
    for (uint32_t channel = 0; channel < SHM_CHANNELS; channel++)
        if (!is_empty(p, channel, (uint32_t)rank))
            return false;
    return true;
}

/* What the client had no room for yet, or no time, is still to be taken: those rings stay. */
void fy_shm_bury(fy_port *port, int rank)
{
    shm_port *p = state_of(port);
    uint32_t gone = (uint32_t)rank;
    if (!fy_shm_silent(port, rank))
        return;
    for (uint32_t thread = 0; thread < FY_THREADS; thread++)
        for (uint32_t lane = 0; lane < FY_LANES; lane++) {
            uint32_t channel = channel_of((fy_thread)thread, (fy_lane)lane);
            inbox *in = &p->in[channel][gone];
            if (in->ring != NULL)
                forget(p, (fy_lane)lane, in);
            /* seq_cst, though any order would do: it sends nothing more */
            atomic_fetch_and(&p->self->open[channel][gone / 64], ~(UINT64_C(1) << (gone % 64)));
        }
    /* Nothing is sent to it any more either: that asks for its state first. */
    give_back(p->segment, ring_at(p->segment, p->rank, gone, 0));
    give_back(p->segment, ring_at(p->segment, gone, p->rank, 0));
    fy_arena arena = arena_at(p->segment, gone);
    fy_arena_discard(&arena, NULL);
}
