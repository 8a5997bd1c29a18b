/* A movement, from ferry_mover_start to ferry_mover_wait.
 *
 * The start sets `ready` of every direct link out, packs and sends the others, and runs the copies
 * within the rank. After that fy_mover_advance, which the wait and every poll call, runs the copies
 * of each link in whose source is ready, and sets `taken`. It also notes which links out have been
 * taken.
 *
 * A rank that sleeps does not read counters. So before it sleeps it sets the flag of each link for
 * which it waits, and then looks at the counters once more. A rank that changes a counter looks at
 * the flag afterwards, and sends a frame if it is set. Each has a sequentially consistent fence
 * between its two steps, so at least one of them sees the other's step. */
#include <ferry/member.h>

#include "base/fetch.h"
#include "core/fail.h"
#include "core/operation.h"
#include "mover/run/state.h"

enum { SPINS = 200 };

bool fy_mover_is_done(const ferry_mover *m)
{
    return m->run.error != 0 ||
           (!m->run.own_left && m->bound.in.left_count == 0 && m->bound.out.left_count == 0);
}

/* Called after a counter was changed: wakes the other end if it sleeps. */
static void run_wake(ferry_mover *m, int rank, const _Atomic uint32_t *sleeps)
{
    /* relaxed: ordered after the counter by the caller's fence, which pairs with that in
     * fy_mover_would_miss */
    if (atomic_load_explicit(sleeps, memory_order_relaxed))
        (void)fy_mover_send(m, rank, FY_MOVER_WAKE, 0, 0, NULL, 0);
}

/* The offset of this movement's copies in the buffer of a link. */
static ptrdiff_t slot_of(uint64_t epoch, const fy_link_end *end)
{
    return end->mode == FY_LINK_STAGED ? (ptrdiff_t)(epoch % FY_SLOTS * end->slot_bytes) : 0;
}

static void link_pack(ferry_mover *m, fy_link_end *end)
{
    for (size_t i = 0; i < end->move_count; i++)
        fy_move_run(&end->moves[i], &m->plan.copying, slot_of(m->run.epoch, end), 0);
}

/* Packs into the next slot, if the target has read it. */
static bool stage(ferry_mover *m, fy_link_end *end)
{
    if (end->acked + FY_SLOTS < m->run.epoch)
        /* acquire: the slot has been read; pairs with the release in set_taken */
        end->acked = atomic_load_explicit(&end->channel->taken, memory_order_acquire);
    if (end->acked + FY_SLOTS < m->run.epoch)
        return false;
    link_pack(m, end);
    end->sent = m->run.epoch;
    return true;
}

/* Sets `ready`: the grids, or a slot, have the data of this movement. The caller wakes the
 * target. */
static void set_ready(uint64_t epoch, fy_link_end *end)
{
    /* release: the data are written; pairs with the acquire in arrived */
    atomic_store_explicit(&end->channel->ready, epoch, memory_order_release);
}

static void publish(ferry_mover *m)
{
    bool any = false;
    for (size_t i = 0; i < m->bound.out.end_count; i++) {
        fy_link_end *end = &m->bound.out.ends[i];
        if (end->mode == FY_LINK_DIRECT || (end->mode == FY_LINK_STAGED && stage(m, end))) {
            set_ready(m->run.epoch, end);
            any = true;
        }
    }
    if (!any)
        return;
    atomic_thread_fence(memory_order_seq_cst);
    for (size_t i = 0; i < m->bound.out.end_count; i++)
        if (m->bound.out.ends[i].channel != NULL)
            run_wake(m, m->bound.out.ends[i].rank, &m->bound.out.ends[i].channel->target_sleeps);
}

/* Sends the packed copies of a link out. */
static void mover_send_packed(ferry_mover *m, fy_link_end *end)
{
    size_t each = m->plan.options.packet_bytes > 0 ? m->plan.options.packet_bytes : end->bytes;
    for (size_t at = 0; at < end->bytes; at += each) {
        size_t bytes = end->bytes - at < each ? end->bytes - at : each;
        int error =
            fy_mover_send(m, end->rank, FY_MOVER_DATA, m->run.epoch, at, end->buffer + at, bytes);
        if (error != 0)
            m->run.error = error;
    }
    end->sent = m->run.epoch;
}

