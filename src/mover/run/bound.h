/* Bound: what a rank and its neighbours agree on when a mover is bound: the moves within the rank,
 * and the links to others with their copies, counters and buffers.
 *
 * The copies of a mover are of three kinds: within the rank, in from another (a link in), out to
 * another (a link out). The two ends of a link have the same copies in the same order.
 *
 * Where memory is shared a link has a channel of counters. Over a direct link the target's moves
 * read the source's grids; the source waits until they have been taken. Over a staged link the
 * source packs into one of a few slots in the shared heap and goes on. That saves one hand-off of a
 * cache line, which for little data costs more than copying twice. It also serves grids that nobody
 * else sees. Without shared memory the source packs into one buffer and sends it, at most one
 * movement ahead of the target, which unpacks and acknowledges. */
#ifndef FY_MOVER_BOUND_H
#define FY_MOVER_BOUND_H

#include <stdatomic.h>

#include "mover/kernels/move.h"

#include <ferry/mover_blocks.h>

/* The counters of a link, in the shared heap, each on its own line. `ready` is written by the
 * source: its grids hold the data of that movement. `taken` is written by the target: it has them.
 * The flags say that their writer sleeps, or is about to, and wants a frame when the other's
 * counter moves. */
typedef struct fy_channel {
    _Alignas(64) _Atomic uint64_t ready;
    _Alignas(64) _Atomic uint64_t taken;
    _Alignas(64) _Atomic uint32_t target_sleeps;
    _Alignas(64) _Atomic uint32_t source_sleeps;
} fy_channel;

/* One of the source's grids, as the source of a link tells the target. */
typedef struct fy_offer {
    ferry_grid grid;
    int64_t block;
} fy_offer;

/* How a link carries its copies. */
typedef enum fy_link_mode { FY_LINK_MESSAGES, FY_LINK_DIRECT, FY_LINK_STAGED } fy_link_mode;

/* Movements that a staged link can be ahead, and the size up to which staging beats reading the
 * grids (measured: halos of 32^3 gain, of 64^3 lose). */
enum { FY_SLOTS = 4, FY_STAGE_BYTES = 16 * 1024 };

/* One end of a link. */
typedef struct fy_link_end {
    int rank;            /* the other's */
    size_t first, count; /* its copies among those of the mover's direction */
    fy_move *moves;      /* in: to run; out: to pack, NULL when direct */
    size_t move_count;
    fy_link_mode mode;
    fy_channel *channel;  /* NULL without shared memory */
    char *buffer;         /* packed copies, the first slot of staged ones; NULL when direct */
    size_t slot_bytes;    /* from slot to slot */
    size_t bytes;         /* of the packed copies */
    uint64_t points;      /* of its copies */
    uint64_t sent, acked; /* out, not direct: movements; acked may lag behind when staged */
    uint64_t arrived;     /* in, packed: the movement that is in the buffer */
    size_t arrived_bytes; /* in, packed: of the movement that is arriving */
    uint64_t hash;        /* of its copies, which the other end has too */
    bool told;            /* the other's handshake has come */
    fy_offer *offers;     /* in: its grids, until binding is over */
    size_t offer_count;
} fy_link_end;

/* An element that moves between ranks: its index in the target and in the source. */
typedef struct fy_pair {
    int64_t target, source;
} fy_pair;

/* The pairs that another rank asked of this one at binding over indices. Or the entries that it
 * handed over when blocks changed owners, which lie in the place of the pairs. */
typedef struct fy_ask {
    struct fy_ask *next;
    int rank;
    size_t count; /* of pairs */
    size_t size_bytes;
    fy_pair pairs[];
} fy_ask;

/* A move of an ordered mover, and the link it comes in by; NULL within the rank. */
typedef struct fy_step {
    fy_move *move;
    const fy_link_end *end;
} fy_step;

/* The copies of one direction, sorted by rank, beginning after this rank's own, then by
 * fy_copy_compare. */
typedef struct fy_direction {
    const uint32_t *copies; /* movers over regions: in those of the mover, until it is bound */
    fy_pair *pairs;         /* movers over indices */
    int *ranks;             /* the other's, per copy or pair: until it is bound */
    size_t count;
    uint64_t points;
    fy_link_end *ends;
    size_t end_count;
    size_t *left; /* numbers of the ends that the movement waits for */
    size_t left_count;
} fy_direction;

/* How far binding has come, at first and whenever blocks have changed owners. */
typedef enum fy_stage {
    FY_STAGE_ALONE,     /* analysis: nobody has been shaken hands with */
    FY_STAGE_HANDSHAKE, /* neighbours were shaken hands with; their handshakes are awaited */
    FY_STAGE_BOUND,
} fy_stage;

/* Channels of a mover that is gone, until the targets are done with them. */
typedef struct fy_remains {
    struct fy_remains *next;
    uint32_t number, round;
    fy_channel *channels;
    size_t count; /* of ranks; those that are done are -1 */
    int ranks[];
} fy_remains;

/* The binding of a mover. All zero: there is none. */
typedef struct fy_bound {
    fy_stage stage;
    fy_direction in, out;
    size_t own_count; /* of the copies within the rank, and of own_moves */
    fy_move *own_moves;
    uint64_t own_points;
    fy_step *sequence; /* with options.ordered: all moves to run, in order */
    size_t sequence_count;
    fy_axes axes;         /* of all moves */
    fy_channel *channels; /* of the links out, then their slots */
    fy_remains *remains;  /* what becomes of them */
    fy_ask *asks;         /* until binding is over */
    int ask_count;
    int culprit;    /* the rank that told of an error */
    bool explained; /* the error's message is that of its cause */
} fy_bound;

/* The end of `rank`, or NULL. */
fy_link_end *fy_direction_find(const fy_direction *direction, int rank);

#endif
