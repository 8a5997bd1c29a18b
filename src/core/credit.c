/* Credit: the permission to send messages to objects.
 *
 * A rank holds messages that find no object, that come before their turn, or whose object waits:
 * later frames in the ring may be the ones for which they wait. A rank that holds many messages of
 * another (object/held.c) gives that rank a token, and takes it back when most of them are gone. A
 * rank with tokens sends no messages to objects. Outside handlers the call polls until it may send.
 * Messages of handlers wait in queues of their own (send.c). Held messages never wait for messages
 * that wait at their sender. Objects in flight come in the control lane. Older messages are in
 * flight already, and no rank refuses them or makes them wait for others.
 *
 * Tokens pass from rank to rank with objects, and the rank that takes one back need not be the rank
 * that gave it. So only their number counts, in any order. For a moment it may be negative. When
 * ranks come or go some tokens may be lost. Then all ranks forget all tokens, and send new ones
 * where too much is held. The epoch, a number on which all ranks come to agree, says to which set a
 * token belongs. */
#include "core/control.h"
#include "core/fail.h"
#include "core/kinds.h"
#include "core/message.h"
#include "core/outgoing.h"
#include "core/rank.h"

void fy_credit_waive(ferry *f)
{
    f->credit.waived = true;
}

bool fy_credit_is_withdrawn(const ferry *f)
{
    return !fy_credit_is_plenty(f) && !f->credit.waived;
}

size_t fy_credit_bytes(const ferry *f)
{
    return f->options.backlog_bytes;
}

uint32_t fy_credit_epoch(const ferry *f)
{
    return (uint32_t)f->peers.shifts;
}

/* [lock held] */
static void begin(ferry *f, uint32_t epoch)
{
    if (epoch <= f->credit.epoch)
        return;
    f->credit.epoch = epoch;
    /* relaxed: see fy_credit_is_withdrawn */
    atomic_store_explicit(&f->credit.tokens, 0, memory_order_relaxed);
}

/* [lock held] */
static void add(ferry *f, int tokens, uint32_t epoch)
{
    begin(f, epoch);
    if (epoch == f->credit.epoch) /* relaxed: see fy_credit_is_withdrawn */
        atomic_fetch_add_explicit(&f->credit.tokens, tokens, memory_order_relaxed);
}

int fy_credit_tell(ferry *f, int rank, int tokens, uint32_t epoch)
{
    const fy_frame frame = {
        .kind = FY_KIND_CREDIT, .word_count = 2, .words = {(uint64_t)(int64_t)tokens, epoch}};
    if (rank != f->head.rank)
        return fy_send(f, FY_CONTROL, rank, &frame);
    fy_control_lock(f);
    add(f, tokens, epoch);
    fy_control_unlock(f);
    return 0;
}

fy_verdict fy_credit_deliver(ferry *f, int source, const fy_frame *frame)
{
    int64_t tokens = (int64_t)frame->words[0];
    if (frame->word_count == 2 && tokens >= INT16_MIN && tokens <= INT16_MAX &&
        frame->words[1] <= INT32_MAX)
        add(f, (int)tokens, (uint32_t)frame->words[1]);
    else
        fy_bad_frame(f, source, frame, "credit");
    return FY_TAKEN;
}

void fy_credit_renew(ferry *f)
{
    fy_control_lock(f);
    begin(f, (uint32_t)f->peers.shifts);
    fy_control_unlock(f);
}
