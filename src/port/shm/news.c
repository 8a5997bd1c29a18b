/* Chooses the rings that a poll looks at, and finds out whether there is anything in any.
 *
 * Code that runs seldom is here, and compiled for size. receive.c tells what the rules are. */
#include "port/shm/port_state.h"

/* Inboxes that are watched however long they are silent. */
#define FEW_COUNT 1
/* After so many polls in a row that find nothing a round ends. After so many rounds of silence a
 * source is not watched any more. So many of the others are looked at in a round. */
#define ROUND_POLLS 64
#define SILENT_ROUNDS 1
#define TURN_COUNT 4

inbox *fy_shm_inbox(shm_port *p, fy_lane lane, fy_thread thread, uint32_t source)
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
    inbox_note_next(p, in);
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

static void news_watch(lane_state *l, inbox *in)
{
    in->found = l->round;
    if (in->place >= l->watched)
        fy_shm_swap(l, in->place, l->watched++);
}

static void watch_source(shm_port *p, uint32_t source)
{
    for (uint32_t thread = 0; thread < FY_THREADS; thread++) {
        inbox *in = fy_shm_inbox(p, FY_DATA, (fy_thread)thread, source);
        if (in != NULL)
            news_watch(&p->lanes[FY_DATA], in);
    }
}

void fy_shm_watch_new(shm_port *p)
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
int fy_shm_end_round(shm_port *p)
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
        if (!inbox_is_idle(in))
            news_watch(l, in);
    }
    for (uint32_t i = 0; i < TURN_COUNT && l->watched < l->count; i++) {
        l->turn = l->turn + 1 < l->count && l->turn >= l->watched ? l->turn + 1 : l->watched;
        if (!inbox_is_idle(l->order[l->turn]))
            news_watch(l, l->order[l->turn]);
    }
    return 0;
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
        if (!inbox_is_idle(l->order[i]))
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
            fy_shm_publish(p, in);
    }
    return odd;
}
