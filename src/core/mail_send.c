/* The source's side of two-sided messages: short ones, which are sent immediately, and offers that
 * the target pulls. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include <ferry/two_sided.h>

#include "core/fail.h"
#include "core/mail.h"
#include "core/membership.h"
#include "core/outgoing.h"
#include "core/rank.h"

/* A target that shares the heap may copy data from it. */
static void mark_offer(ferry *f, fy_offer *o, fy_frame *frame)
{
    fy_mail *mail = &f->mail;
    o->mark = -1;
    fy_mail_mark *marks = fy_mail_marks(f, f->head.rank);
    if (mail->marks == UINT32_MAX || marks == NULL || fy_mail_marks(f, o->rank) == NULL ||
        !fy_mail_is_shared(f, o->data, o->size_bytes))
        return;
    o->mark = __builtin_ctz(~mail->marks);
    mail->marks |= 1u << o->mark;
    /* relaxed: the frame that tells of it publishes it */
    atomic_store_explicit(&marks[o->mark].number, ++mail->offered, memory_order_relaxed);
    frame->words[1] = (uintptr_t)o->data;
    frame->words[2] = mail->offered;
    frame->words[3] = (uint64_t)o->mark;
}

/* The bytes of an offer whose message was copied. Its operation belongs to the offer alone. */
static ptrdiff_t owed_for(const fy_offer *o)
{
    return (ptrdiff_t)(sizeof(*o) + sizeof(fy_op_record) + o->size_bytes);
}

static __attribute__((noinline)) void forget_offer(ferry *f, fy_offer *o)
{
    if (o->mark >= 0) {
        /* acquire: if the target took the message first, it has read all of it (copy_offer);
         * release: before what the program writes there now */
        atomic_exchange_explicit(&fy_mail_marks(f, f->head.rank)[o->mark].number, 0,
                                 memory_order_acq_rel);
        f->mail.marks &= ~(1u << o->mark);
    }
    if (o->copy != NULL)
        fy_owe(f, -owed_for(o));
    free(o->copy);
    fy_pool_put(&f->mail.offers, o);
}

void fy_mail_offer_gone(ferry *f, void *arg, uint32_t op, int error)
{
    (void)op;
    (void)error;
    forget_offer(f, arg);
}

static int mail_no_memory(ferry *f, size_t size_bytes)
{
    return fy_fail(f, FERRY_ENOMEM, "send: no memory for a message of %zu bytes", size_bytes);
}

static int make_offer(ferry *f, int rank, const fy_frame *message, bool copied, uint32_t op)
{
    fy_offer *o = fy_pool_get(&f->mail.offers);
    if (o == NULL)
        return mail_no_memory(f, message->size_bytes);
    *o = (fy_offer){.data = message->data, .size_bytes = message->size_bytes, .rank = rank};
    if (copied) {
        o->copy = fy_malloc(message->size_bytes + 1);
        if (o->copy == NULL) {
            fy_pool_put(&f->mail.offers, o);
            return mail_no_memory(f, message->size_bytes);
        }
        if (message->size_bytes > 0)
            memcpy(o->copy, message->data, message->size_bytes);
        o->data = o->copy;
        fy_owe(f, owed_for(o));
    }
    fy_op_own(f, op, fy_mail_offer_gone, o);
    fy_frame frame = fy_mail_frame(FY_MAIL_OFFER);
    frame.op = op;
    frame.tag = message->tag;
    frame.words[0] = message->size_bytes;
    mark_offer(f, o, &frame);
    int error = fy_send_checked(f, rank, &frame, o->copy != NULL ? NULL : "send");
    if (error != 0)
        forget_offer(f, o);
    return error;
}

/* A message that is long or has no credit. Without `track` it is waited for, or in handlers copied.
 */
static int send_offer(ferry *f, int rank, const fy_frame *message, const ferry_track *track)
{
    ferry_op handle = {0};
    const ferry_track own = {.size = sizeof(own), .op = fy_in_handler(f) ? NULL : &handle};
    bool copied = track == NULL && fy_in_handler(f);
    uint32_t op;
    int error = copied ? fy_check_room(f, "send") : 0;
    if (error == 0)
        error = fy_op_start(f, track != NULL ? track : &own, rank, message->tag,
                            message->size_bytes, &op);
    if (error != 0)
        return error;
    const fy_op_about about = {.local_address = (void *)(uintptr_t)message->data};
    fy_op_describe(f, op, &about);
    error = make_offer(f, rank, message, copied, op);
    if (error != 0) {
        fy_op_drop(f, op);
        return error;
    }
    fy_op_lazy(f, op);
    return handle.word != 0 ? ferry_op_wait(f, &handle) : 0;
}

