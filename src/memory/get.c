/* Get: a copy by the caller if the source is on this rank or in the shared heap of its node.
 * Otherwise the caller requests pieces, a few at a time, so that the answers fill no rank's memory.
 * The frames carry no address of this rank: an answer names the get by index and generation. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "core/outgoing.h"
#include "memory/state.h"

enum { OUTSTANDING_MAX = 4 };

/* Requests pieces until enough are in flight. Never waits. `call`: as for fy_send_paced. */
static int get_ask(ferry *f, fy_pending_get *get, const char *call)
{
    uint64_t index = get->slot.index;
    bool more = true;
    while (more && get->outstanding < OUTSTANDING_MAX) {
        size_t left = get->size_bytes - get->asked;
        size_t piece = left < FY_PIECE_BYTES ? left : FY_PIECE_BYTES;
        const fy_frame frame = {.kind = FY_KIND_GET,
                                .word_count = FY_GET_WORDS,
                                .tag = get->tag,
                                .aux = get->slot.generation,
                                .words = {index | (uint64_t)piece << 32, get->asked,
                                          (uintptr_t)get->source, get->size_bytes}};
        int error = fy_send_checked(f, get->slot.rank, &frame, call);
        if (error != 0)
            return error;
        get->outstanding++;
        get->asked += piece;
        more = get->asked < get->size_bytes;
    }
    return 0;
}

int fy_get_pieces(ferry *f, int rank, const ferry_piece *what, const fy_get_how *how)
{
    fy_memory *m = fy_memory_of(f);
    fy_pending_get *get = fy_call_slot_take(&m->gets, rank, how->op);
    if (get == NULL)
        return fy_fail(f, FERRY_ENOMEM, "get: no memory for another pending get");
    *get = (fy_pending_get){.slot = get->slot,
                            .target = what->target,
                            .source = what->source,
                            .size_bytes = what->size_bytes,
                            .guard = how->guard,
                            .tag = how->tag};
    int error = get_ask(f, get, how->op == how->guard ? "get" : NULL);
    /* If a piece is in flight, the rest is requested when it comes. */
    if (error != 0 && get->outstanding == 0) {
        fy_call_slot_give(&m->gets, get->slot.index);
        return error;
    }
    return 0;
}

static int get_remote(ferry *f, int rank, const ferry_piece *what, const ferry_track *track)
{
    uint32_t op;
    const fy_op_about about = fy_memory_about(what->target, what->source);
    int error = fy_memory_start(f, rank, &about, what->size_bytes, track, &op);
    if (error != 0)
        return error;
    const fy_get_how how = {.op = op, .guard = op, .tag = FY_NO_TAG};
    error = fy_get_pieces(f, rank, what, &how);
    if (error != 0)
        fy_op_drop(f, op);
    return error;
}

/* A get without a track: the call waits for its end. */
static int get_and_wait(ferry *f, int rank, const ferry_piece *what)
{
    ferry_op op;
    const ferry_track track = {.size = sizeof(track), .op = &op};
    int error = fy_memory_check_wait(f, "get", rank);
    if (error == 0)
        error = get_remote(f, rank, what, &track);
    if (error == 0)
        error = ferry_op_wait(f, &op);
    if (error == FERRY_ERANGE)
        return fy_memory_refused(f, "get", rank, (uintptr_t)what->source, what->size_bytes);
    return error;
}

static int get_slowly(ferry *f, int rank, const ferry_piece *what, const ferry_track *track)
{
    size_t size_bytes = what->size_bytes;
    int error = fy_memory_check(f, "get", rank, what->source, what->target, size_bytes);
    if (error != 0)
        return error;
    const fy_op_about about = fy_memory_about(what->target, what->source);
    bool here = rank == ferry_rank(f);
    if (here ? fy_memory_is_open(f, what->source, size_bytes)
             : fy_memory_is_direct(f, rank, what->source, size_bytes)) {
        error = fy_memory_done(f, rank, &about, size_bytes, track);
        if (error == 0)
            fy_memory_copy_counted(f, what, FY_PROFILE_GET);
        return error;
    }
    if (here)
        return fy_memory_refused(f, "get", rank, (uintptr_t)what->source, size_bytes);
    return track != NULL ? get_remote(f, rank, what, track) : get_and_wait(f, rank, what);
}

