/* The consumer's side of the rings.
 *
 * Each field of a slot is read once, into the consumer's own frame, checked there, and used from
 * there: a source that writes nonsense, or goes on writing, loses its frame. The client is told.
 *
 * A slot's turn is that of this lap when it is full, else that of the lap before. Any other was
 * overwritten. So was one that says "not yet" although the slot after it is full: sources fill them
 * in order. That costs a look at one more line, so it is done before the rank sleeps only.
 *
 * A poll does not look at the rings of silent sources. A source that has sent sets its bit in this
 * rank's `news`, and says in one word, `any`, that there are new bits. A poll looks at this one
 * word for all sources that were silent.
 *
 * On the control lane the bit goes when its rings are looked at. Its sources order the look at
 * their bit behind the frame, and here the bit is taken away before the look at the rings, all
 * sequentially consistent. Either the poll sees the frame, or the source sees that its bit is gone.
 *
 * On the data lane a source does not order the two, since that would cost more than the rest of the
 * send. There the bit stays as long as frames come, and this rank watches those sources' rings
 * themselves: in an exchange of frames nobody writes to `news`. A bit is taken away after rounds of
 * silence. This rank may not see the turn of a frame yet, although its source has still seen the
 * bit. Such a frame is found in two ways. Each round ends with a look at some of the rings that are
 * not watched, in turn. And before this rank sleeps it makes all sources' stores visible and looks
 * at all rings (wait.c, fy_shm_pending). */
#include "port/shm/port_state.h"

#include <string.h>

#include "base/log.h"

/* A frame as it arrived, and where its payload was. */
typedef struct arrival {
    fy_frame frame;
    shm_place place;
    uint32_t position;
    void *block;
} arrival;

