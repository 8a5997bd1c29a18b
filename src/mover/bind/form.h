/* Form: the part of binding that is a rank's own work. It reads the plan of a mover and makes its
 * binding. It does not see the movement in flight, and asks no other rank. */
#ifndef FY_MOVER_FORM_H
#define FY_MOVER_FORM_H

#include "mover/run/bound.h"
#include "mover/run/planned.h"

/* The functions in which movers over regions and over indices differ. They may change of the
 * binding its axes, and the end or the sequence that they make. Errors: FERRY_ENOMEM, FERRY_EINVAL.
 */
struct fy_mover_form {
    /* Bytes that the copies of an end of `direction` take when packed. */
    size_t (*bytes)(const fy_planned *plan, const fy_direction *direction, const fy_link_end *end);
    /* Makes the moves of an end whose copies travel packed, to or from its buffer. */
    int (*packed)(const fy_planned *plan, fy_bound *bound, fy_link_end *end, bool outward);
    /* Makes the moves of an end that reads the grids its source offered. FERRY_ENOENT: the source
     * has freed them. */
    int (*direct)(const fy_planned *plan, fy_bound *bound, fy_link_end *end);
    /* A hash of the copies of an end, which is the same at the other end. */
    uint64_t (*hash)(const fy_planned *plan, const fy_bound *bound, const fy_link_end *end,
                     bool outward);
    /* Lists the grids that an end out reads by block, each once, at most as many as it has copies.
     */
    size_t (*offers)(const fy_planned *plan, const fy_direction *direction, const fy_link_end *end,
                     fy_mover_offer *out);
    /* Makes the sequence of an ordered mover. */
    int (*sequence)(const fy_planned *plan, fy_bound *bound);
};

extern const fy_mover_form fy_regions_form, fy_indices_form;

/* Makes the ends of a direction, whose `ranks` are set. FERRY_ENOMEM. */
int fy_direction_init(fy_direction *direction);
void fy_direction_fini(fy_direction *direction);

/* Makes the memory that neighbours may use as soon as they have this rank's handshake: counters and
 * buffers of the ends out, and buffers of the ends in that get messages. */
int fy_mover_open(const fy_planned *plan, fy_bound *bound);

/* Makes the moves of an end in, when the handshake of its source has said which mode it has.
 * FERRY_EINVAL: its source offers other grids. FERRY_ENOENT: its source, which may have been bound
 * long ago, has freed them. FERRY_ENOMEM. */
int fy_link_connect(const fy_planned *plan, fy_bound *bound, fy_link_end *end);

/* Movers over regions: all that comes before the handshakes. Keeps `entries` until fy_mover_link.
 * FERRY_EINVAL, FERRY_ENOMEM. */
int fy_mover_analyse(fy_planned *plan, fy_bound *bound, const ferry_plan *entries);

/* Movers over indices. The rank of a ghost makes its direction `near` and its own move; the owner
 * of the originals makes the direction `far` from the `count` requests that it got. With `back`
 * data go from the ghosts to the originals. FERRY_EINVAL, FERRY_ENOMEM. */
int fy_ghosts_check(const fy_planned *plan, const ferry_grid *source, const ferry_grid *target);
int fy_ghosts_take(const fy_planned *plan, fy_bound *bound, const ferry_ghosts *ghosts,
                   fy_direction *near);
int fy_asks_take(const fy_planned *plan, const fy_bound *bound, int count, bool back,
                 fy_direction *far);

/* The grid of a block that the source of a link offered; NULL: it did not offer it. */
const ferry_grid *fy_link_offer(const fy_link_end *end, int32_t block);

/* Whether the other ranks of this node can read a grid. */
bool fy_grid_is_known(ferry *f, const ferry_grid *grid);

#endif
