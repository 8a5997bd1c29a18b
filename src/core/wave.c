/* Frames of waves: how this rank sends them, and takes in those of other ranks (quiesce.c). The
 * thread that polls the control lane takes them in under its lock, and only notes them. */
#include "core/wave.h"

#include <string.h>

#include "core/fail.h"
#include "core/kinds.h"
#include "core/membership.h"
#include "core/outgoing.h"
#include "core/rest.h"

enum { FAN_OUT = 4, WAVE_WORDS = 4 };

/* ASK and HERE carry these flags of their source. CLOSES: it closes. RETURNED: its main function
 * has returned. COUNTS: its number of collectives counts, because it is a member of the group and
 * knows of no death. */
enum { WHO_CLOSES = 1, WHO_RETURNED = 2, WHO_COUNTS = 4, WHO_SHIFT = 32 };

int fy_wave_place(const ferry *f)
{
    return fy_peers_index(f, f->head.rank);
}

int fy_wave_parent(const ferry *f)
{
    return fy_peers_at(f, (fy_wave_place(f) - 1) / FAN_OUT);
}

/* Children have the places [first, first + count). */
static int first_child(const ferry *f)
{
    int64_t first = (int64_t)fy_wave_place(f) * FAN_OUT + 1;
    int places = f->head.ranks - f->peers.gone_count;
    return first < places ? (int)first : places;
}

int fy_wave_child_count(const ferry *f)
{
    int left = f->head.ranks - f->peers.gone_count - first_child(f);
    return left < FAN_OUT ? left : FAN_OUT;
}

void fy_wave_count(const ferry *f, uint64_t *created, uint64_t *finished)
{
    *created = f->head.work_created + fy_rest_shipments(f) +
               atomic_load_explicit(&f->work_shipped, memory_order_relaxed);
    *finished = f->head.work_finished;
    for (int rank = 0; rank < f->head.ranks; rank++) {
        const fy_peer *page = f->head.peer_pages[rank >> FY_PEER_PAGE_BITS];
        if (page == NULL) {
            rank |= FY_PEER_PAGE - 1;
            continue;
        }
        const fy_peer *peer = &page[rank & (FY_PEER_PAGE - 1)];
        bool gone = f->peers.gone_count != 0 && fy_peer_is_gone(f, rank);
        *created += peer->work_sent + (gone ? peer->work_received : 0);
        *finished += peer->work_received + (gone ? peer->work_sent : 0);
    }
}

bool fy_wave_closes(const ferry *f)
{
    return f->quiescence.closes ||
           (f->closing != FY_CLOSING_NOT && f->collectives.group->self >= 0);
}

/* The later of two eras; 0 is none. They wrap around. */
static uint32_t later_era(uint32_t a, uint32_t b)
{
    return b == 0 || (a != 0 && (int16_t)(a - b) > 0) ? a : b;
}

uint32_t fy_wave_era(const ferry *f)
{
    const fy_group *group = f->collectives.group;
    uint32_t own = group->self >= 0 ? group->number / FY_ERA_NUMBERS + 1 : 0;
    return later_era(own, f->quiescence.era);
}

static size_t set_bytes(const ferry *f)
{
    return fy_set_words(f->head.ranks) * sizeof(uint64_t);
}

static void take_announcement(ferry *f, const fy_frame *frame)
{
    fy_quiescence *q = &f->quiescence;
    if (frame->words[0] <= q->announced_epoch)
        return;
    q->announced_epoch = frame->words[0];
    q->late = frame->tag != 0;
    q->regroups = frame->size_bytes == set_bytes(f);
    if (!q->regroups)
        return;
    memcpy(q->members, frame->data, frame->size_bytes);
    q->number = (uint32_t)frame->words[1];
}

/* Notes in which call the source of ASK or HERE is. */
static void see(ferry *f, int source, const fy_frame *frame)
{
    fy_quiescence *q = &f->quiescence;
    uint64_t who = frame->words[2] >> WHO_SHIFT;
    if ((who & WHO_COUNTS) == 0)
        return;
    q->seen_rank = source;
    q->seen_epoch = frame->words[0];
    q->seen_mark = frame->words[3];
    q->seen_there = (fy_elsewhere){.number = (uint32_t)frame->tag,
                                   .closing = (who & WHO_CLOSES) != 0,
                                   .returned = (who & WHO_RETURNED) != 0};
    /* relaxed: fy_quiesce_doubt reads the rest with the lock held */
    atomic_store_explicit(&q->seen, true, memory_order_relaxed);
}

