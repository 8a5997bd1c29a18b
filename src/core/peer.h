/* Peer: the record of each rank with which this rank communicates, and the actions when one goes.
 *
 * Records come in pages of neighbouring ranks. A page is made at the first contact with one of its
 * ranks. A rank that has died or left is "gone" from the moment when everything that it sent has
 * been handled. If others keep this rank too busy to find that out, it is gone a short while later.
 * Then its operations fail, the application is told, and no frame from it is handled any more. A
 * rank that may join later counts as gone until it is seen to have joined. Application thread only.
 */
#ifndef FY_PEER_H
#define FY_PEER_H

#include <ferry/member.h>

#include "core/head.h"

enum { FY_OUTCOME_BYTES = 64 };
enum { FY_PEER_PAGE_BITS = 5, FY_PEER_PAGE = 1 << FY_PEER_PAGE_BITS };

typedef struct fy_peer {
    uint64_t work_sent, work_received; /* quiesce.c */
    uint32_t moved_out, moved_in;      /* objects (leave.c) */
    uint32_t mail_out;                 /* bytes sent eagerly that it may still hold (mail_send.c) */
    uint32_t mail_back;                /* bytes it sent eagerly that it has not been told of */
    fy_outlet *outlet; /* where to write messages without data; one without room: by `send` */
} fy_peer;

typedef struct fy_peers {
    uint64_t *going, *gone; /* a bit per rank */
    uint64_t *absent;       /* of those, the ones that have not joined */
    uint64_t *awaited;      /* of those, the ones that this rank asked for (ferry_spawn) */
    uint64_t *ready;        /* those that have joined and take objects (join.c) */
    uint64_t *unseen;       /* those that were gone when this rank learned of them */
    char *outcome;          /* FY_OUTCOME_BYTES, for fy_peer_outcome */
    int absent_count;
    int gone_count;
    uint64_t gone_mark; /* equal on ranks that know the same set of gone ranks */
    int shifts;         /* how many are known to have joined, and to have gone again */
    bool news;          /* some are going */
    uint64_t news_ns;
    const _Atomic uint32_t *changes; /* the port's, or 0 forever */
    uint32_t changes_seen;
    uint32_t
        looks; /* rounds that could have completed their departure, since the first of them went */
    ferry_peer_fn *fn; /* the application's */
    void *arg;
} fy_peers;

/* FERRY_ENOMEM. */
int fy_peers_init(ferry *f);
void fy_peers_fini(ferry *f);

/* Finds out whether peers have come or gone, if the port says that something has changed. Returns
 * how many have come: a call that waits looks at its condition again before it sleeps. */
int fy_peers_look(ferry *f);

/* Completes the departure of the peers that were seen going and have no frames left to handle.
 * Returns how many, for the same reason. */
int fy_peers_bury(ferry *f);

/* From now on the program is not told of deaths. It survives them if it has said that it does. */
void fy_peers_ignore(ferry *f);

/* Whether a frame from `rank`, which counts as gone, comes from a rank that has just joined. */
bool fy_peers_arrived(ferry *f, int rank);

/* fy_peers_index: the number of ranks below `rank` that are not gone. fy_peers_at: the rank that
 * has `index` of them below it. */
int fy_peers_index(const ferry *f, int rank);
int fy_peers_at(const ferry *f, int index);

/* Text about `rank`, which is gone; lends until the next call. */
const char *fy_peer_outcome(const ferry *f, int rank);

/* The record of `rank`; NULL without memory. */
fy_peer *fy_peer_make(ferry *f, int rank);

/* Not static: small code calls one copy, in peer.c. */
inline fy_peer *fy_peer_of(ferry *f, int rank)
{
    fy_peer *page = ((fy_head *)(void *)f)->peer_pages[rank >> FY_PEER_PAGE_BITS];
    return page != NULL ? &page[rank & (FY_PEER_PAGE - 1)] : fy_peer_make(f, rank);
}

#endif