/* Tells the producer how far we are, and wakes it when it waits for that. */
void fy_shm_publish(shm_port *p, inbox *in)
{
    uint64_t head = atomic_load_explicit(&in->head, memory_order_relaxed);
    in->publish_at = head + p->slot_mask / 4 + 1;
    in->bytes_published = in->bytes_head;
    in->copied_published = in->copied_head;
    /* seq_cst: before the look at `stalled`; as release they pair with read_progress: we are done
     * with what they count */
    atomic_store_explicit(&in->ring->bytes_head, in->bytes_head, memory_order_release);
    atomic_store_explicit(&in->ring->copied_head, in->copied_head, memory_order_release);
    atomic_store(&in->ring->head, head);
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
static inline bool read_slot(const shm_port *p, inbox *in, const fy_ring_slot *slot, arrival *a)
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

/* Past a slot whose frame had no room of its own. */
static inline void advance_head(shm_port *p, inbox *in, uint64_t head)
{
    /* relaxed: `pending` of the other thread may see any of our values */
    atomic_store_explicit(&in->head, head, memory_order_relaxed);
    if (head >= in->publish_at)
        fy_shm_publish(p, in);
}

/* After advance_head, of a frame that had. */
static void publish_payload(shm_port *p, inbox *in)
{
    uint32_t ring_bytes = p->segment->ring_bytes;
    if (in->bytes_head - in->bytes_published >= ring_bytes / 4 ||
        in->copied_head - in->copied_published >= ring_bytes)
        fy_shm_publish(p, in);
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

/* The next slot is not full, but its turn is wrong, or a later one is full: looks at the one after
 * it from now on. */
static void __attribute__((cold, noinline))
inbox_lose(shm_port *p, inbox *in, uint32_t turn, fy_deliver *deliver, void *context)
{
    uint64_t head = atomic_load_explicit(&in->head, memory_order_relaxed);
    fy_log_line((int)p->rank,
                "slot %u of the ring from rank %u was overwritten: its turn is %u, expected %u",
                (unsigned)(head & p->slot_mask), in->source, turn,
                (unsigned)(head >> p->slot_shift) + 1);
    in->overtaken = false;
    advance_head(p, in, head + 1);
    inbox_note_next(p, in);
    tell_lost(deliver, context, in);
}

/* A slot goes on, after its position, as a frame does. */
enum { HEAD_BYTES = offsetof(fy_frame, words) };
#define ALIKE(of_slot, of_frame)                                                                   \
    (offsetof(fy_ring_slot, of_slot) - offsetof(fy_ring_slot, op) == offsetof(fy_frame, of_frame))
_Static_assert(ALIKE(op, op) && ALIKE(aux, aux) && ALIKE(handler, handler) &&
                   ALIKE(count_place, word_count) && ALIKE(kind, kind) && ALIKE(tag, tag) &&
                   ALIKE(words, words) && SHM_NOWHERE == 0,
               "the head of a slot without payload is that of its frame");

/* Copies a slot out of shared memory whose frame is words alone: what a frame has of payload is 0
 * in `out` already. False: it is another. */
static inline bool read_plain(const fy_ring_slot *slot, fy_frame *out)
{
    if (slot->size != 0)
        return false;
    memcpy(out, (const char *)slot + offsetof(fy_ring_slot, op), HEAD_BYTES);
    memcpy(out->words, slot->words, sizeof out->words);
    /* The compiler may not read the slot again. */
    __asm__ volatile("" : "+m"(*out)::"memory");
    return out->word_count <= FY_FRAME_WORDS;
}

/* The frame of a slot that is another than words alone; the verdict. One that makes no sense is
 * lost, and counted as taken. */
static __attribute__((noinline)) fy_verdict
take_any(shm_port *p, inbox *in, const fy_ring_slot *slot, fy_deliver *deliver, void *context)
{
    arrival a;
    if (!read_slot(p, in, slot, &a)) {
        drop(p, in, &a);
        tell_lost(deliver, context, in);
        return FY_TAKEN;
    }
    fy_verdict verdict = deliver(context, (int)in->source, &a.frame);
    if (verdict != FY_LEAVE && a.place >= SHM_BYTES)
        free_payload(p, in, &a, verdict == FY_KEEP);
    return verdict;
}

/* Delivers from one inbox; returns how many frames were taken. */
static __attribute__((noinline)) int inbox_drain(shm_port *p, inbox *in, int budget,
                                                 fy_deliver *deliver, void *context)
{
    fy_frame frame;
    int taken = 0;
    uint64_t head = atomic_load_explicit(&in->head, memory_order_relaxed);
    const fy_ring_slot *slot = &in->slots[head & p->slot_mask];
    uint32_t full = (uint32_t)(head >> p->slot_shift) + 1;
    frame.data = NULL;
    frame.size_bytes = 0;
    frame.block = false;
    frame.quiet = false;
    for (; taken < budget; taken++) {
        /* acquire: pairs with the store in send.c's publish */
        uint32_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        if (turn != full) {
            if (turn == full - 1 && !in->overtaken)
                break;
            inbox_lose(p, in, turn, deliver, context);
            return taken;
        }
        bool plain = read_plain(slot, &frame);
        fy_verdict verdict = plain ? deliver(context, (int)in->source, &frame)
                                   : take_any(p, in, slot, deliver, context);
        if (verdict == FY_LEAVE)
            break;
        advance_head(p, in, ++head);
        if (!plain)
            publish_payload(p, in);
        slot++;
        if ((head & p->slot_mask) == 0) {
            slot = in->slots;
            full++;
        }
    }
    in->turn = &slot->turn;
    in->idle = full - 1;
    return taken;
}

/* Begins after the one that used up the last budget. */
static __attribute__((noinline)) int poll_watched(shm_port *p, int budget, fy_deliver *deliver,
                                                  void *context)
{
    lane_state *l = &p->lanes[FY_DATA];
    /* relaxed: fy_shm_watch_new acquires */
    if (atomic_load_explicit(&p->self->news[FY_DATA].any, memory_order_relaxed) != 0)
        fy_shm_watch_new(p);
    int taken = 0;
    uint32_t count = l->watched, first = l->first < count ? l->first : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = first + i < count ? first + i : first + i - count;
        inbox *in = l->order[at];
        if (inbox_is_idle(in))
            continue;
        in->found = l->round;
        taken += inbox_drain(p, in, budget - taken, deliver, context);
        if (taken >= budget) {
            l->first = at + 1 < count ? at + 1 : 0;
            break;
        }
    }
    return taken;
}

/* The sources that a poll of the control lane is about. */
typedef struct control_poll {
    fy_deliver *deliver;
    void *context;
    int budget, taken;
} control_poll;

/* Delivers from the rings of a source. Whether there is nothing left. */
static bool drain_source(shm_port *p, uint32_t source, control_poll *c)
{
    bool empty = true;
    for (uint32_t thread = 0; thread < FY_THREADS; thread++) {
        inbox *in = &p->in[channel_of((fy_thread)thread, FY_CONTROL)][source];
        if (in->ring == NULL && fy_shm_inbox(p, FY_CONTROL, (fy_thread)thread, source) == NULL)
            continue;
        int taken = inbox_drain(p, in, c->budget - c->taken, c->deliver, c->context);
        c->taken += taken;
        if (taken > 0 && c->taken == c->budget)
            p->lanes[FY_CONTROL].first = source + 1;
        empty = empty && inbox_is_idle(in);
    }
    return empty;
}

/* The sources of a word, as far as `mask` has them. A bit is taken away first, then the rings are
 * looked at: see above. */
static void drain_word(shm_port *p, uint32_t w, uint64_t mask, control_poll *c)
{
    shm_news *news = &p->self->news[FY_CONTROL];
    /* seq_cst: pairs with publish_fenced and fy_shm_note */
    uint64_t bits = atomic_fetch_and(&news->from[w], ~mask) & mask, left = 0;
    for (; bits != 0; bits &= bits - 1) {
        uint32_t source = w * 64 + (uint32_t)__builtin_ctzll(bits);
        if (source < p->segment->ranks && !drain_source(p, source, c))
            left |= bits & -bits;
    }
    if (left != 0) {
        /* seq_cst, both: as in fy_shm_note */
        atomic_fetch_or(&news->from[w], left);
        atomic_fetch_or(&news->any, UINT64_C(1) << w);
    }
}

/* Begins after the source that used up the last budget: the word of that comes twice. */
static __attribute__((noinline)) int poll_control(shm_port *p, int budget, fy_deliver *deliver,
                                                  void *context)
{
    control_poll c = {deliver, context, budget, 0};
    uint32_t count = (p->segment->ranks + 63) / 64, first = p->lanes[FY_CONTROL].first;
    if (first >= p->segment->ranks)
        first = 0;
    uint64_t upper = UINT64_MAX << first % 64;
    /* seq_cst: before the bits of the words are taken away */
    uint64_t words = atomic_exchange(&p->self->news[FY_CONTROL].any, 0);
    uint32_t w = first / 64;
    for (uint32_t i = 0; i <= count; i++) {
        uint64_t mask = i == 0 ? upper : i == count ? ~upper : UINT64_MAX;
        if ((words >> w & 1) != 0 && mask != 0)
            drain_word(p, w, mask, &c);
        w = w + 1 < count ? w + 1 : 0;
    }
    return c.taken;
}

int fy_shm_poll(fy_port *port, fy_lane lane, int budget, fy_deliver *deliver, void *context)
{
    shm_port *p = state_of(port);
    /* relaxed: what is missed now is found by a later poll */
    bool any = atomic_load_explicit(p->any[lane], memory_order_relaxed) != 0;
    if (lane == FY_CONTROL)
        return any ? poll_control(p, budget, deliver, context) : 0;
    lane_state *l = &p->lanes[FY_DATA];
    if (any)
        return poll_watched(p, budget, deliver, context);
    inbox **order = l->order;
    uint32_t watched = l->watched;
    if (watched == 1) {
        if (!inbox_is_idle(order[0]))
            return inbox_drain(p, order[0], budget, deliver, context);
    } else {
        for (uint32_t i = 0; i < watched; i++)
            if (!inbox_is_idle(order[i]))
                return poll_watched(p, budget, deliver, context);
    }
    return --l->empty < 0 ? fy_shm_end_round(p) : 0;
}