static void link_send(ferry_mover *m, fy_link_end *end)
{
    link_pack(m, end);
    if (end->acked == end->sent)
        mover_send_packed(m, end);
}

static void mover_send_all(ferry_mover *m)
{
    for (size_t i = 0; i < m->bound.out.end_count; i++)
        if (m->bound.out.ends[i].mode == FY_LINK_MESSAGES)
            link_send(m, &m->bound.out.ends[i]);
}

/* Whether the source of a link has the data of this movement ready. */
static bool link_arrived(uint64_t epoch, const fy_link_end *end)
{
    if (end->channel == NULL)
        return end->arrived >= epoch;
    /* acquire: pairs with the release in set_ready */
    return atomic_load_explicit(&end->channel->ready, memory_order_acquire) >= epoch;
}

static bool taken(ferry_mover *m, fy_link_end *end)
{
    if (end->mode == FY_LINK_STAGED && end->sent < m->run.epoch && stage(m, end)) {
        set_ready(m->run.epoch, end);
        atomic_thread_fence(memory_order_seq_cst);
        run_wake(m, end->rank, &end->channel->target_sleeps);
    }
    if (end->mode == FY_LINK_DIRECT)
        /* acquire: the target has read the grids; pairs with the release in set_taken */
        return atomic_load_explicit(&end->channel->taken, memory_order_acquire) >= m->run.epoch;
    if (end->mode == FY_LINK_MESSAGES && end->sent < m->run.epoch && end->acked == end->sent)
        mover_send_packed(m, end);
    return end->sent == m->run.epoch;
}

static void set_taken(ferry_mover *m, fy_link_end *end)
{
    if (end->channel == NULL) {
        int error = fy_mover_send(m, end->rank, FY_MOVER_ACK, m->run.epoch, 0, NULL, 0);
        if (error != 0)
            m->run.error = error;
        return;
    }
    /* release: the grids have been read; pairs with the acquire in taken */
    atomic_store_explicit(&end->channel->taken, m->run.epoch, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    run_wake(m, end->rank, &end->channel->source_sleeps);
}

static void run_end(ferry_mover *m, fy_link_end *end)
{
    for (size_t i = 0; i < end->move_count; i++)
        fy_move_run(&end->moves[i], &m->plan.how, 0, slot_of(m->run.epoch, end));
    set_taken(m, end);
}

/* With options.ordered: when the data of all links have come, runs all moves in order. */
static int advance_ordered(ferry_mover *m)
{
    for (size_t i = 0; i < m->bound.in.left_count; i++)
        if (!link_arrived(m->run.epoch, &m->bound.in.ends[m->bound.in.left[i]]))
            return 0;
    for (size_t i = 0; i < m->bound.sequence_count; i++)
        fy_move_run(m->bound.sequence[i].move, &m->plan.how, 0,
                    m->bound.sequence[i].end ? slot_of(m->run.epoch, m->bound.sequence[i].end) : 0);
    for (size_t i = 0; i < m->bound.in.end_count; i++)
        set_taken(m, &m->bound.in.ends[i]);
    m->bound.in.left_count = 0;
    return 1;
}

static int advance_in(ferry_mover *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->bound.in.left_count; i++) {
        fy_link_end *end = &m->bound.in.ends[m->bound.in.left[i]];
        if (link_arrived(m->run.epoch, end))
            run_end(m, end);
        else
            m->bound.in.left[kept++] = m->bound.in.left[i];
    }
    int count = (int)(m->bound.in.left_count - kept);
    m->bound.in.left_count = kept;
    return count;
}

static int advance_out(ferry_mover *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->bound.out.left_count; i++)
        if (!taken(m, &m->bound.out.ends[m->bound.out.left[i]]))
            m->bound.out.left[kept++] = m->bound.out.left[i];
    int count = (int)(m->bound.out.left_count - kept);
    m->bound.out.left_count = kept;
    return count;
}

static void set_flags(ferry_mover *m, uint32_t value)
{
    m->run.flagged = value != 0;
    /* relaxed: ordered by the fence in fy_mover_would_miss when set; a late clear costs a frame */
    for (size_t i = 0; i < m->bound.in.end_count; i++)
        if (m->bound.in.ends[i].channel != NULL)
            atomic_store_explicit(&m->bound.in.ends[i].channel->target_sleeps, value,
                                  memory_order_relaxed);
    for (size_t i = 0; i < m->bound.out.end_count; i++)
        if (m->bound.out.ends[i].channel != NULL)
            atomic_store_explicit(&m->bound.out.ends[i].channel->source_sleeps, value,
                                  memory_order_relaxed);
}

