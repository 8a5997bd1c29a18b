/* Loss: why this job cannot succeed any more.
 *
 * Work is lost in three cases: a rank dies; a rank ends without ferry_leave and ferry_close; a
 * message is dropped. From then on ferry_quiesce, every collective and ferry_close fail on every
 * rank. A rank that knows of a loss answers no wave of ferry_quiesce. So no other rank is told that
 * the work is done (quiesce.c).
 *
 * Each rank learns of a death from its port. A program that has called ferry_peer_watch continues
 * after deaths. It does not continue after a dropped message. The rank that drops a message tells
 * all others by a frame. Application thread only, except fy_bad_frame. */
#ifndef FY_LOSS_H
#define FY_LOSS_H

#include "port/port.h"

enum { FY_REASON_BYTES = 240 };

/* The first frame that was dropped because it was damaged; either thread writes it. */
typedef struct fy_bad {
    const char *what;
    uint64_t size_bytes;
    int source;
    uint16_t handler;
    uint8_t kind, word_count;
} fy_bad;

typedef struct fy_loss {
    int error;         /* of the first dropped message; 0: none */
    int dead;          /* 1 + the first rank that has gone with its work; 0: none */
    uint64_t compared; /* the handlers that were last sent, and the call for which they were sent */
    char reason[FY_REASON_BYTES]; /* of `error` */
    fy_bad bad;
    atomic_bool has_bad;
    _Atomic uint32_t bad_count; /* damaged frames; relaxed: it only limits the lines */
} fy_loss;

/* Notes that work was lost here, and tells all others. The first reason stays. */
void fy_loss_note(ferry *f, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Notes that `rank` has gone: it has died, or it has left without a word to the others. */
void fy_loss_of_rank(ferry *f, int rank, bool died);

/* This rank ends alone, with `status`: tells the others. If it knows of a loss, it tells them the
 * reason of that loss. */
void fy_loss_end(ferry *f, int status);

/* 0, or the error that every quiescence and collective ends with; `call` begins its message. */
int fy_loss_check(ferry *f, const char *call);

/* Whether something may be lost, or a rank is absent. Only then is there something to check. */
bool fy_loss_is_due(const ferry *f);

/* The handlers of `rank` are known to differ from those here. Sends that rank ours. It then names
 * the first difference to all that make collective `number` (0: a quiescence, which fails from then
 * on). No quiescence ends before. */
void fy_loss_compare(ferry *f, int rank, uint32_t number);

/* A frame of another rank about a loss. */
fy_verdict fy_loss_deliver(ferry *f, int source, const fy_frame *frame);

#endif
