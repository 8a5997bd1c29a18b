/* The ways of a two-sided message.
 *
 *     source                           target
 *     EAGER with the data     ->       met: copied; END, and now and then CREDIT, go back
 *     OFFER                   ->       met:
 *                             <-       PULL of a piece, several at a time
 *     PIECE with the data     ->       ...
 *                             <-       DONE
 *
 * An offer that its source has given up meanwhile answers a PULL with GONE, and the receive waits
 * for the next message, in its old place. A receive that is given up while it pulls says DONE with
 * the reason. Frames name offers and receives by their operations, which are found only while they
 * are pending: nothing is written after an end. */
#include "core/mail.h"

#include <stdlib.h>
#include <string.h>

#include "core/rank.h"

/* A frame's handler field, and the words with it. */
typedef enum mail_sort {
    MAIL_EAGER,  /* none */
    MAIL_OFFER,  /* size; the frame's op is the offer */
    MAIL_PULL,   /* offer, receive, offset, size of the piece */
    MAIL_PIECE,  /* receive, offset */
    MAIL_GONE,   /* receive */
    MAIL_DONE,   /* offer, error, size allowed */
    MAIL_CREDIT, /* bytes */
    MAIL_SORTS
} mail_sort;

static const uint8_t mail_words[MAIL_SORTS] = {0, 1, 4, 2, 1, 3, 1};

enum {
    CREDIT_BYTES = 256 * 1024, /* of eager messages from one rank to one other, heads included */
    HEAD_BYTES = 64,
    PIECE_MIN = 1024,
    PIECE_MAX = 32 * 1024,
    PIECES_MAX = 8, /* asked for and not here */
};

/* A message that stays here until it is pulled. */
typedef struct offer {
    const unsigned char *data;
    void *copy; /* of an untracked message; else NULL */
    size_t size_bytes;
    int rank;
} offer;

void fy_mail_init(ferry *f)
{
    fy_mail *mail = &f->mail;
    fy_pool_init(&mail->keys, sizeof(fy_mail_key), 32);
    fy_pool_init(&mail->wants, sizeof(fy_want), 32);
    fy_pool_init(&mail->items, sizeof(fy_item), 32);
    fy_pool_init(&mail->offers, sizeof(offer), 32);
}

/* The first message that stands in the table; NULL when there is none. */
static fy_item *any_item(const fy_mail *mail)
{
    return fy_item_find(mail, FERRY_ANY_RANK, FERRY_ANY_TAG);
}

void fy_mail_fini(ferry *f)
{
    fy_mail *mail = &f->mail;
    for (fy_item *item; (item = any_item(mail)) != NULL;)
        fy_packet_destroy(&f->packets, fy_item_take(mail, item));
    free(mail->buckets);
    mail->buckets = NULL;
    mail->key_count = mail->bucket_count = 0;
    fy_pool_fini(&mail->keys);
    fy_pool_fini(&mail->wants);
    fy_pool_fini(&mail->items);
    fy_pool_fini(&mail->offers);
}

static uint32_t cost_of(size_t size_bytes)
{
    return (uint32_t)size_bytes + HEAD_BYTES;
}

static fy_frame frame_of(mail_sort sort)
{
    return (fy_frame){
        .kind = FY_KIND_MAIL, .handler = (uint16_t)sort, .word_count = mail_words[sort]};
}

/* Sending. */

static void forget_offer(ferry *f, offer *o)
{
    free(o->copy);
    fy_pool_put(&f->mail.offers, o);
}

static void on_offer_gone(ferry *f, void *arg, uint32_t op, int error)
{
    (void)op;
    (void)error;
    forget_offer(f, arg);
}

static int no_memory(ferry *f, size_t size_bytes)
{
    return fy_fail(f, FERRY_ENOMEM, "send: no memory for a message of %zu bytes", size_bytes);
}

