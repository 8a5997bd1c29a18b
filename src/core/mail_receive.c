/* The target's side of two-sided messages: receives, the messages that match them, and pulling. */
#include <string.h>

#include "base/copy.h"
#include <ferry/two_sided.h>

#include "core/fail.h"
#include "core/mail.h"
#include "core/membership.h"
#include "core/outgoing.h"
#include "core/rank.h"

/* The number of parts in which a message is pulled, so that its source copies one part while the
 * target copies another, unless the parts would be too small or too large. */
enum {
    PARTS = 4,
    PIECE_MIN = 16 * 1024,
    PIECE_MAX = 128 * 1024,
    PIECES_MAX = 4, /* pieces that are asked for and have not come */
};

static void give_credit(ferry *f, int source, size_t size_bytes)
{
    fy_peer *peer = fy_peer_of(f, source);
    if (peer == NULL)
        return; /* made when the message came */
    peer->mail_back += fy_mail_cost(size_bytes);
    if (peer->mail_back < FY_MAIL_CREDIT_BYTES / 2)
        return;
    fy_frame frame = fy_mail_frame(FY_MAIL_CREDIT);
    frame.words[0] = peer->mail_back;
    if (fy_send(f, FY_DATA, source, &frame) != FERRY_ENOMEM)
        peer->mail_back = 0;
}

static void tell_done(ferry *f, int source, uint32_t offer_op, int error, size_t size_max)
{
    fy_frame frame = fy_mail_frame(FY_MAIL_DONE);
    frame.words[0] = offer_op;
    frame.words[1] = (uint64_t)(int64_t)error;
    frame.words[2] = size_max;
    fy_op_tell(f, source, &frame);
}

static void end_want(ferry *f, fy_want *want, int error)
{
    uint32_t op = want->op;
    fy_pool_put(&f->mail.wants, want);
    fy_op_end(f, op, error);
}

__attribute__((cold)) void fy_mail_want_gone(ferry *f, void *arg, uint32_t op, int error)
{
    fy_want *want = arg;
    (void)op;
    if (want->key == NULL && error != FERRY_EPEER)
        tell_done(f, want->source, want->offer, FERRY_ECANCELED, 0);
    fy_want_remove(&f->mail, want);
    fy_pool_put(&f->mail.wants, want);
}

static int pull_more(ferry *f, fy_want *want)
{
    size_t piece = want->size_bytes / PARTS;
    piece = piece < PIECE_MIN ? PIECE_MIN : piece > PIECE_MAX ? PIECE_MAX : piece;
    while (want->asked < want->size_bytes && want->asked - want->received < PIECES_MAX * piece) {
        size_t left = want->size_bytes - want->asked;
        fy_frame frame = fy_mail_frame(FY_MAIL_PULL);
        frame.words[0] = want->offer;
        frame.words[1] = want->op;
        frame.words[2] = want->asked;
        frame.words[3] = left < piece ? left : piece;
        int error = fy_send(f, FY_DATA, want->source, &frame);
        if (error != 0)
            return error;
        want->asked += frame.words[3];
    }
    return 0;
}

/* Goes on with a receive that pulls, to its end. */
static void go_on(ferry *f, fy_want *want)
{
    int error = pull_more(f, want);
    if (error == 0 && want->received < want->size_bytes)
        return;
    if (error != FERRY_EPEER)
        tell_done(f, want->source, want->offer, error, 0);
    end_want(f, want, error);
}

static void too_long(ferry *f, fy_want *want, int source, const fy_frame *frame)
{
    size_t size_max = want->size_max;
    uint32_t op = want->op;
    fy_pool_put(&f->mail.wants, want);
    fy_op_too_long(f, op, size_max);
    if (frame->handler == FY_MAIL_OFFER)
        tell_done(f, source, frame->op, FERRY_ETOOLONG, size_max);
    else
        fy_op_too_long_remote(f, source, frame->op, size_max);
}

typedef enum copied { COPIED, TO_PULL, WITHDRAWN } copied;

