/* The producer's side of the rings.
 *
 * A frame is written into its slot and published by the slot's turn. Its payload travels in the
 * unused words, in the ring's bytes, or in a block of the heap, by size. The producer knows the
 * consumer's progress from what that publishes, read again only when the ring looks full. Progress
 * that is nonsense makes the ring look full.
 *
 * After publishing, a sleeping target must be woken, and the store of the turn must not be passed
 * by the load that asks whether it sleeps. On the control lane both are sequentially consistent. On
 * the data lane that order would cost more than the rest of the send: there the target orders our
 * stores before it sleeps (fy_shm_wait), and only the compiler is held back here.
 *
 * Behind that the source sets its bit in the target's `news`, unless it stands there already, as it
 * does in a stream of frames and in an exchange of them. receive.c says why that is enough. */
#include "port/shm/port_state.h"

#include <string.h>

#include "base/copy.h"
#include "base/elsewhere.h"

/* Bytes of copied blocks that may be in flight in a ring, in units of ring_bytes: so few that they
 * stay in the caches of two processors. One block always may, and another that is as large. */
#define COPIED_MAX 32

static size_t round8(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

static void channel_announce(const shm_port *p, uint32_t channel, shm_rank *target)
{
    /* seq_cst: before the turn of the first slot, for fy_shm_pending's scan before sleeping */
    atomic_fetch_or(&target->open[channel][p->rank / 64], UINT64_C(1) << (p->rank % 64));
    fy_shm_note(&target->news[channel % FY_LANES], p->rank);
}

/* Announces this source to the target. */
static void __attribute__((cold, noinline))
open_outbox(shm_port *p, uint32_t channel, uint32_t rank)
{
    outbox *o = &p->out[channel][rank];
    shm_rank *target = rank_at(p->segment->base, rank);
    bool plain = channel % FY_LANES == FY_DATA && !p->fence;
    o->target = target;
    o->ring = ring_at(p->segment, rank, p->rank, channel);
    o->news = &target->news[channel % FY_LANES];
    o->outlet = (fy_outlet){.slots = ring_slots(o->ring),
                            .limit = p->segment->ring_slots,
                            .slot_mask = p->slot_mask,
                            .slot_shift = p->slot_shift,
                            .target = &target->state,
                            .joined = plain ? SHM_JOINED : UINT32_MAX,
                            .own_bit = UINT64_C(1) << p->rank % 64,
                            .noted = &o->news->from[p->rank / 64]};
    channel_announce(p, channel, o->target);
}

__attribute__((cold)) void fy_shm_repair(const shm_port *p, fy_thread thread)
{
    /* Where a helper exists, each of the two threads announces what it has opened itself. */
    bool both = p->helper_entry == NULL;
    uint32_t first = both ? 0 : channel_of(thread, FY_DATA);
    /* relaxed, and below: this rank alone writes it while it lives */
    uint32_t state = atomic_load_explicit(&p->self->state, memory_order_relaxed);
    if ((state & SHM_STATE_MASK) != SHM_JOINED)
        atomic_store_explicit(&p->self->state, (state & SHM_FAR) | SHM_JOINED | SHM_NEEDS_FENCE,
                              memory_order_relaxed);
    for (uint32_t channel = first; channel < (both ? SHM_CHANNELS : first + FY_LANES); channel++)
        for (uint32_t rank = 0; rank < p->segment->ranks; rank++) {
            const outbox *o = &p->out[channel][rank];
            if (o->ring == NULL || fy_shm_state(p->segment, rank) >= SHM_LEFT)
                continue;
            /* relaxed: this rank has set its bit */
            uint64_t bits =
                atomic_load_explicit(&o->target->open[channel][p->rank / 64], memory_order_relaxed);
            if ((bits >> p->rank % 64 & 1) != 0)
                continue;
            channel_announce(p, channel, o->target);
            fy_shm_signal(o->target, FY_APP);
        }
}

_Static_assert(offsetof(shm_rank, app_asleep) == offsetof(shm_rank, state) + sizeof(uint32_t),
               "an outlet finds the words of its target one behind the other");

static inline bool has_slot(const outbox *o)
{
    return o->outlet.tail != o->outlet.limit;
}

/* Whether a slot is free and `bytes` and `copied` more may be in flight. */
static bool has_room(const shm_port *p, const outbox *o, size_t bytes, size_t copied)
{
    uint64_t copied_before = o->copied_tail - o->copied_head_seen;
    uint64_t copied_max = (uint64_t)COPIED_MAX * p->segment->ring_bytes;
    return has_slot(o) && o->bytes_tail - o->bytes_head_seen + bytes <= p->segment->ring_bytes &&
           (copied == 0 || copied_before <= copied || copied_before + copied <= copied_max);
}

static void read_progress(outbox *o)
{
    /* seq_cst: after the store to `stalled`; the acquire part pairs with the stores in publish: the
     * consumer is done with what it counts */
    o->bytes_head_seen = atomic_load(&o->ring->bytes_head);
    o->copied_head_seen = atomic_load(&o->ring->copied_head);
    uint64_t tail = o->outlet.tail, head = atomic_load(&o->ring->head);
    uint64_t slots = (uint64_t)o->outlet.slot_mask + 1;
    o->outlet.limit = tail - head <= slots ? head + slots : tail;
}

static bool __attribute__((cold, noinline))
wait_for_room(const shm_port *p, outbox *o, size_t bytes, size_t copied)
{
    read_progress(o);
    if (has_room(p, o, bytes, copied))
        return true;
    /* seq_cst: the consumer publishes, then looks here; we write here, then look at its progress */
    atomic_store(&o->ring->stalled, 1);
    read_progress(o);
    return has_room(p, o, bytes, copied);
}

static inline bool needs_fence(const outbox *o)
{
    /* relaxed: after the look at `app_asleep`, which acquires; see wait.c */
    return atomic_load_explicit(&o->target->state, memory_order_relaxed) & SHM_NEEDS_FENCE;
}

/* Publishes a slot, perhaps again, and wakes. */
static void __attribute__((noinline))
publish_fenced(const shm_port *p, const outbox *o, fy_ring_slot *slot, uint32_t turn, fy_lane lane)
{
    shm_rank *target = o->target;
    /* seq_cst: see above; pairs with the stores in wait.c. Release: with the acquire in receive.c
     */
    atomic_store(&slot->turn, turn);
    /* seq_cst: after the turn's store; pairs with the exchange in poll_control */
    if (!fy_outlet_is_noted(&o->outlet, memory_order_seq_cst))
        fy_shm_note(o->news, p->rank);
    if (atomic_load(&target->app_asleep))
        fy_rouse(&target->app_asleep);
    else if (lane == FY_CONTROL && atomic_load(&target->serve) == FY_HELPER &&
             atomic_load(&target->helper_asleep))
        fy_rouse(&target->helper_asleep);
}

fy_outlet *fy_shm_outlet(fy_port *port, int rank)
{
    const shm_port *p = state_of(port);
    return (uint32_t)rank < p->ranks ? &p->out[channel_of(FY_APP, FY_DATA)][rank].outlet : NULL;
}

/* A slot was published without a fence. A target that has woken since the first look will look at
 * its rings. */
void fy_shm_follow(fy_port *port, fy_outlet *outlet)
{
    const shm_port *p = state_of(port);
    const outbox *o = (const outbox *)(const void *)outlet;
    fy_ring_slot *slot = &outlet->slots[(outlet->tail - 1) & outlet->slot_mask];
    /* seq_cst and relaxed, as the first look; the turn: this thread has just written it */
    if (atomic_load(&o->target->app_asleep))
        fy_rouse(&o->target->app_asleep);
    else if (needs_fence(o))
        publish_fenced(p, o, slot, atomic_load_explicit(&slot->turn, memory_order_relaxed),
                       FY_DATA);
    if (!fy_outlet_is_noted(outlet, memory_order_relaxed))
        fy_shm_note(o->news, p->rank);
}

/* Publishes a slot on the data lane, and wakes. */
static inline void publish_plain(shm_port *p, outbox *o, fy_ring_slot *slot)
{
    if (fy_outlet_publish(&o->outlet, slot))
        fy_shm_follow(&p->port, &o->outlet);
}

/* Publishes the slot that was filled, and wakes. */
static __attribute__((noinline)) void publish(shm_port *p, outbox *o, fy_lane lane, uint32_t state)
{
    fy_ring_slot *slot = fy_outlet_next(&o->outlet);
    if (lane == FY_DATA && !p->fence && !(state & SHM_NEEDS_FENCE))
        publish_plain(p, o, slot);
    else
        publish_fenced(p, o, slot, fy_outlet_advance(&o->outlet), lane);
}

static inline void shm_fill(fy_ring_slot *slot, const fy_frame *frame, shm_place place)
{
    slot->kind = frame->kind;
    slot->count_place = (uint8_t)(frame->word_count | place << 4);
    slot->handler = frame->handler;
    slot->op = frame->op;
    slot->tag = frame->tag;
    slot->aux = frame->aux;
    slot->size = frame->size_bytes;
    fy_words_copy(slot->words, frame->words, frame->word_count);
}

/* The payload must lie in one piece: what is left at the end of the bytes is skipped when it is too
 * short. */
static int send_bytes(shm_port *p, outbox *o, fy_lane lane, uint32_t state, const fy_frame *frame)
{
    uint32_t ring_bytes = p->segment->ring_bytes;
    size_t size = round8(frame->size_bytes);
    size_t at = o->bytes_tail & (ring_bytes - 1);
    size_t skip = at + size > ring_bytes ? ring_bytes - at : 0;
    if (!has_room(p, o, skip + size, 0) && !wait_for_room(p, o, skip + size, 0))
        return FERRY_EAGAIN;
    o->bytes_tail += skip;
    fy_ring_slot *slot = fy_outlet_next(&o->outlet);
    memcpy(ring_payload(p->segment, o->ring) + (o->bytes_tail & (ring_bytes - 1)), frame->data,
           frame->size_bytes);
    shm_fill(slot, frame, SHM_BYTES);
    slot->position = (uint32_t)o->bytes_tail;
    o->bytes_tail += size;
    publish(p, o, lane, state);
    return 0;
}

static void place_block(const shm_port *p, fy_ring_slot *slot, const void *block)
{
    uint64_t units = (uint64_t)((const char *)block - p->segment->base) / FY_HEAP_ALIGN;
    fy_elsewhere_goes((void *)(uintptr_t)block);
    slot->position = (uint32_t)units;
    slot->size |= units >> 32 << SHM_SIZE_BITS;
}

static int send_copy(shm_port *p, outbox *o, fy_lane lane, uint32_t state, const fy_frame *frame,
                     uint32_t rank)
{
    if (!has_room(p, o, 0, frame->size_bytes) && !wait_for_room(p, o, 0, frame->size_bytes))
        return FERRY_EAGAIN;
    void *block = fy_heap_alloc(p->heap, frame->size_bytes, 0);
    if (block == NULL)
        return FERRY_ENOMEM;
    (void)fy_shm_keep(p->segment, block, rank + 1);
    fy_copy(block, frame->data, frame->size_bytes);
    o->copied_tail += frame->size_bytes;
    fy_ring_slot *slot = fy_outlet_next(&o->outlet);
    shm_fill(slot, frame, SHM_COPIED);
    place_block(p, slot, block);
    publish(p, o, lane, state);
    return 0;
}

/* The lane to publish a frame on: FY_LANES for a quiet one, which wakes no helper. If nobody takes
 * frames out, the ring would fill, so two in each round of the ring wake one. */
static inline fy_lane announced(const outbox *o, fy_lane lane, const fy_frame *frame)
{
    bool turn = (o->outlet.tail & o->outlet.slot_mask / 2) == 0;
    return frame->quiet && !turn ? FY_LANES : lane;
}

static inline int send_short(shm_port *p, outbox *o, fy_lane lane, uint32_t state,
                             const fy_frame *frame)
{
    if (!has_slot(o) && !wait_for_room(p, o, 0, 0))
        return FERRY_EAGAIN;
    fy_ring_slot *slot = fy_outlet_next(&o->outlet);
    shm_fill(slot, frame, frame->size_bytes != 0 ? SHM_INLINE : SHM_NOWHERE);
    if (frame->size_bytes != 0)
        memcpy(&slot->words[frame->word_count], frame->data, frame->size_bytes);
    publish(p, o, announced(o, lane, frame), state);
    return 0;
}

/* The ring to send on, and the target's state. 0 or an error. */
static __attribute__((noinline)) int find_outbox(shm_port *p, fy_thread thread, fy_lane lane,
                                                 int rank, const fy_frame *frame, outbox **out,
                                                 uint32_t *state)
{
    if ((uint32_t)rank >= p->segment->ranks || frame->word_count > FY_FRAME_WORDS)
        return FERRY_EINVAL;
    uint32_t channel = channel_of(thread, lane);
    *out = &p->out[channel][rank];
    if ((*out)->ring == NULL)
        open_outbox(p, channel, (uint32_t)rank);
    /* relaxed: a send that just misses a death is like one just before it */
    *state = atomic_load_explicit(&(*out)->target->state, memory_order_relaxed);
    uint32_t told = *state >> SHM_SHUT_SHIFT == SHM_SHUT ? SHM_LEFT : shm_state_in(*state);
    if (told == SHM_JOINED || (told == SHM_ABSENT && (uint32_t)rank < p->segment->starting))
        return 0;
    /* Nobody tells this rank of a state that was overwritten: it looks at the others again. */
    /* seq_cst: as in fy_controls_mark */
    atomic_fetch_add(&p->self->events, 1);
    return FERRY_EPEER;
}

static __attribute__((noinline)) int send_long(shm_port *p, outbox *o, fy_lane lane, uint32_t state,
                                               const fy_frame *frame, uint32_t rank)
{
    if (frame->size_bytes <= p->bytes_max)
        return send_bytes(p, o, lane, state, frame);
    if (frame->size_bytes > p->segment->heap_bytes)
        return FERRY_ENOMEM;
    return send_copy(p, o, lane, state, frame, rank);
}

static __attribute__((noinline)) int send_any(shm_port *p, fy_thread thread, fy_lane lane, int rank,
                                              const fy_frame *frame)
{
    outbox *o;
    uint32_t state;
    int error = find_outbox(p, thread, lane, rank, frame, &o, &state);
    if (error != 0)
        return error;
    if (frame->size_bytes <= (FY_FRAME_WORDS - frame->word_count) * sizeof(uint64_t))
        return send_short(p, o, lane, state, frame);
    return send_long(p, o, lane, state, frame, (uint32_t)rank);
}

/* As send_any: what most frames need that are words alone, or too long for words. */
int fy_shm_send(fy_port *port, fy_thread thread, fy_lane lane, int rank, const fy_frame *frame)
{
    shm_port *p = state_of(port);
    if ((uint32_t)rank >= p->ranks || frame->word_count > FY_FRAME_WORDS)
        return FERRY_EINVAL;
    outbox *o = &p->out[channel_of(thread, lane)][rank];
    if (!fy_outlet_is_ready(&o->outlet))
        return send_any(p, thread, lane, rank, frame);
    if (frame->size_bytes != 0)
        return frame->size_bytes > sizeof frame->words
                   ? send_long(p, o, FY_DATA, SHM_JOINED, frame, (uint32_t)rank)
                   : send_any(p, thread, lane, rank, frame);
    fy_ring_slot *slot = fy_outlet_next(&o->outlet);
    shm_fill(slot, frame, SHM_NOWHERE);
    publish_plain(p, o, slot);
    return 0;
}

int fy_shm_send_block(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                      const fy_frame *frame)
{
    shm_port *p = state_of(port);
    outbox *o;
    uint32_t state;
    int error = find_outbox(p, thread, lane, rank, frame, &o, &state);
    if (error != 0)
        return error;
    size_t block_bytes = fy_shm_block_bytes(p->segment, frame->data);
    if (block_bytes == 0 || frame->size_bytes > block_bytes)
        return FERRY_EINVAL;
    if (!has_room(p, o, 0, 0) && !wait_for_room(p, o, 0, 0))
        return FERRY_EAGAIN;
    /* Before the target can pass it on, which says so too. */
    (void)fy_shm_keep_for(port, (void *)(uintptr_t)frame->data, rank);
    fy_ring_slot *slot = fy_outlet_next(&o->outlet);
    shm_fill(slot, frame, SHM_GIVEN);
    place_block(p, slot, frame->data);
    publish(p, o, lane, state);
    return 0;
}