/* Runs the copies within the rank. An ordered movement has them in its sequence instead. */
static int run_own(ferry_mover *m)
{
    m->run.own_left = false;
    if (m->bound.sequence != NULL)
        return m->bound.in.end_count == 0 ? advance_ordered(m) : 0;
    fy_moves_run(m->bound.own_moves, m->bound.own_count, &m->plan.how);
    return 1;
}

/* Prefetches the slots of the next movement. Their targets have read them, so packing would wait
 * for each cache line. Now there is time for that. */
static void fetch_slots(const fy_direction *out, uint64_t epoch)
{
    for (size_t i = 0; i < out->end_count; i++) {
        const fy_link_end *end = &out->ends[i];
        if (end->mode != FY_LINK_STAGED)
            continue;
        const char *slot = end->buffer + (epoch + 1) % FY_SLOTS * end->slot_bytes;
        for (size_t at = 0; at < end->slot_bytes; at += _Alignof(fy_mover_channel))
            fy_fetch_to_write(slot + at);
    }
}

int fy_mover_advance(ferry_mover *m)
{
    int count = 0;
    if (m->run.flagged)
        set_flags(m, 0);
    if (m->run.own_left && m->plan.options.deferred)
        mover_send_all(m); /* first, because other ranks wait for it */
    if (m->run.own_left) {
        count += run_own(m);
        fetch_slots(&m->bound.out, m->run.epoch);
    }
    if (m->bound.in.left_count > 0)
        count += m->bound.sequence != NULL ? advance_ordered(m) : advance_in(m);
    if (m->bound.out.left_count > 0)
        count += advance_out(m);
    return count;
}

/* Whether the rank of an end starts no more movements. */
static bool has_gone(ferry *f, const fy_link_end *end)
{
    return end->is_over || ferry_peer_is_gone(f, end->rank);
}

/* Whether the movement waits for a rank that has gone. An ordered movement keeps the ends whose
 * data have come until all have. */
static bool needs_gone(const ferry_mover *m)
{
    const fy_direction *in = &m->bound.in, *out = &m->bound.out;
    bool needs = false;
    for (size_t i = 0; i < in->left_count && !needs; i++) {
        const fy_link_end *end = &in->ends[in->left[i]];
        needs = has_gone(m->plan.f, end) && !link_arrived(m->run.epoch, end);
    }
    for (size_t i = 0; i < out->left_count && !needs; i++)
        needs = has_gone(m->plan.f, &out->ends[out->left[i]]);
    return needs && !fy_mover_is_done(m);
}

bool fy_mover_lost_peer(ferry_mover *m)
{
    if (!needs_gone(m))
        return false;
    /* Counters that the rank changed before it went still count. */
    (void)fy_mover_advance(m);
    if (needs_gone(m))
        m->run.error = FERRY_EPEER;
    return fy_mover_is_done(m);
}

bool fy_mover_would_miss(ferry_mover *m)
{
    if (fy_mover_is_done(m) || m->run.own_left)
        return true;
    set_flags(m, 1);
    /* seq_cst: between the flags and the last spin; pairs with the fences before run_wake */
    atomic_thread_fence(memory_order_seq_cst);
    for (size_t i = 0; i < m->bound.in.left_count && m->bound.sequence == NULL; i++)
        if (link_arrived(m->run.epoch, &m->bound.in.ends[m->bound.in.left[i]]))
            return true;
    for (size_t i = 0; i < m->bound.out.left_count; i++)
        if (taken(m, &m->bound.out.ends[m->bound.out.left[i]]))
            return true;
    bool all = m->bound.sequence != NULL && m->bound.in.left_count > 0;
    for (size_t i = 0; i < m->bound.in.left_count && all; i++)
        all = link_arrived(m->run.epoch, &m->bound.in.ends[m->bound.in.left[i]]);
    if (all)
        return true;
    return fy_mover_lost_peer(m);
}

void fy_mover_tell_loss(ferry_mover *m)
{
    const fy_direction *directions[] = {&m->bound.in, &m->bound.out};
    if (m->run.told_loss)
        return;
    m->run.told_loss = true;
    for (int way = 0; way < 2; way++)
        for (size_t i = 0; i < directions[way]->end_count; i++)
            (void)fy_mover_send(m, directions[way]->ends[i].rank, FY_MOVER_LOST,
                                (uint64_t)(int64_t)m->run.error, 0, NULL, 0);
}

