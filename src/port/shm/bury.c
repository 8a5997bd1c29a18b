/* Gives back the memory of a rank that has gone.
 *
 * Each survivor gives back the rings between that rank and itself. The last survivor that hears of
 * it gives back more:
 *
 * - Blocks that were kept for the rank in any heap, such as data sent to it that it had not taken.
 * - The pages of its own heap on which no block lives.
 *
 * Before all know, one of them may still read there, or be about to take what the rank had sent.
 * Blocks of that heap that live are released later, and their pages given back then
 * (fy_shm_release). The control block and the board with its cells stay, because they can still be
 * used. */
#include "port/shm/port_state.h"

#include <sys/mman.h>

#include "base/relax.h"

static void rings_give_back(const fy_segment *s, shm_ring *first)
{
    (void)madvise(first, SHM_CHANNELS * s->ring_stride, MADV_REMOVE);
}

/* Removes an inbox from those that are polled. */
static void inbox_forget(shm_port *p, fy_lane lane, inbox *in)
{
    lane_state *l = &p->lanes[lane];
    if (in->place < l->watched)
        fy_shm_swap(l, in->place, --l->watched);
    fy_shm_swap(l, in->place, --l->count);
    in->ring = NULL;
    in->overtaken = false;
}

/* Whether everything that the rank sent on a channel has been taken. */
static bool channel_is_empty(const shm_port *p, uint32_t channel, uint32_t gone)
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
        if (!channel_is_empty(p, channel, (uint32_t)rank))
            return false;
    return true;
}

/* Gives back the rings, except those with frames that the client has not taken yet. */
static void bury_rings(shm_port *p, uint32_t gone)
{
    for (uint32_t thread = 0; thread < FY_THREADS; thread++)
        for (uint32_t lane = 0; lane < FY_LANES; lane++) {
            uint32_t channel = channel_of((fy_thread)thread, (fy_lane)lane);
            inbox *in = &p->in[channel][gone];
            if (in->ring != NULL)
                inbox_forget(p, (fy_lane)lane, in);
            /* seq_cst, though any order would do: the rank sends nothing more */
            atomic_fetch_and(&p->adopted[channel][gone / 64], ~(UINT64_C(1) << (gone % 64)));
            atomic_fetch_and(&p->self->open[channel][gone / 64], ~(UINT64_C(1) << (gone % 64)));
            atomic_fetch_and(&p->self->news[lane].from[gone / 64], ~(UINT64_C(1) << (gone % 64)));
        }
    /* Nothing is sent to the rank any more either: a send asks for its state first. */
    rings_give_back(p->segment, ring_at(p->segment, p->rank, gone, 0));
    rings_give_back(p->segment, ring_at(p->segment, gone, p->rank, 0));
}

bool fy_shm_all_know(const shm_port *p, uint32_t gone)
{
    const shm_rank *control = rank_at(p->segment->base, gone);
    for (uint32_t rank = 0; rank < p->segment->ranks; rank++) {
        /* acquire: pairs with the release in note */
        uint64_t known = atomic_load_explicit(&control->buried[rank / 64], memory_order_acquire);
        if (fy_shm_state(p->segment, rank) == SHM_JOINED && (known >> rank % 64 & 1) == 0)
            return false;
    }
    return true;
}

/* Several ranks may do this at the same time, and again. If one is killed meanwhile, the next does
 * the rest. */
static void reclaim(const shm_port *p, uint32_t gone)
{
    for (uint32_t number = 0; number < p->segment->arenas; number++) {
        int owner = arena_owner(p->segment, arena_word(p->segment, number));
        if (owner < 0)
            continue;
        fy_arena arena = arena_at(p->segment, number);
        if (fy_shm_state(p->segment, (uint32_t)owner) >= SHM_LEFT)
            fy_shm_arena_tend(p, number, (uint32_t)owner, gone + 1, NULL);
        else
            fy_arena_release_kept(&arena, gone + 1);
    }
    atomic_store_explicit(&rank_at(p->segment->base, gone)->reclaimed, 1, memory_order_release);
}

static void note(const shm_port *p, uint32_t gone)
{
    /* Waits: the other thread may be giving a block back to the rank, as to a living one. acquire:
     * pairs with the release in fy_shm_release */
    while (atomic_load_explicit(&p->releasing, memory_order_acquire) != 0)
        fy_yield();
    /* release: after the last look at the rank's memory; seq_cst with the look at the others'
     * notes: of two ranks at the same time, one sees both notes */
    atomic_fetch_or_explicit(&rank_at(p->segment->base, gone)->buried[p->rank / 64],
                             UINT64_C(1) << p->rank % 64, memory_order_seq_cst);
}

void fy_shm_bury(fy_port *port, int rank)
{
    shm_port *p = state_of(port);
    uint32_t gone = (uint32_t)rank;
    if (fy_shm_silent(port, rank))
        bury_rings(p, gone);
    note(p, gone);
    /* Reclaims this rank, and earlier ones of which the rank that has gone now was the last not to
     * know. */
    for (uint32_t other = 0; other < p->segment->ranks; other++) {
        const shm_rank *control = rank_at(p->segment->base, other);
        /* acquire: pairs with the release in reclaim */
        if (fy_shm_state(p->segment, other) >= SHM_LEFT &&
            atomic_load_explicit(&control->reclaimed, memory_order_acquire) == 0 &&
            fy_shm_all_know(p, other))
            reclaim(p, other);
    }
    fy_shm_arenas_look(p);
}

void fy_shm_free_gone(fy_port *port, int rank)
{
    const shm_port *p = state_of(port);
    for (uint32_t number = 0; number < p->segment->arenas; number++)
        if (arena_owner(p->segment, arena_word(p->segment, number)) == rank)
            fy_shm_arena_tend(p, number, (uint32_t)rank, KEEPER_ALL, NULL);
}
