/* Link: functions that movers over regions and over indices share in binding. */
#ifndef FY_MOVER_LINK_H
#define FY_MOVER_LINK_H

#include "mover/bind/change.h"
#include "mover/run/state.h"

/* The functions in which movers over regions and over indices differ. Errors: FERRY_ENOMEM,
 * FERRY_EINVAL. */
struct fy_mover_form {
    /* Bytes that the copies of an end of `direction` take when packed. */
    size_t (*bytes)(const fy_planned *plan, const fy_direction *direction, const fy_link_end *end);
    /* Makes the moves of an end whose copies travel packed, to or from its buffer. */
    int (*packed)(ferry_mover *m, fy_link_end *end, bool outward);
    /* Makes the moves of an end that reads the grids its source offered. */
    int (*direct)(ferry_mover *m, fy_link_end *end);
    /* A hash of the copies of an end, which is the same at the other end. */
    uint64_t (*hash)(const ferry_mover *m, const fy_link_end *end, bool outward);
    /* Lists the grids that an end out reads by block, each once, at most as many as it has copies.
     */
    size_t (*offers)(const fy_planned *plan, const fy_direction *direction, const fy_link_end *end,
                     fy_mover_offer *out);
    /* Makes the sequence of an ordered mover. */
    int (*sequence)(ferry_mover *m);
};

/* How often binding checks whether a rank has died. */
enum { FY_LOOK_NS = 50 * 1000 * 1000 };
bool fy_mover_any_dead(ferry *f);

/* Makes a mover without copies and gives it a number. On failure `*out` is a mover to be destroyed,
 * or NULL. */
int fy_mover_make(ferry *f, const fy_mover_form *form, const ferry_mover_options *options,
                  ferry_mover **out);

/* Makes the ends of a direction, whose `ranks` are set. FERRY_ENOMEM. */
int fy_direction_init(fy_direction *direction);

/* Makes the memory that neighbours may use as soon as they have this rank's handshake: counters and
 * buffers of the ends out, and buffers of the ends in that get messages. */
int fy_mover_open(ferry_mover *m);

/* Tells all ranks whether one has an error. Returns `error`; if it is 0 and another rank has one,
 * FERRY_EPEER or FERRY_EINVAL. Collective. */
int fy_mover_agree(ferry *f, int error);

/* Connects the links. Sends to and waits for the neighbours alone. After an error it tells them. */
int fy_mover_link(ferry_mover *m);

/* Sends handshakes to the neighbours and waits for theirs. FERRY_EINVAL: their copies differ, or
 * they failed. FERRY_EPEER: one died. */
int fy_mover_handshake(ferry_mover *m);

/* Answers kept handshakes for a mover that will not be bound here with `error`. */
void fy_handshakes_refuse(ferry *f, uint32_t number, int error);

/* Disconnects from the neighbours: this rank no longer uses the links. Its channels are freed when
 * no target reads them any more. */
void fy_mover_disconnect(ferry_mover *m);

/* Frees copies, links, moves and asks. The mover is then as before its analysis. */
void fy_mover_unlink(ferry_mover *m);

/* The part of binding over regions that needs no other rank. Keeps `plan` until fy_mover_link.
 * FERRY_EINVAL, FERRY_ENOMEM. */
int fy_mover_analyse(ferry_mover *m, const ferry_plan *plan);

/* A change of owners: the blocks that left this rank or came to it, and the earlier floor plan of
 * each array. `marks` has room for one per rank: with that memory nothing can fail before the other
 * ranks were told. */
typedef struct fy_outcome {
    const fy_changes *changes;
    const ferry_floorplan *old;
    bool *marks;
} fy_outcome;

/* Changes the movers of `arrays` for the new owners, which the floor plans have already.
 * Collective. After an error each call on the movers concerned returns it, on this rank and
 * others. */
int fy_mover_follow(ferry *f, fy_arrays arrays, const fy_outcome *outcome);

/* Whether a mover of `arrays` is in flight. */
bool fy_mover_any_in_flight(ferry *f, fy_arrays arrays);

/* Connects the links, if `error` is 0. Then gives the mover; otherwise destroys `m`, which may be
 * NULL. With options.check all ranks return an error if one has one. */
int fy_mover_connect(ferry *f, const ferry_mover_options *options, ferry_mover *m, int error,
                     ferry_mover **out);

/* The grid of a block that the source of a link offered; NULL: it did not offer it. */
const ferry_grid *fy_link_offer(const fy_link_end *end, int32_t block);

/* Whether the other ranks of this node can read a grid. */
bool fy_grid_is_known(ferry *f, const ferry_grid *grid);

#endif