void fy_mover_finish(ferry_mover *m)
{
    if (m->run.flagged)
        set_flags(m, 0);
    if (m->run.error)
        fy_mover_tell_loss(m);
    m->run.in_flight = false;
    fy_list_remove(&m->active);
    fy_blocks_let_go(m);
    if (m->run.op != 0)
        fy_op_end(m->plan.f, m->run.op, m->run.error);
    m->run.op = 0;
}

static int report(const ferry_mover *m)
{
    if (m->run.error == 0 || m->run.error == FERRY_EPEER)
        return m->run.error == 0 ? 0
                                 : fy_fail(m->plan.f, m->run.error,
                                           "mover: a rank that it needs is dead, has left, or has "
                                           "freed the mover without this movement");
    return fy_fail(m->plan.f, m->run.error,
                   "mover: it is lost: binding it, moving, or following blocks to new owners "
                   "failed here or on a rank that it connects");
}

/* A source has freed the mover before this rank was bound. */
static int lose_orphan(ferry_mover *m)
{
    m->run.error = FERRY_EPEER;
    fy_mover_tell_loss(m);
    return fy_fail(m->plan.f, m->run.error,
                   "mover_start: rank %d has freed the grids that this mover reads, without a "
                   "movement",
                   m->bound.orphan->rank);
}

int ferry_mover_start(ferry_mover *m, const ferry_track *track)
{
    if (m->run.in_flight)
        return fy_fail(m->plan.f, FERRY_ESTATE, "mover_start: the mover is in flight");
    if (m->run.error)
        return report(m);
    if (m->bound.orphan != NULL)
        return lose_orphan(m);
    int error = m->run.unsettled ? fy_blocks_away(m) : fy_blocks_hold(m);
    if (error)
        return error;
    if (track != NULL) {
        error = fy_op_start(m->plan.f, track, ferry_rank(m->plan.f), 0, 0, &m->run.op);
        if (error) {
            fy_blocks_let_go(m);
            return error;
        }
        fy_op_aside(m->plan.f, m->run.op);
    }
    m->run.epoch++;
    m->run.in_flight = true;
    publish(m);
    if (!m->plan.options.deferred)
        mover_send_all(m);
    for (size_t i = 0; i < m->bound.out.end_count; i++)
        m->bound.out.left[i] = i;
    m->bound.out.left_count = m->bound.out.end_count;
    for (size_t i = 0; i < m->bound.in.end_count; i++)
        m->bound.in.left[i] = i;
    m->bound.in.left_count = m->bound.in.end_count;
    m->run.own_left = true;
    if (!m->plan.options.deferred)
        (void)fy_mover_advance(m);
    (void)fy_mover_lost_peer(m);
    fy_list_insert(&fy_movers_of(m->plan.f)->active, &m->active);
    fy_layer_due(m->plan.f, FY_LAYER_MOVER);
    return 0;
}

/* Spins before the rank sleeps: a neighbour is often ready soon, and waking up costs more. */
static void spin(ferry_mover *m)
{
    for (int i = 0; i < SPINS && !fy_mover_is_done(m); i++)
        (void)fy_mover_advance(m);
}

int ferry_mover_wait(ferry_mover *m)
{
    if (!m->run.in_flight)
        return report(m);
    if (fy_in_handler(m->plan.f))
        return fy_fail(m->plan.f, FERRY_ESTATE,
                       "mover_wait: not allowed inside a handler or callback");
    while (m->run.in_flight) {
        spin(m);
        if (fy_mover_is_done(m))
            fy_mover_finish(m);
        else
            (void)ferry_wait(m->plan.f, FERRY_FOREVER);
    }
    return report(m);
}

int ferry_mover_test(ferry_mover *m)
{
    if (!m->run.in_flight)
        return report(m);
    if (!fy_in_handler(m->plan.f))
        (void)ferry_poll(m->plan.f);
    else
        (void)fy_mover_advance(m);
    if (m->run.in_flight && !fy_mover_is_done(m))
        return FERRY_EAGAIN;
    if (m->run.in_flight)
        fy_mover_finish(m);
    return report(m);
}
