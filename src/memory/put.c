/* Put: a copy by the caller if the target is on this rank or in the shared heap of its node.
 * Otherwise the data travel in pieces, which the target checks and copies one by one.
 *
 * Every piece names the whole range. The target ends the operation after the last piece, or as
 * failed after the first piece that does not fit. Each further piece that does not fit ends it
 * again, without effect: an operation ends once.
 *
 * A put has a tag or FY_NO_TAG. tags.h says what a poll for another tag does with it. */
#include <string.h>

#include "core/fail.h"
#include "core/outgoing.h"
#include "core/work.h"
#include "memory/state.h"

/* The piece of a put that starts at byte `sent`. */
static inline fy_frame piece_of(const ferry_piece *what, size_t sent, const fy_put_how *how)
{
    uintptr_t target = (uintptr_t)what->target;
    size_t left = what->size_bytes - sent;
    size_t piece = left < FY_PIECE_BYTES ? left : FY_PIECE_BYTES;
    bool ends = piece == left && how->part != FY_PUT_PART;
    return (fy_frame){
        .kind = FY_KIND_PUT,
        .word_count = FY_PUT_WORDS,
        .handler = !ends          ? FY_PUT_PIECE
                   : how->op != 0 ? FY_PUT_LAST
                                  : FY_PUT_COUNTED,
        .op = how->op,
        .tag = how->tag,
        .words = {target + sent, target, what->size_bytes},
        .data = piece == 0 ? NULL : (const unsigned char *)what->source + sent,
        .size_bytes = piece,
    };
}

/* FERRY_EAGAIN comes only before the first piece has left. */
int fy_put_pieces(ferry *f, int rank, const ferry_piece *what, const fy_put_how *how)
{
    bool whole = how->part == FY_PUT_WHOLE, one = what->size_bytes <= FY_PIECE_BYTES;
    int error = whole && !one ? fy_check_room(f, "put") : 0;
    for (size_t sent = 0; error == 0; sent += FY_PIECE_BYTES) {
        const fy_frame frame = piece_of(what, sent, how);
        error = fy_send_paced(f, rank, &frame, whole && one ? "put" : NULL);
        if (error == 0 && frame.handler == FY_PUT_COUNTED)
            fy_work_goes(f, rank);
        if (what->size_bytes - sent <= FY_PIECE_BYTES)
            break;
    }
    return error;
}

static __attribute__((noinline)) int put_slowly(ferry *f, int rank, const ferry_piece *what,
                                                const ferry_track *track)
{
    size_t size_bytes = what->size_bytes;
    int error = fy_memory_check(f, "put", rank, what->target, what->source, size_bytes);
    if (error != 0)
        return error;
    const fy_op_about about = fy_memory_about(what->source, what->target);
    bool here = rank == ferry_rank(f);
    bool direct = here ? fy_memory_is_open(f, what->target, size_bytes)
                       : fy_memory_is_direct(f, rank, what->target, size_bytes);
    if (here && !direct)
        return fy_memory_refused(f, "put", rank, (uintptr_t)what->target, size_bytes);
    uint32_t op;
    error = fy_memory_start(f, rank, &about, size_bytes, track, &op);
    if (error != 0)
        return error;
    const fy_put_how how = {.op = op, .part = FY_PUT_WHOLE, .tag = FY_NO_TAG};
    if (direct)
        fy_memory_copy_counted(f, what, FY_PROFILE_PUT);
    else
        error = fy_put_pieces(f, rank, what, &how);
    if (error != 0) {
        fy_op_drop(f, op);
        return error;
    }
    fy_op_submitted(f, op);
    if (direct)
        fy_op_end(f, op, 0);
    return 0;
}

int ferry_put(ferry *f, int rank, void *target, const void *source, size_t size_bytes,
              const ferry_track *track)
{
    if (track == NULL && fy_memory_is_copy(f, rank, target, source, size_bytes)) {
        fy_memory_copy(target, source, size_bytes);
        return 0;
    }
    const ferry_piece what = {target, source, size_bytes};
    return put_slowly(f, rank, &what, track);
}

