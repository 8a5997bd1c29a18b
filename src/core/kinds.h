/* Kinds of frames that belong to core. */
#ifndef FY_CORE_KINDS_H
#define FY_CORE_KINDS_H

enum {
    FY_KIND_REQUEST,           /* run a handler */
    FY_KIND_LENT,              /* a frame of another kind, whose data are read where they are */
    FY_KIND_REQUEST_BROADCAST, /* pass on, and run a handler */
    FY_KIND_END,               /* an operation has ended (words: op, error) */
    FY_KIND_COLLECTIVE,        /* a part of a collective operation */
    FY_KIND_WAVE,              /* control lane, either thread: termination waves */
    FY_KIND_MAIL,              /* two-sided messages */
    FY_KIND_LEAVE,             /* a rank that leaves, and answers to it */
    FY_KIND_READY,             /* the source, which has joined, takes objects from now on */
    FY_KIND_REFUSAL, /* control lane, either thread: the source leaves this rank's requests with
                        it */
    FY_KIND_WHY,     /* control lane, either thread: this rank is to say what it does */
    FY_KIND_LOSS,    /* work was lost; or handlers to compare */
};

#endif
