/* The mover layer of a rank: frames to movers, progress in every poll, and going to sleep. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "core/outgoing.h"
#include "mover/run/state.h"

typedef struct slot {
    uint64_t key; /* number + 1 */
    ferry_mover *mover;
} slot;

fy_movers *fy_movers_of(const ferry *f)
{
    return fy_layer_state(f, FY_LAYER_MOVER);
}

fy_link_end *fy_direction_find(const fy_direction *direction, int rank)
{
    for (size_t i = 0; i < direction->end_count; i++)
        if (direction->ends[i].rank == rank)
            return &direction->ends[i];
    return NULL;
}

ferry_mover *fy_movers_find(const fy_movers *movers, uint32_t number)
{
    const slot *found = fy_table_find(&movers->by_number, (uint64_t)number + 1);
    return found != NULL ? found->mover : NULL;
}

static void take_ask(ferry_mover *m, int source, const fy_frame *frame)
{
    fy_ask *ask = fy_malloc(sizeof *ask + frame->size_bytes);
    fy_movers_news(m->plan.f);
    m->bound.ask_count++;
    if (ask == NULL) {
        m->run.error = FERRY_ENOMEM;
        return;
    }
    *ask = (fy_ask){.next = m->bound.asks,
                    .rank = source,
                    .count = frame->size_bytes / sizeof(fy_pair),
                    .size_bytes = frame->size_bytes};
    if (ask->size_bytes > 0)
        memcpy(ask->pairs, frame->data, ask->size_bytes);
    m->bound.asks = ask;
}

/* Puts a piece of packed copies into the buffer. The source is at most one movement ahead. */
static void take_data(ferry_mover *m, fy_link_end *end, const fy_frame *frame)
{
    uint64_t offset = frame->words[2];
    if (end->mode != FY_LINK_MESSAGES || end->buffer == NULL ||
        frame->words[1] != end->arrived + 1 || offset != end->arrived_bytes ||
        frame->size_bytes > end->bytes - offset)
        return;
    memcpy(end->buffer + offset, frame->data, frame->size_bytes);
    end->arrived_bytes += frame->size_bytes;
    if (end->arrived_bytes == end->bytes) {
        end->arrived++;
        end->arrived_bytes = 0;
    }
    if (m->run.in_flight)
        (void)fy_mover_advance(m);
}

static void take_ack(ferry_mover *m, fy_link_end *end, const fy_frame *frame)
{
    if (frame->words[1] != end->acked + 1 || frame->words[1] > end->sent)
        return;
    end->acked++;
    if (m->run.in_flight)
        (void)fy_mover_advance(m);
}

/* Takes FY_MOVER_DATA and FY_MOVER_ACK. */
static void take_packed(ferry_mover *m, int source, const fy_frame *frame)
{
    const bool acks = frame->aux == FY_MOVER_ACK;
    fy_link_end *end = fy_direction_find(acks ? &m->bound.out : &m->bound.in, source);
    if (end == NULL || frame->words[0] != fy_mover_name(m->number, m->round))
        return;
    if (acks)
        take_ack(m, end, frame);
    else
        take_data(m, end, frame);
}

/* A frame whose mover does not exist is dropped: the mover was freed after an error. */
static fy_verdict movers_deliver(ferry *f, int source, const fy_frame *frame)
{
    ferry_mover *m = fy_movers_find(fy_movers_of(f), (uint32_t)frame->words[0]);
    switch ((fy_mover_frame)frame->aux) {
    case FY_MOVER_HANDSHAKE:
        fy_handshake_take(f, source, frame);
        break;
    case FY_MOVER_DONE:
        fy_done_take(f, source, frame->words[0]);
        break;
    case FY_MOVER_LOST:
        fy_loss_take(f, source, frame->words[0], (int)(int64_t)frame->words[1]);
        break;
    case FY_MOVER_ASK:
        if (m != NULL)
            take_ask(m, source, frame);
        break;
    case FY_MOVER_DATA:
    case FY_MOVER_ACK:
        if (m != NULL)
            take_packed(m, source, frame);
        break;
    case FY_MOVER_POST:
        fy_exchange_take(f, source, frame);
        break;
    case FY_MOVER_WAKE:
        break;
    }
    return FY_TAKEN;
}

int fy_mover_send(ferry_mover *m, int rank, fy_mover_frame what, uint64_t a, uint64_t b,
                  const void *data, size_t size_bytes)
{
    const fy_frame frame = {.kind = FY_KIND_MOVER,
                            .word_count = 3,
                            .aux = what,
                            .words = {fy_mover_name(m->number, m->round), a, b},
                            .data = data,
                            .size_bytes = size_bytes};
    return fy_send(m->plan.f, FY_DATA, rank, &frame);
}