/* Copies an offer that lies in memory which this rank sees. */
static copied copy_offer(ferry *f, const fy_want *want, int source, const fy_frame *frame)
{
    const void *data = (const void *)(uintptr_t)frame->words[1];
    uint64_t number = frame->words[2], index = frame->words[3];
    fy_mail_mark *marks = data == NULL ? NULL : fy_mail_marks(f, source);
    if (marks == NULL || index >= FY_MAIL_MARKS || number == 0 ||
        !fy_mail_is_shared(f, data, frame->words[0]))
        return TO_PULL;
    _Atomic uint64_t *mark = &marks[index].number;
    /* relaxed: a look that saves the copy; the exchange below decides */
    if (atomic_load_explicit(mark, memory_order_relaxed) != number)
        return WITHDRAWN;
    fy_copy(want->buffer, data, frame->words[0]);
    /* release: after the reads of the copy; pairs with the acquire in forget_offer */
    return atomic_compare_exchange_strong_explicit(mark, &number, 0, memory_order_acq_rel,
                                                   memory_order_relaxed)
               ? COPIED
               : WITHDRAWN;
}

/* A message that the source has given up is not received. */
static void forget_meeting(ferry *f, fy_want *want)
{
    fy_op_matched(f, want->op, want->rank, want->tag, 0);
}

/* Returns whether the receive has ended, or pulls; otherwise the offer was withdrawn. */
static bool accept_offer(ferry *f, fy_want *want, int source, const fy_frame *frame)
{
    switch (copy_offer(f, want, source, frame)) {
    case COPIED:
        tell_done(f, source, frame->op, 0, 0);
        end_want(f, want, 0);
        return true;
    case WITHDRAWN:
        forget_meeting(f, want);
        return false;
    case TO_PULL:
        break;
    }
    want->source = source;
    want->offer = frame->op;
    want->size_bytes = frame->words[0];
    want->asked = want->received = 0;
    go_on(f, want);
    return true;
}

/* Gives a receive, which is under no key, its message. False: the message was withdrawn. */
static bool finish_receive(ferry *f, fy_want *want, int source, const fy_frame *frame)
{
    bool offered = frame->handler == FY_MAIL_OFFER;
    size_t size_bytes = offered ? frame->words[0] : frame->size_bytes;
    fy_op_matched(f, want->op, source, frame->tag, size_bytes);
    if (!offered)
        give_credit(f, source, size_bytes);
    if (size_bytes > want->size_max) {
        too_long(f, want, source, frame);
        return true;
    }
    if (offered)
        return accept_offer(f, want, source, frame);
    if (size_bytes > 0)
        memcpy(want->buffer, frame->data, size_bytes);
    end_want(f, want, 0);
    fy_op_end_remote(f, source, frame->op, 0);
    return true;
}

/* Gives a receive a message that has come and matches it, or lets it wait for one. */
static int want_post(ferry *f, fy_want *want)
{
    fy_mail *mail = &f->mail;
    for (bool matched = false; !matched;) {
        fy_item *item = fy_item_find(mail, want->rank, want->tag);
        if (item == NULL)
            return fy_want_place(mail, want);
        if (!fy_op_end_reserve(f))
            return FERRY_ENOMEM;
        fy_packet *packet = fy_item_take(mail, item);
        matched = finish_receive(f, want, packet->rank, &packet->frame);
        fy_packet_destroy(&f->packets, packet);
    }
    return 0;
}

/* As post, for a receive whose errors only its operation can still report. */
static void post_again(ferry *f, fy_want *want)
{
    int error = want_post(f, want);
    if (error != 0)
        end_want(f, want, error);
}

static int check_receive(ferry *f, int rank, const void *buffer, size_t size_max,
                         const ferry_track *track)
{
    int error = rank == FERRY_ANY_RANK ? 0 : fy_check_rank(f, "receive", rank);
    if (error != 0)
        return error;
    if (track == NULL)
        return fy_fail(f, FERRY_EINVAL, "receive: track is NULL; it reports what came");
    if (buffer == NULL && size_max > 0)
        return fy_fail(f, FERRY_EINVAL, "receive: %zu bytes at NULL", size_max);
    return 0;
}

