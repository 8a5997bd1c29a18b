/* Mail: two-sided messages, which match receives by source and tag.
 *
 * A short message travels immediately. If no receive matches it, it is held at its target, within a
 * credit per pair of ranks. A message that is long or finds no credit stays at its source, and is
 * only offered. A receive that matches an offer pulls the message in pieces, a few at a time. If
 * the message is in the shared heap of the node, the receive copies it from there in one step.
 *
 * A source may give up an offer while its target copies. So each offer that can be copied has a
 * mark on the source's board, which holds the offer's number. The target clears the mark when it
 * has read everything, the source when it gives up. The rank that finds the mark cleared comes too
 * late. If that is the target, it has received nothing, whatever it has read.
 *
 * Receives that wait, and messages without a receive, are in lists under keys of a hash table.
 * There are four ways in which a receive can name source and tag. A receive is under one key, a
 * message under four. The first of each list is the oldest, so no list is searched. Invariant: no
 * receive and message that match are under one key. Application thread only. */
#ifndef FY_MAIL_H
#define FY_MAIL_H

#include "base/list.h"
#include "base/pool.h"
#include "core/operation.h"
#include "core/queue.h"

/* The ways to name source and tag: a bit for a source that is given, one for a tag. */
enum { FY_MAIL_SOURCE = 1, FY_MAIL_TAG = 2, FY_MAIL_WAYS = 4 };

typedef struct fy_mail_key {
    struct fy_mail_key *next; /* in its bucket */
    uint64_t key;
    uint32_t left; /* tags.c: the round in which an item of the list could not be run */
    fy_link wants, items;
} fy_mail_key;

/* A receive. */
typedef struct fy_want {
    fy_link link; /* in the list of its key; in none once it has matched its message */
    fy_mail_key *key;
    uint64_t order; /* of its posting */
    int rank;       /* or FERRY_ANY_RANK */
    int32_t tag;    /* or FERRY_ANY_TAG */
    unsigned char *buffer;
    size_t size_max;
    uint32_t op;
    /* The offer that it has matched. */
    int source;
    uint32_t offer;
    size_t size_bytes, asked, received;
} fy_want;

/* A message without a receive. */
typedef struct fy_item {
    struct fy_item_place {
        fy_link link;
        struct fy_item *item;
        fy_mail_key *key;
    } places[FY_MAIL_WAYS];
    fy_packet *packet;
} fy_item;

/* A message that stays here until it is pulled. */
typedef struct fy_offer {
    const unsigned char *data;
    void *copy; /* of an untracked message; else NULL */
    size_t size_bytes;
    int rank;
    int mark; /* its mark's index; -1: it can only be pulled */
} fy_offer;

/* A mark: the number of the offer that can be copied, which is given once and is never 0; or 0. On
 * a line of its own, because two ranks write it. */
typedef struct fy_mail_mark {
    _Alignas(64) _Atomic uint64_t number;
} fy_mail_mark;

enum { FY_MAIL_MARKS = 32 };

typedef struct fy_mail {
    fy_mail_key **buckets;
    uint32_t bucket_count; /* power of two, or 0 */
    uint32_t key_count;
    uint64_t posted;  /* receives so far */
    uint64_t offered; /* offers with a mark so far */
    uint32_t marks;   /* in use, a bit for each */
    fy_pool keys, wants, items, offers;
} fy_mail;

void fy_mail_init(ferry *f);
void fy_mail_fini(ferry *f);

/* Makes an empty table; frees a table and the packets in it. */
void fy_mail_table_init(fy_mail *mail);
void fy_mail_table_fini(ferry *f, fy_mail *mail);
fy_verdict fy_mail_deliver(ferry *f, int source, const fy_frame *frame);

/* Forgets the offers of a rank that has gone. */
void fy_mail_peer_gone(ferry *f, int rank);

/* A frame's handler field, and the words with it. */
typedef enum fy_mail_kind {
    FY_MAIL_EAGER,  /* none */
    FY_MAIL_OFFER,  /* size, address or 0, number, mark; the frame's op is the offer */
    FY_MAIL_PULL,   /* offer, receive, offset, size of the piece */
    FY_MAIL_PIECE,  /* receive, offset */
    FY_MAIL_GONE,   /* receive, offer */
    FY_MAIL_DONE,   /* offer, error, size allowed */
    FY_MAIL_CREDIT, /* bytes */
    FY_MAIL_SORTS
} fy_mail_kind;

enum {
    /* The bytes of eager messages from one rank to one other, heads included. */
    FY_MAIL_CREDIT_BYTES = 256 * 1024,
    FY_MAIL_HEAD_BYTES = 64,
};

/* The part of these bytes that an eager message takes. */
static inline uint32_t fy_mail_cost(size_t size_bytes)
{
    return (uint32_t)size_bytes + FY_MAIL_HEAD_BYTES;
}

/* A frame of a kind without data, whose words are 0. */
fy_frame fy_mail_frame(fy_mail_kind kind);

/* The marks of `rank`'s offers; NULL: it shares no memory with this one. */
fy_mail_mark *fy_mail_marks(const ferry *f, int rank);

/* Whether it lies in the shared heap. */
bool fy_mail_is_shared(const ferry *f, const void *data, size_t size_bytes);

/* The frames that a source gets, mail_send.c. */
fy_verdict fy_mail_take_pull(ferry *f, int source, const fy_frame *frame);
void fy_mail_take_done(ferry *f, int source, const fy_frame *frame);
void fy_mail_take_credit(ferry *f, int source, const fy_frame *frame);

/* The owner of a receive's operation (fy_op_own). */
FY_SHARED fy_op_gone_fn fy_mail_want_gone, fy_mail_offer_gone;

/* The frames that a target gets, mail_receive.c. */
fy_verdict fy_mail_take_message(ferry *f, int source, const fy_frame *frame);
fy_verdict fy_mail_take_piece(ferry *f, int source, const fy_frame *frame);
void fy_mail_take_gone(ferry *f, int source, const fy_frame *frame);

/* Matching, mail_match.c. */

/* Puts a receive under its key, in the order of posting. FERRY_ENOMEM. */
int fy_want_place(fy_mail *mail, fy_want *want);
void fy_want_remove(fy_mail *mail, fy_want *want);

/* The oldest receive that matches a message from `source` with `tag`; NULL: none. */
fy_want *fy_want_find(const fy_mail *mail, int source, int32_t tag);

/* Puts a message under its keys. NULL without memory; else keeps the packet. */
fy_item *fy_item_create(fy_mail *mail, fy_packet *packet);

/* Removes the item; its packet belongs to the caller. */
fy_packet *fy_item_take(fy_mail *mail, fy_item *item);

/* The list of one way to name source and tag; NULL while it is empty. */
fy_mail_key *fy_mail_key_find(const fy_mail *mail, int way, int rank, int32_t tag);

/* The oldest message that matches a receive; NULL: none. */
fy_item *fy_item_find(const fy_mail *mail, int rank, int32_t tag);

#endif