/* Whether a piece lies within the put's range, and others may write to that. */
static bool put_fits(ferry *f, const fy_frame *frame)
{
    uint64_t at = frame->words[0], base = frame->words[1], size = frame->words[2];
    return frame->handler <= FY_PUT_COUNTED && at >= base && at - base <= size &&
           frame->size_bytes <= size - (at - base) &&
           fy_memory_is_open(f, (const void *)(uintptr_t)base, size);
}

__attribute__((cold)) void fy_put_answer_send(ferry *f, int source, fy_put_answer answer,
                                              const uint64_t words[3])
{
    const fy_frame frame = {.kind = FY_KIND_PUT_ANSWER,
                            .word_count = FY_PUT_WORDS,
                            .handler = (uint16_t)answer,
                            .words = {words[0], words[1], words[2]}};
    fy_op_tell(f, source, &frame);
}

__attribute__((cold)) fy_verdict fy_put_answer_deliver(ferry *f, int source, const fy_frame *frame)
{
    uint32_t op = (uint32_t)frame->words[0];
    if (frame->word_count != FY_PUT_WORDS || frame->handler >= FY_PUT_ANSWERS) {
        fy_bad_frame(f, source, frame, "the answer to a put");
    } else if (frame->handler == FY_PUT_ARRIVED) {
        fy_transfer_arrived(f, source, op);
    } else {
        int error = fy_memory_refused(f, "put", source, frame->words[1], frame->words[2]);
        if (op == 0)
            fy_memory_log(f);
        else
            fy_op_end(f, op, error);
    }
    return FY_TAKEN;
}

static __attribute__((cold)) void put_refuse(ferry *f, int source, const fy_frame *frame)
{
    /* An untracked put is answered for its last frame alone: one log line at the source is enough.
     * The frame that ends a put of many pieces is no piece. */
    bool last = frame->words[0] + frame->size_bytes == frame->words[1] + frame->words[2];
    if (frame->op != 0 || (last && frame->size_bytes > 0))
        fy_put_answer_send(f, source, FY_PUT_REFUSED,
                           (const uint64_t[]){frame->op, frame->words[1], frame->words[2]});
}

/* Answers a put that is kept for a later poll. Its source need not wait until then: no rank can see
 * memory as it was before (tags.h). */
__attribute__((cold)) bool fy_put_hold(ferry *f, int source, fy_frame *frame)
{
    if (frame->word_count != FY_PUT_WORDS || frame->handler == FY_PUT_COUNTED)
        return true;
    if (frame->handler == FY_PUT_SMALL) {
        if (frame->op != 0)
            fy_put_small_take(f, source, frame, false);
        frame->op = 0; /* it may name another operation by then */
        return true;
    }
    bool good = put_fits(f, frame);
    if (!good)
        put_refuse(f, source, frame);
    else if (frame->handler == FY_PUT_LAST)
        fy_op_end_remote(f, source, frame->op, 0);
    frame->op = 0;
    return good;
}

fy_verdict fy_put_deliver(ferry *f, int source, const fy_frame *frame)
{
    if (frame->word_count != FY_PUT_WORDS) {
        fy_bad_frame(f, source, frame, "a put");
        return FY_TAKEN;
    }
    if (!fy_op_end_reserve(f))
        return FY_LEAVE;
    if (frame->handler == FY_PUT_COUNTED && fy_work_comes(f, source) != 0)
        return FY_LEAVE;
    if (frame->handler == FY_PUT_SMALL) {
        fy_put_small_take(f, source, frame, true);
        return FY_TAKEN;
    }
    if (!put_fits(f, frame)) {
        put_refuse(f, source, frame);
        return FY_TAKEN;
    }
    if (frame->size_bytes > 0)
        memcpy((void *)(uintptr_t)frame->words[0], frame->data, frame->size_bytes);
    if (frame->handler == FY_PUT_LAST)
        fy_op_end_remote(f, source, frame->op, 0);
    return FY_TAKEN;
}
