/* Credit: the permission to send messages to objects.
 *
 * A rank holds messages that find no object, that come before their turn, or whose object waits:
 * later frames in the ring may be the ones for which they wait. A rank that holds many messages of
 * another (held.c) gives that rank a token, and takes it back when most of them are gone. A
 * rank with tokens sends no messages to objects. Outside handlers the call polls until it may send.
 * Messages of handlers wait in queues of their own (fy_pacing). Held messages never wait for
 * messages that wait at their sender. Objects in flight come in the control lane. Older messages
 * are in flight already, and no rank refuses them or makes them wait for others.
 *
 * Tokens pass from rank to rank with objects, and the rank that takes one back need not be the rank
 * that gave it. So only their number counts, in any order. For a moment it may be negative. When
 * ranks come or go some tokens may be lost. Then all ranks forget all tokens, and send new ones
 * where too much is held. The epoch, a number on which all ranks come to agree, says to which set a
 * token belongs. */
#include "core/control.h"
#include "core/fail.h"
#include "core/membership.h"
#include "object/kinds.h"
#include "object/pacing.h"

bool fy_credit_is_withdrawn(ferry *f)
{
    const fy_credit *credit = &fy_objects_of(f)->credit;
    /* relaxed: as in fy_credit_is_plenty; a message may see the epoch and the tokens of two sets,
     * and the next one sees those of one */
    return !fy_head_of(f)->ends && !fy_credit_is_plenty(f) &&
           (fy_head_of(f)->unseen_bytes > fy_objects_of(f)->messages.limit_bytes ||
            atomic_load_explicit(&credit->epoch, memory_order_relaxed) >= fy_peer_shifts(f));
}

/* With the lock: counts tokens. Those of an earlier epoch are forgotten. */
static void credit_add(fy_credit *credit, int tokens, uint32_t epoch)
{
    /* relaxed: written under the lock alone; see fy_credit_is_withdrawn */
    uint32_t before = atomic_load_explicit(&credit->epoch, memory_order_relaxed);
    if (epoch > before) {
        atomic_store_explicit(&credit->epoch, epoch, memory_order_relaxed);
        atomic_store_explicit(&credit->tokens, tokens, memory_order_relaxed);
    } else if (epoch == before) {
        atomic_fetch_add_explicit(&credit->tokens, tokens, memory_order_relaxed);
    }
}

int fy_credit_tell(ferry *f, int rank, int tokens, uint32_t epoch)
{
    fy_frame frame;
    fy_frame_begin(&frame, FY_KIND_CREDIT, 0, 2);
    frame.words[0] = (uint64_t)(int64_t)tokens;
    frame.words[1] = epoch;
    if (rank != fy_head_of(f)->rank)
        return fy_send(f, FY_CONTROL, rank, &frame);
    fy_control_lock(f);
    credit_add(&fy_objects_of(f)->credit, tokens, epoch);
    fy_control_unlock(f);
    return 0;
}

fy_verdict fy_credit_frame(ferry *f, int source, const fy_frame *frame)
{
    int64_t tokens = (int64_t)frame->words[0];
    if (frame->word_count == 2 && tokens >= INT16_MIN && tokens <= INT16_MAX &&
        frame->words[1] <= INT32_MAX)
        credit_add(&fy_objects_of(f)->credit, (int)tokens, (uint32_t)frame->words[1]);
    else
        fy_bad_frame(f, source, frame, "credit");
    return FY_TAKEN;
}