static int make_offer(ferry *f, int rank, const fy_frame *message, bool copied, uint32_t op)
{
    offer *o = fy_pool_get(&f->mail.offers);
    if (o == NULL)
        return no_memory(f, message->size_bytes);
    *o = (offer){.data = message->data, .size_bytes = message->size_bytes, .rank = rank};
    if (copied) {
        o->copy = malloc(message->size_bytes + 1);
        if (o->copy == NULL) {
            fy_pool_put(&f->mail.offers, o);
            return no_memory(f, message->size_bytes);
        }
        if (message->size_bytes > 0)
            memcpy(o->copy, message->data, message->size_bytes);
        o->data = o->copy;
    }
    fy_op_own(f, op, on_offer_gone, o);
    fy_frame frame = frame_of(MAIL_OFFER);
    frame.op = op;
    frame.tag = message->tag;
    frame.words[0] = message->size_bytes;
    int error = fy_send(f, FY_DATA, rank, &frame);
    if (error != 0)
        forget_offer(f, o);
    return error;
}

/* What is long or has no credit. Without `track` it is waited for, or in handlers copied. */
static int send_offer(ferry *f, int rank, const fy_frame *message, const ferry_track *track)
{
    ferry_op handle = {0};
    const ferry_track own = {.size = sizeof(own), .op = fy_in_handler(f) ? NULL : &handle};
    bool copied = track == NULL && fy_in_handler(f);
    uint32_t op;
    int error =
        fy_op_start(f, track != NULL ? track : &own, rank, message->tag, message->size_bytes, &op);
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
    int error = fy_op_start(f, track, rank, frame->tag, frame->size_bytes, &frame->op);
    if (error != 0)
        return error;
    const fy_op_about about = {.local_address = (void *)(uintptr_t)frame->data};
    if (frame->op != 0)
        fy_op_describe(f, frame->op, &about);
    /* Waiting for room polls, and others may send meanwhile. */
    peer->mail_out += cost_of(frame->size_bytes);
    error = fy_send_paced(f, FY_DATA, rank, frame);
    if (error != 0)
        peer->mail_out -= cost_of(frame->size_bytes);
    if (frame->op == 0)
        return error;
    if (error != 0) {
        fy_op_drop(f, frame->op);
        return error;
    }
    fy_op_lazy(f, frame->op);
    fy_op_submitted(f, frame->op);
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
    if (fy_peer_is_gone(f, rank))
        return fy_fail(f, FERRY_EPEER, "send: rank %d is dead or has left", rank);
    fy_peer *peer = fy_peer_of(&f->peers, rank);
    if (peer == NULL)
        return no_memory(f, size_bytes);
    fy_frame frame = frame_of(MAIL_EAGER);
    frame.tag = tag;
    frame.data = data;
    frame.size_bytes = size_bytes;
    if (size_bytes <= f->info.inline_bytes && cost_of(size_bytes) + peer->mail_out <= CREDIT_BYTES)
        return send_eager(f, peer, rank, &frame, track);
    return send_offer(f, rank, &frame, track);
}

/* Receiving. */

static void give_credit(ferry *f, int source, size_t size_bytes)
{
    fy_peer *peer = fy_peer_of(&f->peers, source);
    if (peer == NULL)
        return; /* made when the message came */
    peer->mail_back += cost_of(size_bytes);
    if (peer->mail_back < CREDIT_BYTES / 2)
        return;
    fy_frame frame = frame_of(MAIL_CREDIT);
    frame.words[0] = peer->mail_back;
    if (fy_send(f, FY_DATA, source, &frame) != FERRY_ENOMEM)
        peer->mail_back = 0;
}

static void tell_done(ferry *f, int source, uint32_t offer_op, int error, size_t size_max)
{
    fy_frame frame = frame_of(MAIL_DONE);
    frame.words[0] = offer_op;
    frame.words[1] = (uint64_t)(int64_t)error;
    frame.words[2] = size_max;
    if (fy_send(f, FY_DATA, source, &frame) == FERRY_ENOMEM)
        fy_log(f, "no memory to tell rank %d the end of its message", source);
}

static void end_want(ferry *f, fy_want *want, int error)
{
    uint32_t op = want->op;
    fy_pool_put(&f->mail.wants, want);
    fy_op_end(f, op, error);
}

