/* Link: what the ways to bind a mover share. */
#ifndef FY_MOVER_LINK_H
#define FY_MOVER_LINK_H

#include "mover/bind/change.h"
#include "mover/run/state.h"

/* The differences between movers over regions and over indices. Errors: FERRY_ENOMEM, FERRY_EINVAL.
 */
struct fy_mover_form {
    /* Bytes that the copies of an end of `direction` take when packed. */
    size_t (*bytes)(const fy_planned *plan, const fy_direction *direction, const fy_link_end *end);
    /* Makes the moves of an end whose copies travel packed, to or from its buffer. */
    int (*packed)(ferry_mover *m, fy_link_end *end, bool outward);
    /* Makes the moves of an end that reads the grids its source offered. */
    int (*direct)(ferry_mover *m, fy_link_end *end);
    /* A hash of the copies of an end that is the same at the other. */
    uint64_t (*hash)(const ferry_mover *m, const fy_link_end *end, bool outward);
    /* Lists the grids that an end out reads by block, each once, at most as many as it has copies.
     */
    size_t (*offers)(const fy_planned *plan, const fy_direction *direction, const fy_link_end *end,
                     fy_offer *out);
    /* Makes the sequence of an ordered mover. */
    int (*sequence)(ferry_mover *m);
};

/* How often binding looks whether a rank has died. */
enum { FY_LOOK_NS = 50 * 1000 * 1000 };
bool fy_mover_any_dead(ferry *f);

/* Makes a mover without copies and enters its number; `*out` may be set on failure too, or NULL. */
int fy_mover_make(ferry *f, const fy_mover_form *form, const ferry_mover_options *options,
                  ferry_mover **out);

/* Makes the ends of a direction whose ranks, one per copy, are there. FERRY_ENOMEM. */
int fy_direction_init(fy_direction *direction);

/* Makes all that neighbours may use as soon as they are shaken hands with: counters and buffers of
 * the ends out, buffers of the ends in that get messages. */
int fy_mover_open(ferry_mover *m);

/* Lets all ranks know of `error`. Collective. */
int fy_mover_agree(ferry *f, int error);

/* Connects the links with the neighbours: they, and nobody else, are told and waited for. After an
 * error they learn of it. */
int fy_mover_link(ferry_mover *m);

/* Tells what is needed to the neighbours and waits until all have done so. FERRY_EINVAL: their
 * copies are others, or they failed; FERRY_EPEER: one died. */
int fy_mover_handshake(ferry_mover *m);

/* Answers those who have shaken hands with a mover that will not be bound here, or not again. */
void fy_handshakes_refuse(ferry *f, uint32_t number, int error);

/* Parts from the neighbours: nobody uses the links, and the channels go when the last is done. */
void fy_mover_part(ferry_mover *m);

/* Frees copies, links, moves and asks: the mover is as before its analysis. Nobody may use them. */
void fy_mover_unlink(ferry_mover *m);

/* The part of binding over regions that needs nobody else. Keeps `plan` until fy_mover_link.
 * FERRY_EINVAL, FERRY_ENOMEM. */
int fy_mover_analyse(ferry_mover *m, const ferry_plan *plan);

/* The change of the blocks of `arrays`: those that left this rank or came to it, and the floor
 * plans of each array as they were. `marks` has room for one per rank, so that nothing can fail
 * before others were told. */
typedef struct fy_outcome {
    const fy_changes *changes;
    const ferry_floorplan *old;
    bool *marks;
} fy_outcome;

/* Brings the movers of `arrays`, whose floor plans have the owners of now, into line with them.
 * Collective. After an error the movers concerned report it for ever, on this and other ranks.
 */
int fy_mover_follow(ferry *f, fy_arrays arrays, const fy_outcome *outcome);

/* Whether a mover of `arrays` is in flight. */
bool fy_mover_any_in_flight(ferry *f, fy_arrays arrays);

/* Connects the links, unless there was an `error`. Gives the mover or destroys it; `m` may be NULL
 * with an error. With options.check all ranks agree. */
int fy_mover_connect(ferry *f, const ferry_mover_options *options, ferry_mover *m, int error,
                     ferry_mover **out);

/* The grid of a block that the source of a link offered; NULL when it did not. */
const ferry_grid *fy_link_offer(const fy_link_end *end, int32_t block);

/* Whether the ranks of this node know the memory of a grid. */
bool fy_grid_is_known(ferry *f, const ferry_grid *grid);

#endif
