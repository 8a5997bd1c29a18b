/* Quiesce: finds out that no application work is left anywhere (quiesce.c). */
#ifndef FY_QUIESCE_H
#define FY_QUIESCE_H

#include "core/collective.h"
#include "core/loss.h"

/* Guarded by the control lock: the helper thread may take in the frames of waves. */
typedef struct fy_quiescence {
    uint64_t epoch;           /* of the ferry_quiesce that runs, or of the last one */
    uint64_t announced_epoch; /* the last one known to have ended */
    bool
        runs; /* a quiescence, of the program's or of ferry_close. Application thread, as `error` */
    int error; /* others are in a collective that this rank does not make; 0: none is known */
    bool inside, broken; /* the program is in ferry_quiesce; it is to return. Application thread */
    bool shifted;        /* members have gone or joined */
    bool late;           /* members closed in it, so it takes in no newcomers */
    bool regroups;       /* it ended among others than the group so far: */
    uint64_t *members;   /* these; a bit per rank */
    uint32_t number;     /* and what the collectives that follow are counted from */

    /* The wave this rank has to answer; at the root, the one it has started. */
    bool asked, passed_on;
    uint64_t asked_epoch, asked_mark;
    int asked_shifts;        /* that its root knew of (peer.h) */
    int asker;               /* who asked; -1: this rank is the root */
    uint32_t asker_handlers; /* its signature of them */
    uint32_t wave;
    uint32_t begun; /* waves this rank has started; gives each wave its own number */
    int answers;    /* of children, with the sums of what they reported */
    uint64_t created, finished;
    bool closes;  /* a member among the ranks that have answered closes */
    uint32_t era; /* the latest of the members among them (fy_wave_era) */

    /* The last rank that was seen in a quiescence by another (collective_frames.c,
     * fy_collectives_doubt). `seen`: there is one that no collective has been checked against. */
    atomic_bool seen;
    int seen_rank;
    uint64_t seen_epoch, seen_mark;
    fy_elsewhere seen_there;
    /* here_ns: when to tell the parent that this rank is here; 0: it was told. doubted: ranks have
     * given up an epoch, and one may not be where it has asked from. Application thread. */
    uint64_t here_ns;
    bool doubted;

    /* The shorter way (rest.c). on_board: this epoch may end by the board. by_board: it has.
     * looked: this rank has written there. come: members before this place have come to it.
     * Application thread. */
    bool on_board, by_board, looked;
    int come;

    /* At the root: the result of the wave before. */
    bool was_balanced;
    uint64_t last_created, last_finished;
    uint64_t unmoved_ns; /* since when waves have given the same sums */
    uint64_t begin_ns;   /* when the next wave begins; 0: immediately. Application thread only */

    /* Why a collective failed elsewhere that succeeded here; the next ferry_quiesce says it. */
    char misfit[FY_REASON_BYTES];
} fy_quiescence;

/* FERRY_ENOMEM. */
int fy_quiesce_init(ferry *f);
void fy_quiesce_fini(ferry *f);

/* A peer has gone, or joined. The waves begin anew, among the ranks that are present now. A rank
 * that knows that an epoch has ended tells its new neighbours. */
void fy_quiesce_members_changed(ferry *f);

/* Looks whether a rank that was seen in a quiescence will not make the collectives that run here.
 */
void fy_quiesce_doubt(ferry *f);

/* Tells `rank`, which has joined, which epoch was the last to end. */
void fy_quiesce_tell(ferry *f, int rank);

#endif