static void on_want_gone(ferry *f, void *arg, uint32_t op, int error)
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
    size_t piece = f->info.inline_bytes;
    piece = piece < PIECE_MIN ? PIECE_MIN : piece > PIECE_MAX ? PIECE_MAX : piece;
    while (want->asked < want->size_bytes && want->asked - want->received < PIECES_MAX * piece) {
        size_t left = want->size_bytes - want->asked;
        fy_frame frame = frame_of(MAIL_PULL);
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
    if (frame->handler == MAIL_OFFER)
        tell_done(f, source, frame->op, FERRY_ETOOLONG, size_max);
    else
        fy_op_too_long_remote(f, source, frame->op, size_max);
}

/* A receive, which stands under no key, has its message. */
static void meet(ferry *f, fy_want *want, int source, const fy_frame *frame)
{
    bool offered = frame->handler == MAIL_OFFER;
    size_t size_bytes = offered ? frame->words[0] : frame->size_bytes;
    fy_op_matched(f, want->op, source, frame->tag, size_bytes);
    if (!offered)
        give_credit(f, source, size_bytes);
    if (size_bytes > want->size_max) {
        too_long(f, want, source, frame);
    } else if (offered) {
        want->source = source;
        want->offer = frame->op;
        want->size_bytes = size_bytes;
        want->asked = want->received = 0;
        go_on(f, want);
    } else {
        if (size_bytes > 0)
            memcpy(want->buffer, frame->data, size_bytes);
        end_want(f, want, 0);
        fy_op_end_remote(f, source, frame->op, 0);
    }
}

/* Lets a receive meet a message that is here, or wait for one. */
static int post(ferry *f, fy_want *want)
{
    fy_mail *mail = &f->mail;
    fy_item *item = fy_item_find(mail, want->rank, want->tag);
    if (item == NULL)
        return fy_want_place(mail, want);
    if (!fy_op_end_reserve(f))
        return FERRY_ENOMEM;
    fy_packet *packet = fy_item_take(mail, item);
    meet(f, want, packet->rank, &packet->frame);
    fy_packet_destroy(&f->packets, packet);
    return 0;
}

static int check_receive(ferry *f, int rank, const void *buffer, size_t size_max,
                         const ferry_track *track)
{
    int error = rank == FERRY_ANY_RANK ? 0 : fy_check_rank(f, "receive", rank);
    if (error != 0)
        return error;
    if (track == NULL)
        return fy_fail(f, FERRY_EINVAL, "receive: without a track nobody learns what came");
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
        return fy_fail(f, FERRY_EPEER, "receive: rank %d is dead or has left", rank);
    fy_want *want = fy_pool_get(&f->mail.wants);
    if (want == NULL)
        return fy_fail(f, FERRY_ENOMEM, "receive: no memory for another one");
    *want = (fy_want){.order = f->mail.posted++,
                      .rank = rank,
                      .tag = tag,
                      .buffer = buffer,
                      .size_max = size_max};
    fy_list_init(&want->link);
    error = fy_op_start(f, track, rank == FERRY_ANY_RANK ? f->rank : rank, tag, 0, &want->op);
    if (error != 0) {
        fy_pool_put(&f->mail.wants, want);
        return error;
    }
    uint32_t op = want->op;
    const fy_op_about about = {.local_address = buffer};
    fy_op_describe(f, op, &about);
    fy_op_own(f, op, on_want_gone, want);
    fy_op_lazy(f, op);
    error = post(f, want);
    if (error == 0)
        return 0;
    fy_pool_put(&f->mail.wants, want);
    fy_op_drop(f, op);
    return fy_fail(f, error, "receive: no memory for another one");
}

/* Frames. */

