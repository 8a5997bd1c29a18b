/* The consumer's side of the rings.
 *
 * Each field of a slot is read once, into the consumer's own frame, checked there, and used from
 * there: a source that writes nonsense, or goes on writing, loses its frame. The client is told.
 *
 * A slot's turn is that of this lap when it is full, else that of the lap before. Any other was
 * overwritten. So was one that says "not yet" although the slot after it is full: sources fill them
 * in order. That costs a look at one more line, so it is done before the rank sleeps only. */
#include "port/shm/port_state.h"

#include "base/log.h"

/* A poll looks at all inboxes up to SMALL_COUNT; beyond, at the HOT_COUNT where frames were found
 * lately and at TURN_COUNT others. */
#define SMALL_COUNT 8
#define HOT_COUNT 4
#define TURN_COUNT 4

/* A frame as it arrived, and where its payload was. */
typedef struct arrival {
    fy_frame frame;
    shm_place place;
    uint32_t position;
    void *block;
} arrival;

static void __attribute__((cold, noinline)) adopt(shm_port *p, fy_lane lane)
{
    lane_state *l = &p->lanes[lane];
    /* acquire: pairs with the release in open_outbox */
    uint32_t opened = atomic_load_explicit(&p->self->opened, memory_order_acquire);
    /* relaxed: fy_shm_pending may ask for another look from now on */
    atomic_store_explicit(&l->opened_seen, opened, memory_order_relaxed);
    for (uint32_t thread = 0; thread < FY_THREADS; thread++) {
        uint32_t channel = channel_of((fy_thread)thread, lane);
        for (uint32_t source = 0; source < p->segment->ranks; source++) {
            inbox *in = &p->in[channel][source];
            /* seq_cst, though the acquire of `opened` orders it already */
            uint64_t bits = atomic_load(&p->self->open[channel][source / 64]);
            if (in->ring != NULL || !(bits >> (source % 64) & 1))
                continue;
            in->source = source;
            atomic_fetch_or(&p->adopted[channel][source / 64], UINT64_C(1) << (source % 64));
            in->ring = ring_at(p->segment, p->rank, source, channel);
            in->slots = ring_slots(in->ring);
            l->order[l->count++] = in;
        }
    }
}

/* Tells the producer how far we are, and wakes it when it waits for that. */
static void publish(shm_port *p, inbox *in)
{
    in->published = atomic_load_explicit(&in->head, memory_order_relaxed);
    in->bytes_published = in->bytes_head;
    in->copied_published = in->copied_head;
    /* seq_cst: before the look at `stalled`; as release they pair with read_progress: we are done
     * with what they count */
    atomic_store_explicit(&in->ring->bytes_head, in->bytes_head, memory_order_release);
    atomic_store_explicit(&in->ring->copied_head, in->copied_head, memory_order_release);
    atomic_store(&in->ring->head, in->published);
    if (atomic_load(&in->ring->stalled) && atomic_exchange(&in->ring->stalled, 0)) {
        shm_rank *source = rank_at(p->segment->base, in->source);
        fy_shm_signal(source, FY_APP);
        fy_shm_signal(source, FY_HELPER);
    }
}

static bool block_is_sound(const shm_port *p, uint64_t size_word, arrival *a)
{
    uint64_t units = (uint64_t)a->position | size_word >> SHM_SIZE_BITS << 32;
    if (units >= p->segment->total_bytes / FY_HEAP_ALIGN)
        return false;
    a->block = p->segment->base + units * FY_HEAP_ALIGN;
    a->frame.data = a->block;
    a->frame.block = true;
    size_t block_bytes = fy_shm_block_bytes(p->segment, a->block);
    return block_bytes != 0 && a->frame.size_bytes <= block_bytes;
}

/* Checks an arrival with payload and finds its data. */
static bool find_payload(const shm_port *p, inbox *in, uint64_t size_word, arrival *a)
{
    fy_frame *frame = &a->frame;
    uint32_t ring_bytes = p->segment->ring_bytes;
    uint32_t at = a->position & (ring_bytes - 1);
    switch (a->place) {
    case SHM_INLINE:
        frame->data = &frame->words[frame->word_count];
        return frame->size_bytes <= (FY_FRAME_WORDS - frame->word_count) * sizeof(uint64_t);
    case SHM_BYTES:
        frame->data = ring_payload(p->segment, in->ring) + at;
        return at % 8 == 0 && frame->size_bytes <= ring_bytes - at;
    case SHM_COPIED:
    case SHM_GIVEN:
        return block_is_sound(p, size_word, a);
    default:
        return false;
    }
}

