/* The ways of a two-sided message.
 *
 *     source                           target
 *     EAGER with the data     ->       met: copied; END, and now and then CREDIT, go back
 *     OFFER                   ->       met:
 *                             <-       PULL of a piece, several at a time
 *     PIECE with the data     ->       ...
 *                             <-       DONE
 *     OFFER with an address   ->       met: copied; the offer's mark cleared
 *                             <-       DONE
 *
 * An offer that its source has given up meanwhile answers a PULL with GONE, and the receive waits
 * for the next message, in its old place. A receive that is given up while it pulls says DONE with
 * the reason. Frames name offers and receives by their operations, which are found only while they
 * are pending: nothing is written after an end. */
#include "core/mail.h"

#include <stdlib.h>

#include "core/board.h"
#include "core/fail.h"
#include "core/kinds.h"
#include "core/rank.h"

_Static_assert(FY_MAIL_MARKS * sizeof(fy_mail_mark) <= FY_BOARD_MARKS_BYTES, "they have room");

static const uint8_t mail_words[FY_MAIL_SORTS] = {0, 4, 4, 2, 2, 3, 1};

fy_frame fy_mail_frame(fy_mail_kind kind)
{
    fy_frame frame;
    fy_frame_begin(&frame, FY_KIND_MAIL, (uint16_t)kind, mail_words[kind]);
    frame.words[0] = frame.words[1] = frame.words[2] = frame.words[3] = 0;
    return frame;
}

fy_mail_mark *fy_mail_marks(const ferry *f, int rank)
{
    char *board =
        f->head.ops->heap.board == NULL ? NULL : f->head.ops->heap.board(f->head.port, rank);
    return board == NULL ? NULL : (fy_mail_mark *)(void *)(board + FY_BOARD_MARKS_OFFSET);
}

bool fy_mail_is_shared(const ferry *f, const void *data, size_t size_bytes)
{
    return f->head.ops->heap.owner != NULL &&
           f->head.ops->heap.owner(f->head.port, FY_APP, data, size_bytes) >= 0;
}

void fy_mail_table_init(fy_mail *mail)
{
    fy_pool_init(&mail->keys, sizeof(fy_mail_key), 32);
    fy_pool_init(&mail->items, sizeof(fy_item), 32);
}

void fy_mail_table_fini(ferry *f, fy_mail *mail)
{
    for (fy_item *item; (item = fy_item_find(mail, FERRY_ANY_RANK, FERRY_ANY_TAG)) != NULL;)
        fy_packet_destroy(&f->packets, fy_item_take(mail, item));
    free(mail->buckets);
    mail->buckets = NULL;
    mail->key_count = mail->bucket_count = 0;
    fy_pool_fini(&mail->keys);
    fy_pool_fini(&mail->items);
}

void fy_mail_init(ferry *f)
{
    fy_mail_table_init(&f->mail);
    fy_pool_init(&f->mail.wants, sizeof(fy_want), 32);
    fy_pool_init(&f->mail.offers, sizeof(fy_offer), 32);
}

void fy_mail_fini(ferry *f)
{
    fy_mail_table_fini(f, &f->mail);
    fy_pool_fini(&f->mail.wants);
    fy_pool_fini(&f->mail.offers);
}

fy_verdict fy_mail_deliver(ferry *f, int source, const fy_frame *frame)
{
    if (frame->handler >= FY_MAIL_SORTS || frame->word_count != mail_words[frame->handler]) {
        fy_bad_frame(f, source, frame, "part of a two-sided message");
        return FY_TAKEN;
    }
    switch ((fy_mail_kind)frame->handler) {
    case FY_MAIL_EAGER:
    case FY_MAIL_OFFER:
        return fy_mail_take_message(f, source, frame);
    case FY_MAIL_PULL:
        return fy_mail_take_pull(f, source, frame);
    case FY_MAIL_PIECE:
        return fy_mail_take_piece(f, source, frame);
    case FY_MAIL_GONE:
        fy_mail_take_gone(f, source, frame);
        break;
    case FY_MAIL_DONE:
        fy_mail_take_done(f, source, frame);
        break;
    case FY_MAIL_CREDIT:
        fy_mail_take_credit(f, source, frame);
        break;
    case FY_MAIL_SORTS:
        break;
    }
    return FY_TAKEN;
}

void fy_mail_peer_gone(ferry *f, int rank)
{
    fy_mail *mail = &f->mail;
    /* Whole messages are kept for receives to come. An offered message cannot be pulled any more.
     */
    fy_link *all = NULL;
    fy_item *first = fy_item_find(mail, rank, FERRY_ANY_TAG);
    if (first == NULL)
        return;
    all = &first->places[FY_MAIL_SOURCE].key->items;
    fy_link *next;
    for (fy_link *at = all->next; at != all; at = next) {
        next = at->next;
        fy_item *item = ((struct fy_item_place *)(void *)at)->item;
        if (item->packet->frame.handler != FY_MAIL_OFFER)
            continue;
        bool last = next == all && at->prev == all;
        fy_packet_destroy(&f->packets, fy_item_take(mail, item));
        if (last)
            break; /* the key, which has the list, is gone too */
    }
}
