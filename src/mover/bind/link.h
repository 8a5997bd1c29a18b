/* Link: binding with other ranks. Movers over regions and over indices share it. */
#ifndef FY_MOVER_LINK_H
#define FY_MOVER_LINK_H

#include "mover/bind/change.h"
#include "mover/bind/form.h"
#include "mover/run/state.h"

#include <ferry/member.h>

/* How often binding checks whether a rank has died. */
enum { FY_LOOK_NS = 50 * 1000 * 1000 };

/* Whether a member has died or left since the members agreed. */
bool fy_mover_any_dead(ferry *f);

/* This rank's place among the members. */
static inline int fy_mover_place(const ferry *f)
{
    return ferry_member_place(f, ferry_rank(f));
}

/* Tells all ranks whether one has an error. Returns `error`; if it is 0 and other ranks have one,
 * the error of one of them. Collective. */
int fy_mover_agree(ferry *f, int error);

/* The same. Also sets `*number` to the largest that a rank passes, unless it fails for a death.
 * fy_mover_agree passes 0. */
int fy_mover_agree_on(ferry *f, int error, uint64_t *number);

/* Connects the links. Sends to and waits for the neighbours alone. After an error it tells them. */
int fy_mover_link(ferry_mover *m);

/* Sends handshakes to the neighbours and waits for theirs. FERRY_EINVAL: their copies differ, or
 * they failed. FERRY_EPEER: one died. */
int fy_mover_handshake(ferry_mover *m);

/* Answers kept handshakes for a mover that will not be bound here with `error`. */
void fy_handshakes_refuse(ferry *f, uint32_t number, int error);

/* Counts a mover that this rank does not bind, but others may, if they have not learnt of a death
 * yet. Their handshakes are answered with `error`. */
void fy_mover_skip(ferry *f, int error);

/* Disconnects from the neighbours: this rank no longer uses the links. Its channels are freed when
 * no target reads them any more. */
void fy_mover_disconnect(ferry_mover *m);

/* Frees copies, links, moves and asks. The mover is then as before its analysis. */
void fy_mover_unlink(ferry_mover *m);

/* A change of owners: the blocks that left this rank or came to it, and the earlier floor plan of
 * each array. `marks` has room for one per rank: with that memory nothing can fail before the other
 * ranks were told. */
typedef struct fy_outcome {
    const fy_changes *changes;
    const ferry_floorplan *old;
    bool *marks;
} fy_outcome;

/* Changes the movers of `arrays` for the new owners, which the floor plans have already.
 * Collective. If a mover cannot follow, each later call on it returns the error, on this rank and
 * others. */
void fy_mover_follow(ferry *f, fy_arrays arrays, const fy_outcome *outcome);

/* Notes whether a change of owners has failed here. If a rank died, the change may have succeeded
 * on other ranks. Those wait for this one to follow, and are refused. */
void fy_mover_give_up(ferry *f, fy_arrays arrays, bool gives_up);

/* Whether a mover of `arrays` is in flight. */
bool fy_mover_any_in_flight(ferry *f, fy_arrays arrays);

#endif