static int send_eager(ferry *f, fy_peer *peer, int rank, fy_frame *frame, const ferry_track *track)
{
    uint32_t op;
    int error = fy_op_start(f, track, rank, frame->tag, frame->size_bytes, &op);
    if (error != 0)
        return error;
    frame->op = op != 0 && fy_track_asks(track) ? op : 0;
    /* Waiting for room polls, and others may send meanwhile. */
    peer->mail_out += fy_mail_cost(frame->size_bytes);
    error = fy_send_paced(f, rank, frame, "send");
    if (error != 0)
        peer->mail_out -= fy_mail_cost(frame->size_bytes);
    if (op == 0)
        return error;
    if (error != 0) {
        fy_op_drop(f, op);
        return error;
    }
    const fy_op_about about = {.local_address = (void *)(uintptr_t)frame->data};
    fy_op_describe(f, op, &about);
    fy_op_lazy(f, op);
    fy_op_submitted(f, op);
    if (frame->op == 0)
        fy_op_end(f, op, 0);
    return 0;
}

int ferry_send(ferry *f, int rank, int32_t tag, const void *data, size_t size_bytes,
               const ferry_track *track)
{
    int error = fy_check_rank(f, "send", rank);
    if (error != 0)
        return error;
    if (tag == FERRY_ANY_TAG)
        return fy_fail(f, FERRY_EINVAL, "send: FERRY_ANY_TAG is for receives");
    if (data == NULL && size_bytes > 0)
        return fy_fail(f, FERRY_EINVAL, "send: %zu bytes at NULL", size_bytes);
    if (size_bytes > PTRDIFF_MAX)
        return fy_fail(f, FERRY_EINVAL, "send: %zu bytes; at most %td are possible", size_bytes,
                       PTRDIFF_MAX);
    if (fy_peer_is_gone(f, rank))
        return fy_fail(f, FERRY_EPEER, "send: rank %d %s", rank, fy_peer_outcome(f, rank));
    fy_peer *peer = fy_peer_of(f, rank);
    if (peer == NULL)
        return mail_no_memory(f, size_bytes);
    fy_frame frame = fy_mail_frame(FY_MAIL_EAGER);
    frame.tag = tag;
    frame.data = data;
    frame.size_bytes = size_bytes;
    if (size_bytes <= f->info.inline_bytes &&
        fy_mail_cost(size_bytes) + peer->mail_out <= FY_MAIL_CREDIT_BYTES)
        return send_eager(f, peer, rank, &frame, track);
    return send_offer(f, rank, &frame, track);
}

fy_verdict fy_mail_take_pull(ferry *f, int source, const fy_frame *frame)
{
    const fy_offer *o = fy_op_owned(f, (uint32_t)frame->words[0], fy_mail_offer_gone);
    uint64_t offset = frame->words[2], size_bytes = frame->words[3];
    bool known = o != NULL && o->rank == source;
    if (known && (offset > o->size_bytes || size_bytes > o->size_bytes - offset)) {
        fy_bad_frame(f, source, frame, "a pull of a message");
        return FY_TAKEN;
    }
    fy_frame answer = fy_mail_frame(known ? FY_MAIL_PIECE : FY_MAIL_GONE);
    answer.words[0] = frame->words[1];
    answer.words[1] = known ? offset : frame->words[0];
    answer.data = known && size_bytes > 0 ? o->data + offset : NULL;
    answer.size_bytes = known ? size_bytes : 0;
    return fy_send(f, FY_DATA, source, &answer) == FERRY_ENOMEM ? FY_LEAVE : FY_TAKEN;
}

void fy_mail_take_done(ferry *f, int source, const fy_frame *frame)
{
    uint32_t op = (uint32_t)frame->words[0];
    fy_offer *o = fy_op_owned(f, op, fy_mail_offer_gone);
    if (o == NULL || o->rank != source)
        return; /* given up meanwhile */
    int64_t error = (int64_t)frame->words[1];
    forget_offer(f, o);
    fy_op_submitted(f, op);
    if (error == FERRY_ETOOLONG)
        fy_op_too_long(f, op, frame->words[2]);
    else
        fy_op_end(f, op, error > 0 || error < INT16_MIN ? FERRY_EINVAL : (int)error);
}

void fy_mail_take_credit(ferry *f, int source, const fy_frame *frame)
{
    fy_peer *peer = fy_peer_of(f, source);
    if (peer == NULL || frame->words[0] > peer->mail_out)
        fy_bad_frame(f, source, frame, "credit for messages");
    else
        peer->mail_out -= (uint32_t)frame->words[0];
}
