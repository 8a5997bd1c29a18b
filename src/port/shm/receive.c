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
 * rank's `news`, and says in one word, `any`, that there are new bits: the one word that a poll
 * looks at for all sources that were silent.
 *
 * On the control lane the bit goes when its rings are looked at. Its sources order the look at
 * their bit behind the frame, and here the bit is taken away before the look at the rings, all
 * sequentially consistent: either the poll sees the frame, or the source sees that its bit is gone.
 *
 * On the data lane a source does not order the two, since that would cost more than the rest of the
 * send. There the bit stays as long as frames come, and this rank watches those sources' rings
 * themselves: in an exchange of frames nobody writes to `news`. A bit is taken away after rounds of
 * silence. A frame whose turn this rank does not see yet, although its source has still seen the
 * bit, is found in two ways: each round ends with a look at some of the rings that are not watched,
 * in turn, and before this rank sleeps it makes all sources' stores visible and looks at all rings
 * (wait.c, fy_shm_pending). */
#include "port/shm/port_state.h"

#include "base/log.h"

/* Inboxes that are watched however long they are silent. */
#define FEW_COUNT 1
/* Polls in a row that find nothing, after which a round ends; rounds of silence after which a
 * source is not watched any more; and how many of the others are looked at in a round. */
#define ROUND_POLLS 64
#define SILENT_ROUNDS 1
#define TURN_COUNT 4

/* A frame as it arrived, and where its payload was. */
typedef struct arrival {
    fy_frame frame;
    shm_place place;
    uint32_t position;
    void *block;
} arrival;

/* The next slot is as this rank has left it. */
static inline bool is_idle(const inbox *in)
{
    /* relaxed: drain looks again */
    return atomic_load_explicit(in->turn, memory_order_relaxed) == in->idle;
}

/* Says what to look at until the next frame. */
static inline void note_next(const shm_port *p, inbox *in)
{
    uint64_t head = atomic_load_explicit(&in->head, memory_order_relaxed);
    in->turn = &in->slots[head & p->slot_mask].turn;
    in->idle = (uint32_t)(head >> p->slot_shift);
}

/* The inbox of a source that has opened its ring, if it has; else NULL. */
static __attribute__((noinline)) inbox *find_inbox(shm_port *p, fy_lane lane, fy_thread thread,
                                                   uint32_t source)
{
    uint32_t channel = channel_of(thread, lane);
    inbox *in = &p->in[channel][source];
    if (in->ring != NULL)
        return in;
    /* acquire: pairs with announce */
    uint64_t bits =
        atomic_load_explicit(&p->self->open[channel][source / 64], memory_order_acquire);
    if (!(bits >> (source % 64) & 1))
        return NULL;
    lane_state *l = &p->lanes[lane];
    in->source = source;
    /* seq_cst, though any order would do: fy_shm_pending knows it by the other bit too */
    atomic_fetch_or(&p->adopted[channel][source / 64], UINT64_C(1) << (source % 64));
    in->ring = ring_at(p->segment, p->rank, source, channel);
    in->slots = ring_slots(in->ring);
    note_next(p, in);
    in->place = l->count;
    l->order[l->count++] = in;
    return in;
}

void fy_shm_swap(lane_state *l, uint32_t a, uint32_t b)
{
    inbox *in = l->order[a];
    l->order[a] = l->order[b];
    l->order[b] = in;
    l->order[a]->place = a;
    l->order[b]->place = b;
}

static void watch(lane_state *l, inbox *in)
{
    in->found = l->round;
    if (in->place >= l->watched)
        fy_shm_swap(l, in->place, l->watched++);
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
static __attribute__((noinline)) int drain(shm_port *p, inbox *in, int budget, fy_deliver *deliver,
                                           void *context)
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
    note_next(p, in);
    return taken;
}

static void watch_source(shm_port *p, uint32_t source)
{
    for (uint32_t thread = 0; thread < FY_THREADS; thread++) {
        inbox *in = find_inbox(p, FY_DATA, (fy_thread)thread, source);
        if (in != NULL)
            watch(&p->lanes[FY_DATA], in);
    }
}

/* Watches the sources whose bits are new. */
static __attribute__((noinline)) void watch_new(shm_port *p)
{
    shm_news *news = &p->self->news[FY_DATA];
    /* acquire, both: pairs with fy_shm_note; a bit of `from` that comes later sets `any` again */
    uint64_t words = atomic_exchange_explicit(&news->any, 0, memory_order_acquire);
    for (uint32_t w = 0; w < SHM_OPEN_WORDS; w++) {
        if (!(words >> w & 1))
            continue;
        uint64_t bits = atomic_load_explicit(&news->from[w], memory_order_acquire);
        for (; bits != 0; bits &= bits - 1) {
            uint32_t source = w * 64 + (uint32_t)__builtin_ctzll(bits);
            if (source < p->segment->ranks)
                watch_source(p, source);
        }
    }
}

/* Ends a round: those that were silent for long are not watched any more, and some of the others
 * are looked at. */
