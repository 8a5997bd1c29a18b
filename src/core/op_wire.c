/* The ends of operations that ranks tell each other. */
#include "core/op.h"

#include "core/fail.h"
#include "core/kinds.h"
#include "core/membership.h"
#include "core/outgoing.h"
#include "core/rank.h"

/* The kinds of frames of an end, in the handler field. words: op; error, new rank or 0; length that
 * was allowed, or movement number. */
typedef enum end_kind { END_PLAIN, END_TOO_LONG, END_MOVED, END_WORDS = 3 } end_kind;

bool fy_op_end_reserve(ferry *f)
{
    void *const *first = f->packets.free_items;
    return (first != NULL && *first != NULL) || fy_pool_grow(&f->packets);
}

void *fy_op_end_hold(ferry *f)
{
    return fy_pool_get(&f->packets);
}

void fy_op_end_release(ferry *f, void *held)
{
    if (held != NULL)
        fy_pool_put(&f->packets, held);
}

/* Sends an end in a packet of the pool. Used for an end to this rank, an end to a peer without
 * room, and an end that a profile counts. */
static __attribute__((noinline)) void tell_later(ferry *f, int rank, const fy_frame *frame)
{
    fy_packet *packet = fy_packet_create(&f->packets, 0);
    if (packet == NULL) {
        fy_log(f, "no memory to tell rank %d the end of its operation", rank);
        return;
    }
    fy_packet_fill(packet, rank, FY_DATA, frame);
    (void)fy_send_packet(f, packet); /* a peer that is gone waits for no end */
}

void fy_op_tell(ferry *f, int rank, const fy_frame *frame)
{
    if (f->head.profile != NULL || rank == f->head.rank || fy_has_backlog(f, FY_DATA, rank) ||
        f->head.ops->transport.send(f->head.port, FY_APP, FY_DATA, rank, frame) == FERRY_EAGAIN)
        tell_later(f, rank, frame);
}

static __attribute__((noinline)) void send_end(ferry *f, int rank, end_kind kind, uint32_t op,
                                               uint64_t what, uint64_t more)
{
    fy_frame frame;
    fy_frame_begin(&frame, FY_KIND_END, (uint16_t)kind,
                   kind == END_PLAIN ? END_WORDS - 1 : END_WORDS);
    frame.words[0] = op;
    frame.words[1] = what;
    frame.words[2] = more;
    fy_op_tell(f, rank, &frame);
}

void fy_op_end_remote(ferry *f, int rank, uint32_t op, int error)
{
    if (op != 0)
        send_end(f, rank, END_PLAIN, op, (uint64_t)(int64_t)error, 0);
}

void fy_op_too_long(ferry *f, uint32_t op, size_t size_max)
{
    fy_op_record *record = fy_op_find_open(f, op);
    if (record == NULL)
        return;
    record->receipt.size_max = size_max;
    fy_op_end(f, op, FERRY_ETOOLONG);
}

static void op_moved(ferry *f, uint32_t op, int giver, int rank, uint32_t movement)
{
    fy_op_record *record = fy_op_find_open(f, op);
    int32_t ahead = record == NULL ? -1 : (int32_t)(movement - record->movement);
    if (ahead < 0 || (ahead == 0 && giver != rank))
        return;
    record->movement = movement;
    record->receipt.rank = rank;
    record->giver = giver;
    if (!fy_peer_is_gone(f, rank) && !fy_peer_is_gone(f, giver))
        return;
    if (record->state == FY_OP_PENDING)
        fy_op_give_up(f, record, FERRY_EPEER, true);
    else
        fy_op_end(f, op, FERRY_EPEER);
}

void fy_op_too_long_remote(ferry *f, int rank, uint32_t op, size_t size_max)
{
    if (op != 0)
        send_end(f, rank, END_TOO_LONG, op, 0, size_max);
}

void fy_op_moved_remote(ferry *f, int rank, uint32_t op, int new_rank, uint32_t movement)
{
    if (op == 0)
        return;
    if (rank == f->head.rank)
        op_moved(f, op, rank, new_rank, movement);
    else
        send_end(f, rank, END_MOVED, op, (uint32_t)new_rank, movement);
}

fy_verdict fy_op_deliver(ferry *f, int source, const fy_frame *frame)
{
    fy_frame_done(f);
    uint32_t op = (uint32_t)frame->words[0];
    int64_t error = (int64_t)frame->words[1];
    if (frame->handler == END_PLAIN && frame->word_count == END_WORDS - 1) {
        error = error > 0 || error < INT16_MIN ? FERRY_EINVAL : error;
        if (!fy_op_end_from(f, source, op, (int)error))
            fy_bad_frame(f, source, frame, "the end of an operation");
        return FY_TAKEN;
    }
    if (frame->word_count != END_WORDS || frame->handler == END_PLAIN ||
        frame->handler > END_MOVED || !fy_op_may_end(f, source, op) ||
        (frame->handler == END_MOVED && (uint64_t)error >= (uint64_t)f->head.ranks)) {
        fy_bad_frame(f, source, frame, "the end of an operation");
        return FY_TAKEN;
    }
    if (frame->handler == END_TOO_LONG)
        fy_op_too_long(f, op, frame->words[2]);
    else
        op_moved(f, op, source, (int)error, (uint32_t)frame->words[2]);
    return FY_TAKEN;
}