/* Copies the slot out of shared memory. False: it makes no sense. */
static inline bool read_slot(const shm_port *p, inbox *in, const shm_slot *slot, arrival *a)
{
    uint8_t count_place = slot->count_place;
    uint64_t size_word = slot->size;
    a->frame = (fy_frame){
        .kind = slot->kind,
        .word_count = count_place & 0xf,
        .handler = slot->handler,
        .op = slot->op,
        .tag = slot->tag,
        .aux = slot->aux,
        .words = {slot->words[0], slot->words[1], slot->words[2], slot->words[3]},
        .size_bytes = size_word & SHM_SIZE_MASK,
    };
    a->place = (shm_place)(count_place >> 4);
    a->position = slot->position;
    a->block = NULL;
    /* The compiler may not read the slot again after the checks. */
    __asm__ volatile("" : "+m"(*a), "+r"(size_word)::"memory");
    if (a->frame.word_count > FY_FRAME_WORDS)
        return false;
    if (a->place == SHM_NOWHERE)
        return a->frame.size_bytes == 0;
    return find_payload(p, in, size_word, a);
}

/* The payload's room is free again; a block that the client keeps is the client's. */
static void free_payload(shm_port *p, inbox *in, const arrival *a, bool kept)
{
    if (a->place == SHM_BYTES) {
        uint32_t end = a->position + (uint32_t)((a->frame.size_bytes + 7) & ~(size_t)7);
        in->bytes_head += (uint32_t)(end - (uint32_t)in->bytes_head);
    } else if (a->block != NULL) {
        if (a->place == SHM_COPIED)
            in->copied_head += a->frame.size_bytes;
        if (!kept && fy_shm_release(&p->port, a->block) != 0)
            fy_log_line((int)p->rank, "the block of a frame from rank %u was freed before",
                        in->source);
    }
}

static inline void advance_head(shm_port *p, inbox *in, uint64_t head)
{
    /* relaxed: `pending` of the other thread may see any of our values */
    atomic_store_explicit(&in->head, head, memory_order_relaxed);
    uint32_t ring_bytes = p->segment->ring_bytes;
    if (head - in->published > p->slot_mask / 4 ||
        in->bytes_head - in->bytes_published >= ring_bytes / 4 ||
        in->copied_head - in->copied_published >= ring_bytes)
        publish(p, in);
}

static void __attribute__((cold, noinline))
drop(const shm_port *p, const inbox *in, const arrival *a)
{
    fy_log_line((int)p->rank,
                "dropped a damaged frame from rank %u (kind %u, %u words, %zu bytes, place %u)",
                in->source, a->frame.kind, a->frame.word_count, a->frame.size_bytes,
                (unsigned)a->place);
}

/* Tells the client that a frame is lost. */
static void __attribute__((cold, noinline))
tell_lost(fy_deliver *deliver, void *context, const inbox *in)
{
    const fy_frame lost = {.kind = UINT8_MAX, .block = true};
    (void)deliver(context, (int)in->source, &lost);
}

/* The next slot is not full, but its turn is wrong, or a later one is full. */
static void __attribute__((cold, noinline))
lose(shm_port *p, inbox *in, uint32_t turn, fy_deliver *deliver, void *context)
{
    uint64_t head = atomic_load_explicit(&in->head, memory_order_relaxed);
    fy_log_line((int)p->rank,
                "slot %u of the ring from rank %u was overwritten: its turn is %u, expected %u",
                (unsigned)(head & p->slot_mask), in->source, turn,
                (unsigned)(head >> p->slot_shift) + 1);
    in->overtaken = false;
    advance_head(p, in, head + 1);
    tell_lost(deliver, context, in);
}

/* Delivers from one inbox; returns how many frames were taken. */
static int drain(shm_port *p, inbox *in, int budget, fy_deliver *deliver, void *context)
{
    int taken = 0;
    while (taken < budget) {
        uint64_t head = atomic_load_explicit(&in->head, memory_order_relaxed);
        const shm_slot *slot = &in->slots[head & p->slot_mask];
        /* acquire: pairs with the store in send.c's publish */
        uint32_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        uint32_t lap = (uint32_t)(head >> p->slot_shift);
        if (turn != lap + 1) {
            if (turn != lap || in->overtaken)
                lose(p, in, turn, deliver, context);
            break;
        }
        arrival a;
        if (!read_slot(p, in, slot, &a)) {
            drop(p, in, &a);
            advance_head(p, in, head + 1);
            tell_lost(deliver, context, in);
            continue;
        }
        fy_verdict verdict = deliver(context, (int)in->source, &a.frame);
        if (verdict == FY_LEAVE)
            break;
        if (a.place >= SHM_BYTES)
            free_payload(p, in, &a, verdict == FY_KEEP);
        advance_head(p, in, head + 1);
        taken++;
    }
    return taken;
}

/* Few inboxes: all of them, beginning after the one that used up the last budget. */
static int poll_all(shm_port *p, lane_state *l, int budget, fy_deliver *deliver, void *context)
{
    int taken = 0;
    uint32_t count = l->count, first = l->first;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = first + i < count ? first + i : first + i - count;
        taken += drain(p, l->order[at], budget - taken, deliver, context);
        if (taken >= budget) {
            l->first = at + 1 < count ? at + 1 : 0;
            break;
        }
    }
    return taken;
}

