/* The control lane: which thread polls it, and when. */
#include "core/control.h"

#include "core/outgoing.h"
#include "core/rank.h"

/* How long a thread that finds no room waits. */
enum { CONTROL_PAUSE_NS = 2000 };

void fy_control_lock(ferry *f)
{
    if (f->control_shared)
        fy_mutex_lock(&f->control_lock);
}

void fy_control_unlock(ferry *f)
{
    if (f->control_shared)
        fy_mutex_unlock(&f->control_lock);
}

void fy_control_share(ferry *f, bool shared)
{
    f->control_shared = shared;
    f->head.due = shared ? f->head.due | FY_DUE_HELPER : f->head.due & ~FY_DUE_HELPER;
    fy_layers_due(f);
}

bool fy_control_is_shared(const ferry *f)
{
    return f->control_shared;
}

void fy_control_serve(ferry *f, void (*poll)(ferry *f))
{
    f->helper_poll = poll;
}

static inline bool has_control_news(const ferry *f)
{
    /* relaxed: a later poll sees a change that this one misses */
    return f->control_tells ? atomic_load_explicit(f->control_news, memory_order_relaxed) != 0
                            : f->head.ops->transport.pending(f->head.port, FY_CONTROL);
}

int fy_control_look(ferry *f)
{
    f->head.unseen_bytes = 0;
    if (!f->control_shared)
        return fy_control_poll(f);
    if (!has_control_news(f))
        return 0;
    fy_control_lock(f);
    int count = fy_control_poll(f);
    fy_control_unlock(f);
    return count;
}

/* Frames that wait for a poll make their senders wait, and the helpers of those may not poll
 * before. */
static void poll_as_helper(ferry *f)
{
    fy_control_lock(f);
    if (f->helper_poll != NULL)
        f->helper_poll(f);
    fy_control_unlock(f);
}

int fy_send_control(ferry *f, fy_thread thread, int rank, const fy_frame *frame, bool block)
{
    if (thread == FY_APP && !block)
        return fy_send(f, FY_CONTROL, rank, frame);
    for (;;) {
        int error =
            block ? f->head.ops->heap.send_block(f->head.port, thread, FY_CONTROL, rank, frame)
                  : f->head.ops->transport.send(f->head.port, thread, FY_CONTROL, rank, frame);
        if (error != FERRY_EAGAIN)
            return error;
        if (thread == FY_HELPER)
            poll_as_helper(f);
        /* The target takes control frames at any time, so room comes soon. */
        f->head.ops->transport.wait(f->head.port, thread,
                                    f->head.ops->host.now(f->head.port) + CONTROL_PAUSE_NS);
    }
}