static __attribute__((noinline)) int end_round(shm_port *p)
{
    lane_state *l = &p->lanes[FY_DATA];
    l->empty = ROUND_POLLS - 1;
    l->round++;
    for (uint32_t i = l->watched; i-- > 0 && l->watched > FEW_COUNT;) {
        inbox *in = l->order[i];
        if (l->round - in->found <= SILENT_ROUNDS)
            continue;
        fy_shm_swap(l, i, --l->watched);
        /* seq_cst: before the look at the ring */
        atomic_fetch_and(&p->self->news[FY_DATA].from[in->source / 64],
                         ~(UINT64_C(1) << in->source % 64));
        if (!is_idle(in))
            watch(l, in);
    }
    for (uint32_t i = 0; i < TURN_COUNT && l->watched < l->count; i++) {
        l->turn = l->turn + 1 < l->count && l->turn >= l->watched ? l->turn + 1 : l->watched;
        if (!is_idle(l->order[l->turn]))
            watch(l, l->order[l->turn]);
    }
    return 0;
}

/* Begins after the one that used up the last budget. */
static __attribute__((noinline)) int poll_watched(shm_port *p, int budget, fy_deliver *deliver,
                                                  void *context)
{
    lane_state *l = &p->lanes[FY_DATA];
    /* relaxed: watch_new acquires */
    if (atomic_load_explicit(&p->self->news[FY_DATA].any, memory_order_relaxed) != 0)
        watch_new(p);
    int taken = 0;
    uint32_t count = l->watched, first = l->first < count ? l->first : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = first + i < count ? first + i : first + i - count;
        inbox *in = l->order[at];
        if (is_idle(in))
            continue;
        in->found = l->round;
        taken += drain(p, in, budget - taken, deliver, context);
        if (taken >= budget) {
            l->first = at + 1 < count ? at + 1 : 0;
            break;
        }
    }
    return taken;
}

/* What a poll of the control lane is about. */
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
        inbox *in = find_inbox(p, FY_CONTROL, (fy_thread)thread, source);
        if (in == NULL)
            continue;
        int taken = drain(p, in, c->budget - c->taken, c->deliver, c->context);
        c->taken += taken;
        if (taken > 0 && c->taken == c->budget)
            p->lanes[FY_CONTROL].first = source + 1;
        empty = empty && is_idle(in);
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
    for (uint32_t i = 0; i <= count; i++) {
        uint32_t w = (first / 64 + i) % count;
        if (words >> w & 1)
            drain_word(p, w, i == 0 ? upper : i == count ? ~upper : UINT64_MAX, &c);
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
        if (!is_idle(order[0]))
            return drain(p, order[0], budget, deliver, context);
    } else {
        for (uint32_t i = 0; i < watched; i++)
            if (!is_idle(order[i]))
                return poll_watched(p, budget, deliver, context);
    }
    return --l->empty < 0 ? end_round(p) : 0;
}

const _Atomic uint64_t *fy_shm_news(fy_port *port, fy_lane lane)
{
    return lane == FY_CONTROL ? &state_of(port)->self->news[FY_CONTROL].any : NULL;
}

bool fy_shm_has_news(const shm_port *p)
{
    const lane_state *l = &p->lanes[FY_DATA];
    /* relaxed: fy_shm_pending looks again before a sleep */
    if (atomic_load_explicit(&p->self->news[FY_CONTROL].any, memory_order_relaxed) != 0 ||
        atomic_load_explicit(&p->self->news[FY_DATA].any, memory_order_relaxed) != 0)
        return true;
    for (uint32_t i = 0; i < l->watched; i++)
        if (!is_idle(l->order[i]))
            return true;
    return false;
}

/* A poll would not find the frame of `source`, as its bit was overwritten or will stand there soon:
 * sets it. */
static void note_missing(shm_news *news, fy_lane lane, uint32_t source)
{
    /* relaxed, both: a bit too many does no harm */
    uint64_t bits = atomic_load_explicit(&news->from[source / 64], memory_order_relaxed);
    if (!(bits >> source % 64 & 1) ||
        (lane == FY_CONTROL && atomic_load_explicit(&news->any, memory_order_relaxed) == 0))
        fy_shm_note(news, source);
}

/* Any thread: reads the bits of opened rings and the positions. A position that the poller has just
 * moved on from gives at worst a yes too many. */
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
                note_missing(&p->self->news[lane], lane, source);
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
        if (in->overtaken)
            in->idle = ~in->idle; /* a poll looks at it */
        bool here = in->overtaken || turn_at(p, in, head) != (uint32_t)(head >> p->slot_shift);
        if (here)
            fy_shm_note(&p->self->news[lane], in->source);
        odd = odd || here;
        /* A source that waits for room: what this rank has published may be overwritten. */
        /* relaxed: publish looks again */
        if (atomic_load_explicit(&in->ring->stalled, memory_order_relaxed))
            publish(p, in);
    }
    return odd;
}