static int poll_some(shm_port *p, lane_state *l, int budget, fy_deliver *deliver, void *context)
{
    int taken = 0;
    uint32_t first = l->first++;
    for (uint32_t i = 0; i < HOT_COUNT && taken < budget; i++)
        taken += drain(p, l->order[(first + i) % HOT_COUNT], budget - taken, deliver, context);
    for (uint32_t i = 0; i < TURN_COUNT && taken < budget; i++) {
        l->turn = l->turn + 1 < l->count && l->turn >= HOT_COUNT ? l->turn + 1 : HOT_COUNT;
        inbox *in = l->order[l->turn];
        int found = drain(p, in, budget - taken, deliver, context);
        if (found > 0) {
            uint32_t hot = l->hot++ % HOT_COUNT;
            l->order[l->turn] = l->order[hot];
            l->order[hot] = in;
        }
        taken += found;
    }
    return taken;
}

int fy_shm_poll(fy_port *port, fy_lane lane, int budget, fy_deliver *deliver, void *context)
{
    shm_port *p = state_of(port);
    lane_state *l = &p->lanes[lane];
    /* relaxed: a source that is missed now is found by a later poll */
    if (atomic_load_explicit(&p->self->opened, memory_order_relaxed) !=
        atomic_load_explicit(&l->opened_seen, memory_order_relaxed))
        adopt(p, lane);
    if (l->count <= SMALL_COUNT)
        return poll_all(p, l, budget, deliver, context);
    return poll_some(p, l, budget, deliver, context);
}

/* A source has opened its ring, and the count of that was overwritten: the next poll adopts it. */
static void __attribute__((cold, noinline)) look_again(const shm_port *p, lane_state *l)
{
    /* relaxed, both: another count than the one that the poll compares it with */
    uint32_t opened = atomic_load_explicit(&p->self->opened, memory_order_relaxed);
    atomic_store_explicit(&l->opened_seen, opened - 1, memory_order_relaxed);
}

/* Any thread: reads the bits of opened rings and the positions, changes nothing. A position that
 * the poller has just moved on from gives at worst a yes too many. */
bool fy_shm_pending(fy_port *port, fy_lane lane)
{
    shm_port *p = state_of(port);
    uint32_t ranks = p->segment->ranks, words = (ranks + 63) / 64;
    for (uint32_t thread = 0; thread < FY_THREADS; thread++) {
        uint32_t channel = channel_of((fy_thread)thread, lane);
        for (uint32_t w = 0; w < words; w++) {
            /* seq_cst, here and below: after the sleeper's store to its `asleep` */
            uint64_t bits = atomic_load(&p->self->open[channel][w]);
            bits |= atomic_load_explicit(&p->adopted[channel][w], memory_order_relaxed);
            if (w == ranks / 64)
                bits &= (UINT64_C(1) << ranks % 64) - 1;
            for (; bits != 0; bits &= bits - 1) {
                uint32_t source = w * 64 + (uint32_t)__builtin_ctzll(bits);
                uint64_t head =
                    atomic_load_explicit(&p->in[channel][source].head, memory_order_relaxed);
                shm_ring *ring = ring_at(p->segment, p->rank, source, channel);
                /* seq_cst: as above */
                uint32_t turn = atomic_load(&ring_slots(ring)[head & p->slot_mask].turn);
                if ((int32_t)(turn - ((uint32_t)(head >> p->slot_shift) + 1)) < 0)
                    continue;
                /* relaxed, both: an adoption too many does no harm */
                uint64_t known =
                    atomic_load_explicit(&p->adopted[channel][w], memory_order_relaxed);
                if ((known >> source % 64 & 1) == 0)
                    look_again(p, &p->lanes[lane]);
                return true;
            }
        }
    }
    return false;
}

static uint32_t turn_at(const shm_port *p, const inbox *in, uint64_t at)
{
    /* acquire: a source fills the slots in order, so they are looked at from the last */
    return atomic_load_explicit(&in->slots[at & p->slot_mask].turn, memory_order_acquire);
}

static bool is_full(const shm_port *p, const inbox *in, uint64_t at)
{
    return turn_at(p, in, at) == (uint32_t)(at >> p->slot_shift) + 1;
}

bool fy_shm_look_closer(shm_port *p, fy_lane lane)
{
    bool odd = false;
    lane_state *l = &p->lanes[lane];
    for (uint32_t i = 0; i < l->count; i++) {
        inbox *in = l->order[i];
        uint64_t head = atomic_load_explicit(&in->head, memory_order_relaxed);
        in->overtaken = is_full(p, in, head + 1) && !is_full(p, in, head);
        odd = odd || in->overtaken || turn_at(p, in, head) != (uint32_t)(head >> p->slot_shift);
        /* A source that waits for room: what this rank has published may be overwritten. */
        /* relaxed: publish looks again */
        if (atomic_load_explicit(&in->ring->stalled, memory_order_relaxed))
            publish(p, in);
    }
    return odd;
}