void fy_wave_begin(fy_quiescence *q, uint64_t epoch, uint64_t mark, int shifts, uint32_t wave)
{
    q->asked = true;
    q->asker = -1;
    q->passed_on = false;
    q->asked_epoch = epoch;
    q->asked_mark = mark;
    q->asked_shifts = shifts;
    q->wave = wave;
    q->answers = 0;
    q->created = q->finished = 0;
    q->closes = false;
    q->era = 0;
}

/* If a root has died, its requests may come by other ways, and late. The last root knows of all
 * ranks that came and went. So of two requests, the one with more knowledge is kept. If both know
 * equally many but different changes, both will know more later. */
static void take_ask(fy_quiescence *q, int source, const fy_frame *frame)
{
    int shifts = frame->words[1] > INT32_MAX ? INT32_MAX : (int)frame->words[1];
    if (q->asked && shifts < q->asked_shifts)
        return;
    fy_wave_begin(q, frame->words[0], frame->words[3], shifts, frame->aux);
    q->asker = source;
    q->asker_handlers = (uint32_t)frame->words[2];
}

fy_verdict fy_wave_deliver(ferry *f, int source, const fy_frame *frame)
{
    fy_quiescence *q = &f->quiescence;
    if (frame->word_count != WAVE_WORDS || frame->handler > WAVE_HERE) {
        fy_bad_frame(f, source, frame, "part of a termination wave");
        return FY_TAKEN;
    }
    switch ((wave_kind)frame->handler) {
    case WAVE_ASK:
        take_ask(q, source, frame);
        see(f, source, frame);
        break;
    case WAVE_HERE:
        see(f, source, frame);
        break;
    case WAVE_ANSWER:
        if (!q->asked || frame->words[0] != q->asked_epoch || frame->aux != q->wave ||
            frame->words[3] != q->asked_mark)
            break;
        q->answers++;
        q->created += frame->words[1];
        q->finished += frame->words[2];
        q->closes |= (frame->tag & 1) != 0;
        q->era = later_era((uint32_t)frame->tag / 2, q->era);
        break;
    case WAVE_ANNOUNCE:
        take_announcement(f, frame);
        break;
    }
    if (f->control_shared)
        f->head.ops->transport.wake(f->head.port, FY_APP);
    return FY_TAKEN;
}

int fy_wave_send(ferry *f, int rank, wave_kind kind, uint64_t created, uint64_t finished)
{
    const fy_quiescence *q = &f->quiescence;
    /* Only an idle rank takes part, so a rank that runs a task need not know yet. */
    fy_frame frame = {
        .kind = FY_KIND_WAVE,
        .quiet = true,
        .word_count = WAVE_WORDS,
        .handler = (uint16_t)kind,
        .aux = q->wave,
        .tag = kind == WAVE_ANNOUNCE ? q->late : (int32_t)(2 * fy_wave_era(f) | fy_wave_closes(f)),
        .words = {kind == WAVE_ANNOUNCE ? q->announced_epoch : q->epoch, created, finished,
                  f->peers.gone_mark}};
    const fy_group *group = f->collectives.group;
    if (kind == WAVE_ASK || kind == WAVE_HERE) {
        uint64_t who = (f->closing != FY_CLOSING_NOT ? WHO_CLOSES : 0) |
                       (f->closing != FY_CLOSING_NOT && f->kept_by_main ? WHO_RETURNED : 0) |
                       (group->self >= 0 && group->dead < 0 ? WHO_COUNTS : 0);
        frame.tag = (int32_t)f->collectives.group->number;
        frame.words[2] = fy_handlers_signature(f) | who << WHO_SHIFT;
    }
    if (kind == WAVE_ANNOUNCE && q->regroups) {
        frame.words[1] = q->number;
        frame.data = q->members;
        frame.size_bytes = set_bytes(f);
    }
    int error = fy_send(f, FY_CONTROL, rank, &frame);
    return error == FERRY_EPEER ? 0 : error;
}

int fy_wave_tell_children(ferry *f, wave_kind kind)
{
    int error = 0;
    uint64_t shifts = kind == WAVE_ASK ? (uint64_t)f->peers.shifts : 0;
    for (int i = 0; i < fy_wave_child_count(f) && error == 0; i++)
        error = fy_wave_send(f, fy_peers_at(f, first_child(f) + i), kind, shifts, 0);
    return error;
}

int fy_wave_announce(ferry *f)
{
    int error = fy_wave_tell_children(f, WAVE_ANNOUNCE);
    if (error == 0 && f->quiescence.shifted && fy_wave_place(f) > 0)
        error = fy_wave_send(f, fy_wave_parent(f), WAVE_ANNOUNCE, 0, 0);
    return error;
}
