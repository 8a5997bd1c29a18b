/* Steps of collectives: polls carry them out in order, each as soon as it can be done. When all
 * steps of a part are done, the plan of the call appends those of the next part. */
#include <string.h>

#include "core/fail.h"
#include "core/kinds.h"
#include "core/outgoing.h"
#include "core/rank.h"
#include "core/run.h"

/* Data go in pieces of this size, so that nothing large is copied when a peer has no room. The
 * least is what fits into the smallest ring. */
enum { PIECE_BYTES = 64 * 1024, PIECE_BYTES_LEAST = 128 };

/* How long a step waits before its rank asks why, and looks at the clock, in polls. Between
 * machines steps of a second are common, and to ask takes a message. */
#define LATE_NS UINT64_C(1000000000)
#define LATE_FAR_NS UINT64_C(10000000000)
enum { LATE_POLLS = 4096 };

/* Sends the next pieces of a step; false when there is no room now. A long piece needs a block of
 * the shared heap, which pieces in flight may have filled. Then it goes in smaller ones: the least
 * always fit into the ring. */
static bool send_pieces(ferry *f, fy_collective *c, const fy_step *step)
{
    size_t most = PIECE_BYTES;
    do {
        size_t left = step->size_bytes - c->sent;
        size_t piece = left < most ? left : most;
        if (fy_has_backlog(f, FY_DATA, step->rank))
            return false;
        fy_frame frame = fy_collective_frame(c, step->tag);
        if (fy_collective_flags(c->call.what) & FY_VARIES)
            frame.words[1] = step->whole_bytes;
        frame.data = (const unsigned char *)step->from + c->sent;
        frame.size_bytes = piece;
        int error = fy_send(f, FY_DATA, step->rank, &frame);
        if (error == FERRY_EPEER) /* what came from there is read before the call fails */
            return false;
        if (error == FERRY_ENOMEM && piece > PIECE_BYTES_LEAST) {
            most = piece / 8;
            continue;
        }
        c->error = error;
        c->sent += piece;
    } while (c->error == 0 && c->sent < step->size_bytes);
    c->sent = 0;
    return true;
}

/* Carries out one step; false when it has to wait. */
static bool do_step(ferry *f, fy_collective *c, const fy_step *step)
{
    const fy_post *post;
    switch ((fy_step_kind)step->kind) {
    case FY_STEP_POST:
        c->posts[step->rank].open = true;
        if (f->collectives.early.first != NULL)
            fy_collective_look_early(f, c);
        return true;
    case FY_STEP_SEND:
        return send_pieces(f, c, step);
    case FY_STEP_AWAIT:
        post = &c->posts[step->rank];
        return post->complete || (step->size_bytes > 0 && post->received >= step->size_bytes);
    case FY_STEP_COMBINE:
        fy_nowait_begin(f);
        fy_collective_combine(c, step->to, step->from, step->high, step->size_bytes);
        fy_nowait_end(f);
        return true;
    case FY_STEP_COPY:
        memmove(step->to, step->from, step->size_bytes);
        return true;
    }
    return true;
}

/* Makes room for the next part; posts that are not complete belong to it too. */
static void clear_part(fy_collective *c)
{
    c->at = c->step_count = 0;
    for (uint32_t i = 0; i < c->post_count; i++)
        if (!c->posts[i].complete)
            return;
    c->post_count = 0;
}

void fy_collective_advance(ferry *f, fy_collective *c)
{
    while (c->error == 0) {
        if (c->at < c->step_count) {
            if (!do_step(f, c, &c->steps[c->at]))
                return;
            c->at++;
            c->doubt_ns = 0;
        } else if (!c->last) {
            clear_part(c);
            c->plan(c);
            c->part++;
            if (c->error != 0)
                (void)fy_fail(f, c->error, "collective %u: no memory for its steps", c->number);
        } else {
            break;
        }
    }
    fy_collective_finish(f, c);
}

void fy_collectives_advance(ferry *f)
{
    for (fy_collective *c = f->collectives.first, *next; c != NULL; c = next) {
        next = c->next;
        if (!c->by_board)
            fy_collective_advance(f, c);
    }
    /* A program that polls never sleeps. */
    if (++f->collectives.polls == LATE_POLLS) {
        f->collectives.polls = 0;
        (void)fy_collectives_look_late(f, f->head.ops->host.now(f->head.port));
    }
}

uint64_t fy_collectives_look_late(ferry *f, uint64_t now)
{
    uint64_t next_ns = fy_collectives_answer(f) ? 0 : UINT64_MAX;
    for (fy_collective *c = f->collectives.first, *next; c != NULL; c = next) {
        next = c->next;
        if (c->by_board)
            continue;
        if (c->doubt_ns == 0) {
            c->doubt_ns = now + (f->collectives.boards != NULL ? LATE_NS : LATE_FAR_NS);
        } else if (now >= c->doubt_ns) {
            c->doubt_ns = UINT64_MAX; /* once for each step */
            fy_collective_board_doubt(f, c);
            if (c->error == 0)
                fy_collective_tell(f, c);
        }
        if (c->error != 0) {
            fy_collective_advance(f, c);
            return 0;
        }
        next_ns = c->doubt_ns < next_ns ? c->doubt_ns : next_ns;
    }
    return next_ns;
}