int ferry_get(ferry *f, int rank, void *target, const void *source, size_t size_bytes,
              const ferry_track *track)
{
    if (track == NULL && fy_memory_is_copy(f, rank, source, target, size_bytes)) {
        fy_memory_copy(target, source, size_bytes);
        return 0;
    }
    const ferry_piece what = {target, source, size_bytes};
    return get_slowly(f, rank, &what, track);
}

fy_verdict fy_get_deliver(ferry *f, int source, const fy_frame *frame)
{
    if (frame->word_count != FY_GET_WORDS) {
        fy_bad_frame(f, source, frame, "a get");
        return FY_TAKEN;
    }
    if (frame->handler == FY_GET_SMALL)
        return fy_get_small_answer(f, source, frame);
    uint64_t piece = frame->words[0] >> 32, offset = frame->words[1], size = frame->words[3];
    const unsigned char *base = (const unsigned char *)(uintptr_t)frame->words[2];
    bool fits = piece <= FY_PIECE_BYTES && offset <= size && piece <= size - offset;
    bool open = fits && fy_memory_is_open(f, base, size);
    const fy_frame answer = {
        .kind = FY_KIND_GOT,
        .word_count = FY_GOT_WORDS,
        .aux = frame->aux,
        .words = {frame->words[0], offset, open ? 0 : (uint64_t)(int64_t)FERRY_ERANGE},
        .data = open && piece > 0 ? base + offset : NULL,
        .size_bytes = open ? piece : 0};
    return fy_send(f, FY_DATA, source, &answer) == FERRY_ENOMEM ? FY_LEAVE : FY_TAKEN;
}

static void take_piece(ferry *f, fy_pending_get *get, const fy_frame *frame)
{
    uint64_t piece = frame->words[0] >> 32, offset = frame->words[1];
    bool fits = frame->size_bytes == piece && offset <= get->asked &&
                piece <= get->asked - offset &&
                (get->list.pieces == NULL || piece == get->size_bytes);
    /* The caller may use the target for something else after it has cancelled the get. */
    if (get->error == 0 && !fy_op_is_pending(f, get->guard))
        get->error = FERRY_ECANCELED;
    if (get->error != 0)
        return;
    if (frame->words[2] != 0)
        get->error =
            fy_memory_refused(f, "get", get->slot.rank, (uintptr_t)get->source, get->size_bytes);
    else if (!fits)
        get->error = fy_fail(f, FERRY_EINVAL, "get: rank %d answered with a piece not asked for",
                             get->slot.rank);
    else if (get->list.pieces != NULL)
        fy_get_small_take(&get->list, frame->data);
    else if (piece > 0)
        memcpy(get->target + offset, frame->data, piece);
}

fy_verdict fy_got_deliver(ferry *f, int source, const fy_frame *frame)
{
    fy_memory *m = fy_memory_of(f);
    fy_pending_get *get =
        fy_call_slot_find(&m->gets, source, (uint32_t)frame->words[0], frame->aux);
    if (frame->word_count != FY_GOT_WORDS || get == NULL || get->outstanding == 0) {
        fy_bad_frame(f, source, frame, "the answer to no get");
        return FY_TAKEN;
    }
    take_piece(f, get, frame);
    get->outstanding--;
    int error = get->asked < get->size_bytes && get->error == 0 ? get_ask(f, get, NULL) : 0;
    if (get->outstanding > 0)
        return FY_TAKEN;
    uint32_t op = get->slot.op;
    free(get->list.pieces);
    error = get->error != 0 ? get->error : error;
    fy_call_slot_give(&m->gets, get->slot.index);
    fy_op_end(f, op, error);
    return FY_TAKEN;
}