static int open_movers(ferry *f, const ferry_options *options)
{
    (void)options;
    fy_movers *movers = fy_calloc(1, sizeof *movers);
    if (movers == NULL || fy_table_init(&movers->by_number, sizeof(slot))) {
        free(movers);
        return fy_fail(f, FERRY_ENOMEM, "open: no memory for the mover layer");
    }
    fy_list_init(&movers->active);
    fy_layer_state_set(f, FY_LAYER_MOVER, movers);
    return 0;
}

static void close_movers(ferry *f)
{
    fy_movers *movers = fy_movers_of(f);
    size_t index = 0;
    for (slot *s; (s = fy_table_next(&movers->by_number, &index)) != NULL;)
        fy_mover_destroy(s->mover);
    fy_table_fini(&movers->by_number);
    fy_handshakes_close(movers);
    fy_block_sets_close(movers);
    free(movers);
    fy_layer_state_set(f, FY_LAYER_MOVER, NULL);
}

static int movers_progress(ferry *f)
{
    fy_movers *movers = fy_movers_of(f);
    int count = movers->news;
    movers->news = false;
    for (fy_link *link = movers->active.next, *next; link != &movers->active; link = next) {
        ferry_mover *m = (ferry_mover *)(void *)link;
        next = link->next;
        count += fy_mover_advance(m);
        if (fy_mover_is_done(m)) {
            fy_mover_finish(m);
            count++;
        }
    }
    if (count == 0 && fy_list_empty(&movers->active))
        fy_layer_rest(f, FY_LAYER_MOVER);
    return count;
}

static bool movers_busy(ferry *f)
{
    fy_movers *movers = fy_movers_of(f);
    if (movers->news)
        return true;
    for (fy_link *link = movers->active.next; link != &movers->active; link = link->next)
        if (fy_mover_would_miss((ferry_mover *)(void *)link))
            return true;
    return false;
}

static void movers_peer_gone(ferry *f, int rank)
{
    fy_movers *movers = fy_movers_of(f);
    (void)rank;
    for (fy_link *link = movers->active.next; link != &movers->active; link = link->next)
        if (fy_mover_lost_peer((ferry_mover *)(void *)link))
            fy_movers_news(f);
}

/* Objects that are held could not go to other ranks. */
static bool movers_leave(ferry *f, int successor)
{
    (void)successor;
    fy_block_sets_leave(fy_movers_of(f));
    return true;
}

static const fy_kind_info kind = {movers_deliver, NULL, "mover", 0};

const fy_layer_ops fy_mover_layer = {.layer = FY_LAYER_MOVER,
                                     .name = "mover",
                                     .kinds = &kind,
                                     .kind_count = 1,
                                     .open = open_movers,
                                     .close = close_movers,
                                     .progress = movers_progress,
                                     .busy = movers_busy,
                                     .peer_gone = movers_peer_gone,
                                     .leave = movers_leave};

int fy_movers_enter(ferry_mover *m)
{
    fy_movers *movers = fy_movers_of(m->plan.f);
    void *place;
    m->number = movers->next++;
    int error = fy_table_insert(&movers->by_number, (uint64_t)m->number + 1, &place);
    if (error == 0)
        ((slot *)place)->mover = m;
    return error;
}

int fy_movers_rename(ferry *f, ferry_mover *m, uint32_t next)
{
    fy_movers *movers = fy_movers_of(f);
    if (m != NULL)
        fy_movers_leave(m);
    movers->next = m != NULL ? next - 1 : next;
    return m != NULL ? fy_movers_enter(m) : 0;
}

bool fy_arrays_have(fy_arrays arrays, const ferry_xarray *x)
{
    for (size_t i = 0; i < arrays.count; i++)
        if (arrays.items[i] == x)
            return true;
    return false;
}

ferry_mover *fy_movers_next(ferry *f, fy_arrays arrays, const ferry_mover *after)
{
    const fy_movers *movers = fy_movers_of(f);
    ferry_mover *next = NULL;
    size_t index = 0;
    for (const slot *s; (s = fy_table_next(&movers->by_number, &index)) != NULL;) {
        ferry_mover *m = s->mover;
        if ((after != NULL && m->number <= after->number) ||
            (next != NULL && m->number > next->number))
            continue;
        if (fy_arrays_have(arrays, m->plan.source) || fy_arrays_have(arrays, m->plan.target))
            next = m;
    }
    return next;
}

void fy_movers_leave(ferry_mover *m)
{
    fy_movers *movers = fy_movers_of(m->plan.f);
    slot *found = fy_table_find(&movers->by_number, (uint64_t)m->number + 1);
    if (found != NULL && found->mover == m)
        fy_table_remove(&movers->by_number, found);
}