static fy_verdict take_message(ferry *f, int source, const fy_frame *frame)
{
    if (fy_peer_of(&f->peers, source) == NULL || !fy_op_end_reserve(f))
        return FY_LEAVE;
    fy_want *want = fy_want_find(&f->mail, source, frame->tag);
    if (want != NULL) {
        fy_want_remove(&f->mail, want);
        meet(f, want, source, frame);
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

static fy_verdict take_pull(ferry *f, int source, const fy_frame *frame)
{
    const offer *o = fy_op_owned(f, (uint32_t)frame->words[0], on_offer_gone);
    uint64_t offset = frame->words[2], size_bytes = frame->words[3];
    bool known = o != NULL && o->rank == source;
    if (known && (offset > o->size_bytes || size_bytes > o->size_bytes - offset)) {
        fy_bad_frame(f, source, frame, "a pull of a message");
        return FY_TAKEN;
    }
    fy_frame answer = frame_of(known ? MAIL_PIECE : MAIL_GONE);
    answer.words[0] = frame->words[1];
    answer.words[1] = offset;
    answer.data = known && size_bytes > 0 ? o->data + offset : NULL;
    answer.size_bytes = known ? size_bytes : 0;
    return fy_send(f, FY_DATA, source, &answer) == FERRY_ENOMEM ? FY_LEAVE : FY_TAKEN;
}

/* The receive that a frame from `source` is for, if it pulls from there. */
static fy_want *pulling(const ferry *f, int source, const fy_frame *frame)
{
    fy_want *want = fy_op_owned(f, (uint32_t)frame->words[0], on_want_gone);
    return want != NULL && want->key == NULL && want->source == source ? want : NULL;
}

static void take_piece(ferry *f, int source, const fy_frame *frame)
{
    fy_want *want = pulling(f, source, frame);
    if (want == NULL)
        return; /* given up meanwhile */
    uint64_t offset = frame->words[1];
    if (offset != want->received || frame->size_bytes > want->asked - want->received) {
        fy_bad_frame(f, source, frame, "a piece of a message");
        return;
    }
    if (frame->size_bytes > 0)
        memcpy(want->buffer + offset, frame->data, frame->size_bytes);
    want->received += frame->size_bytes;
    go_on(f, want);
}

static void take_gone(ferry *f, int source, const fy_frame *frame)
{
    fy_want *want = pulling(f, source, frame);
    if (want == NULL)
        return;
    /* Pieces of the old offer may be asked for still: they will be answered alike, and find no
     * receive that pulls from its start. */
    want->source = -1;
    fy_op_matched(f, want->op, want->rank == FERRY_ANY_RANK ? f->rank : want->rank, want->tag, 0);
    if (post(f, want) != 0)
        end_want(f, want, FERRY_ENOMEM);
}

static void take_done(ferry *f, int source, const fy_frame *frame)
{
    uint32_t op = (uint32_t)frame->words[0];
    offer *o = fy_op_owned(f, op, on_offer_gone);
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

static void take_credit(ferry *f, int source, const fy_frame *frame)
{
    fy_peer *peer = fy_peer_of(&f->peers, source);
    if (peer == NULL || frame->words[0] > peer->mail_out)
        fy_bad_frame(f, source, frame, "credit for messages");
    else
        peer->mail_out -= (uint32_t)frame->words[0];
}

fy_verdict fy_mail_deliver(ferry *f, int source, const fy_frame *frame)
{
    if (frame->handler >= MAIL_SORTS || frame->word_count != mail_words[frame->handler]) {
        fy_bad_frame(f, source, frame, "part of a two-sided message");
        return FY_TAKEN;
    }
    switch ((mail_sort)frame->handler) {
    case MAIL_EAGER:
    case MAIL_OFFER:
        return take_message(f, source, frame);
    case MAIL_PULL:
        return take_pull(f, source, frame);
    case MAIL_PIECE:
        take_piece(f, source, frame);
        break;
    case MAIL_GONE:
        take_gone(f, source, frame);
        break;
    case MAIL_DONE:
        take_done(f, source, frame);
        break;
    case MAIL_CREDIT:
        take_credit(f, source, frame);
        break;
    case MAIL_SORTS:
        break;
    }
    return FY_TAKEN;
}

void fy_mail_peer_gone(ferry *f, int rank)
{
    fy_mail *mail = &f->mail;
    /* Whole messages are kept for receives to come. What was offered cannot be pulled any more. */
    fy_link *all = NULL;
    fy_item *first = fy_item_find(mail, rank, FERRY_ANY_TAG);
    if (first == NULL)
        return;
    all = &first->places[FY_MAIL_SOURCE].key->items;
    fy_link *next;
    for (fy_link *at = all->next; at != all; at = next) {
        next = at->next;
        fy_item *item = ((struct fy_item_place *)(void *)at)->item;
        if (item->packet->frame.handler != MAIL_OFFER)
            continue;
        bool last = next == all && at->prev == all;
        fy_packet_destroy(&f->packets, fy_item_take(mail, item));
        if (last)
            break; /* the key is gone with it */
    }
}
