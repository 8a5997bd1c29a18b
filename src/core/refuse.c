/* Refusals: a rank may answer a peer that takes no answers. The rank then leaves that peer's
 * requests in their ring too, so that the frames that wait for room stay bounded. The peer will
 * find no room, and poll.
 *
 * Two ranks may refuse each other's requests, although each would take the other's answers if it
 * did not have to send its own. So a rank that refuses for a while tells one of the peers
 * concerned, in turn. If a peer whose requests this rank refuses too tells it so, this rank takes
 * all frames of that peer for one round. That adds no more to its backlog than the ring holds, and
 * makes room for the other's answers. Then it tells the peer so in turn. Words go to and fro while
 * both refuse.
 *
 * A peer that only does not poll answers nothing, and finds no room when its ring is full. It may
 * run a task, which each word to its helper delays. So the pauses before words that are no answers
 * grow. */
#include "core/kinds.h"
#include "core/outgoing.h"
#include "core/rank.h"

/* Whether a frame may make this rank answer with more than the end of an operation. */
static bool is_query(const fy_frame *frame)
{
    const fy_kind_info *info = fy_kind_find(frame->kind);
    return info != NULL && (info->properties & FY_FRAME_ASKS) != 0;
}

static bool is_over(ferry *f, int source)
{
    return fy_answer_bytes(f, source) > f->options.backlog_bytes;
}

bool fy_refuses(ferry *f, int source, const fy_frame *frame)
{
    if (f->relieved == source + 1 || !is_query(frame) || !is_over(f, source))
        return false;
    if (f->refused == 0 || f->refused == f->told)
        f->refused = source + 1;
    fy_rest_due(f);
    return true;
}

void fy_refusals_settle(ferry *f)
{
    enum { TELL_NS = 1000 * 1000 };
    int tells = f->refused;
    f->refused = f->relieved = 0;
    fy_rest_due(f);
    if (tells == 0) {
        f->tell_pause_ns = 0;
        return;
    }
    /* relaxed: pairs with fy_refusal_deliver; one that comes just now counts in the next round */
    int refuser = atomic_exchange_explicit(&f->refuser, 0, memory_order_relaxed);
    uint64_t now = f->head.ops->host.now(f->head.port);
    if (refuser != 0 && is_over(f, refuser - 1)) {
        f->relieved = tells = refuser;
        f->tell_pause_ns = 0;
    } else if (f->tell_pause_ns == 0) {
        tells = 0;
    } else if (now - f->tell_since_ns < f->tell_pause_ns) {
        return;
    }
    if (tells != 0) {
        const fy_frame frame = {.kind = FY_KIND_REFUSAL};
        (void)fy_send_now(f, tells - 1, &frame); /* said again, or the peer is gone */
        f->told = tells;
    }
    f->tell_pause_ns += TELL_NS;
    f->tell_since_ns = now;
}

fy_verdict fy_refusal_deliver(ferry *f, int source, const fy_frame *frame)
{
    (void)frame;
    /* relaxed: pairs with fy_refusals_settle; no other data depend on the word. If several ranks
     * refuse, only the last counts; the others tell it again. */
    atomic_store_explicit(&f->refuser, source + 1, memory_order_relaxed);
    return FY_TAKEN;
}