int ferry_receive(ferry *f, int rank, int32_t tag, void *buffer, size_t size_max,
                  const ferry_track *track)
{
    int error = check_receive(f, rank, buffer, size_max, track);
    if (error != 0)
        return error;
    if (rank != FERRY_ANY_RANK && fy_peer_is_gone(f, rank) &&
        fy_item_find(&f->mail, rank, tag) == NULL)
        return fy_fail(f, FERRY_EPEER, "receive: rank %d %s", rank, fy_peer_outcome(f, rank));
    fy_want *want = fy_pool_get(&f->mail.wants);
    if (want == NULL)
        return fy_fail(f, FERRY_ENOMEM, "receive: no memory for another one");
    *want = (fy_want){.order = f->mail.posted++,
                      .rank = rank,
                      .tag = tag,
                      .buffer = buffer,
                      .size_max = size_max};
    fy_list_init(&want->link);
    error = fy_op_start(f, track, rank, tag, 0, &want->op);
    if (error != 0) {
        fy_pool_put(&f->mail.wants, want);
        return error;
    }
    uint32_t op = want->op;
    const fy_op_about about = {.local_address = buffer};
    fy_op_describe(f, op, &about);
    fy_op_own(f, op, fy_mail_want_gone, want);
    fy_op_lazy(f, op);
    error = want_post(f, want);
    if (error == 0)
        return 0;
    fy_pool_put(&f->mail.wants, want);
    fy_op_drop(f, op);
    return fy_fail(f, error, "receive: no memory for another one");
}

fy_verdict fy_mail_take_message(ferry *f, int source, const fy_frame *frame)
{
    if (fy_peer_of(f, source) == NULL || !fy_op_end_reserve(f))
        return FY_LEAVE;
    fy_want *want = fy_want_find(&f->mail, source, frame->tag);
    if (want != NULL) {
        fy_want_remove(&f->mail, want);
        if (!finish_receive(f, want, source, frame))
            post_again(f, want);
        return FY_TAKEN;
    }
    fy_packet *packet = fy_packet_create(&f->packets, frame->size_bytes);
    if (packet == NULL)
        return FY_LEAVE;
    fy_packet_fill(packet, source, FY_DATA, frame);
    if (fy_item_create(&f->mail, packet) != NULL)
        return FY_TAKEN;
    fy_packet_destroy(&f->packets, packet);
    return FY_LEAVE;
}

/* The receive that a frame from `source` is for, if it pulls from there. */
static fy_want *pulling(const ferry *f, int source, const fy_frame *frame)
{
    fy_want *want = fy_op_owned(f, (uint32_t)frame->words[0], fy_mail_want_gone);
    return want != NULL && want->key == NULL && want->source == source ? want : NULL;
}

fy_verdict fy_mail_take_piece(ferry *f, int source, const fy_frame *frame)
{
    fy_want *want = pulling(f, source, frame);
    if (want == NULL)
        return FY_TAKEN; /* given up meanwhile */
    uint64_t offset = frame->words[1];
    if (offset != want->received || frame->size_bytes > want->asked - want->received) {
        fy_bad_frame(f, source, frame, "a piece of a message");
        return FY_TAKEN;
    }
    if (!fy_op_end_reserve(f))
        return FY_LEAVE;
    if (frame->size_bytes > 0)
        memcpy(want->buffer + offset, frame->data, frame->size_bytes);
    want->received += frame->size_bytes;
    go_on(f, want);
    return FY_TAKEN;
}

__attribute__((cold)) void fy_mail_take_gone(ferry *f, int source, const fy_frame *frame)
{
    fy_want *want = pulling(f, source, frame);
    /* The source answers each PULL of the offer in this way. After the first of these answers the
     * receive may pull another offer of the same source, so the later ones must not end that. */
    if (want == NULL || want->offer != (uint32_t)frame->words[1])
        return;
    want->source = -1;
    forget_meeting(f, want);
    post_again(f, want);
}
