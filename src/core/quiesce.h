/* Quiesce: finds out that no application work is left anywhere (quiesce.c). */
#ifndef FY_QUIESCE_H
#define FY_QUIESCE_H

#include "core/core.h"

/* Guarded by the control lock: the helper thread may take in the frames of waves. */
typedef struct fy_quiescence {
    uint64_t epoch;           /* of the ferry_quiesce that runs, or of the last one */
    uint64_t announced_epoch; /* the last one known to have ended */
    bool inside, broken; /* the program is in ferry_quiesce; it is to return. Application thread */
    bool shifted;        /* members have gone or joined */
    bool regroups;       /* it ended among others than the group so far: */
    uint64_t *members;   /* these; a bit per rank */
    uint32_t number;     /* and what the collectives that follow are counted from */

    /* The wave this rank has to answer; at the root, the one it has started. */
    bool asked, passed_on;
    uint64_t asked_epoch, asked_mark;
    int asked_shifts; /* that its root knew of (peer.h) */
    uint32_t wave;
    uint32_t begun; /* waves this rank has started: no number serves twice */
    int answers;    /* of children, with the sums of what they reported */
    uint64_t created, finished;

    /* At the root: what the wave before came to. */
    bool was_balanced;
    uint64_t last_created, last_finished;
    uint64_t unmoved_ns; /* since when they have come to the same */
    uint64_t begin_ns;   /* the next wave's time; 0: at once. Application thread only */
} fy_quiescence;

/* FERRY_ENOMEM. */
int fy_quiesce_init(ferry *f);
void fy_quiesce_fini(ferry *f);

/* A peer has gone, or joined: the waves begin anew, among those that are there now, and who knows
 * of an announcement tells its new neighbours. */
void fy_quiesce_members_changed(ferry *f);

/* Tells `rank`, which has joined, which epoch was the last to end. */
void fy_quiesce_tell(ferry *f, int rank);

#endif
