/* Bound: the binding of a mover on a rank: the moves within the rank, and the links to other ranks
 * with their copies, counters and buffers. The folder bind/ makes it, and this folder runs it.
 *
 * The copies of a mover are within the rank, in from another rank (a link in), or out to another (a
 * link out). The two ends of a link have the same copies in the same order.
 *
 * If two ranks share memory, their link has a channel of counters and one of two modes:
 *
 * - Direct: the target's moves read the source's grids, and the source waits until the target has
 *   read them.
 * - Staged: the source packs into one of a few slots in the shared heap and goes on. That saves one
 *   hand-off of a cache line, which for little data costs more than a second copy. It also serves
 *   grids that other processes cannot read.
 *
 * Without shared memory the source packs into one buffer and sends it. It may be one movement ahead
 * of the target, which unpacks and acknowledges. */
#ifndef FY_MOVER_BOUND_H
#define FY_MOVER_BOUND_H

#include <stdatomic.h>

#include "mover/kernels/move.h"

#include <ferry/mover_blocks.h>

/* The counters of a link, in the shared heap, each in a cache line of its own. The source writes
 * `ready`: the last movement whose data are in its grids. The target writes `taken`: the last
 * movement whose data it has read. A rank sets its flag before it sleeps: it wants a frame when the
 * other's counter changes. */
typedef struct fy_mover_channel {
    _Alignas(64) _Atomic uint64_t ready;
    _Alignas(64) _Atomic uint64_t taken;
    _Alignas(64) _Atomic uint32_t target_sleeps;
    _Alignas(64) _Atomic uint32_t source_sleeps;
} fy_mover_channel;

/* A grid of the source of a link, which the target may read. */
typedef struct fy_mover_offer {
    ferry_grid grid;
    int64_t block;
} fy_mover_offer;

/* How a link carries its copies. */
typedef enum fy_link_mode { FY_LINK_MESSAGES, FY_LINK_DIRECT, FY_LINK_STAGED } fy_link_mode;

/* How many movements a staged link can be ahead, and the size up to which staging is faster than
 * reading the grids (measured: halos of 32^3 gain, halos of 64^3 lose). */
enum { FY_SLOTS = 4, FY_STAGE_BYTES = 16 * 1024 };

/* One end of a link. */
typedef struct fy_link_end {
    int rank;            /* the rank of the other end */
    size_t first, count; /* its copies among those of its direction */
    fy_move *moves;      /* in: to run; out: to pack, or NULL if direct */
    size_t move_count;
    fy_link_mode mode;
    fy_mover_channel *channel; /* NULL without shared memory */
    char *buffer;              /* of packed copies; staged: the first slot; direct: NULL */
    size_t slot_bytes;         /* from slot to slot */
    size_t bytes;              /* of the packed copies */
    uint64_t points;           /* of its copies */
    uint64_t sent, acked;   /* out, not direct: movements. If staged, `acked` may be out of date */
    uint64_t arrived;       /* in, by messages: the movement in the buffer */
    size_t arrived_bytes;   /* in, by messages: bytes of the next movement that have come */
    uint64_t hash;          /* of its copies, the same at the other end */
    bool has_handshake;     /* the other end's handshake has come */
    bool is_over;           /* its rank starts no more movements */
    fy_mover_offer *offers; /* in: the source's grids, until binding is over */
    size_t offer_count;
} fy_link_end;

/* An element that moves between ranks: its index in the target and in the source. */
typedef struct fy_pair {
    int64_t target, source;
} fy_pair;

/* A message of another rank at binding. Movers over indices: the pairs that it asks for. When
 * blocks have changed owners: the copies that it sends, which stand in place of the pairs. */
typedef struct fy_ask {
    struct fy_ask *next;
    int rank;
    size_t count; /* of pairs */
    size_t size_bytes;
    fy_pair pairs[];
} fy_ask;

/* A move of an ordered mover, and its link in; `end` is NULL within the rank. */
typedef struct fy_mover_step {
    fy_move *move;
    const fy_link_end *end;
} fy_mover_step;

/* The copies of one direction. They are sorted by rank, from the rank after this one on, then by
 * fy_copy_compare. */
typedef struct fy_direction {
    const uint32_t
        *copies;    /* movers over regions: a part of fy_planned.copies, until it is bound */
    fy_pair *pairs; /* movers over indices */
    int *ranks;     /* the other rank of each copy or pair, until it is bound */
    size_t count;
    uint64_t points;
    fy_link_end *ends;
    size_t end_count;
    size_t *left; /* numbers of the ends that the movement waits for */
    size_t left_count;
} fy_direction;

/* The stages of binding, also after blocks have changed owners. */
typedef enum fy_stage {
    FY_STAGE_ALONE,     /* analysis: no handshake has been sent */
    FY_STAGE_HANDSHAKE, /* handshakes were sent, and those of neighbours are awaited */
    FY_STAGE_BOUND,
} fy_stage;

/* The channels of a mover that was freed or bound again, and its name then. They are freed when no
 * target reads them any more. */
typedef struct fy_retired {
    struct fy_retired *next;
    uint32_t number, round;
    fy_mover_channel *channels;
    size_t count; /* of `ranks`; a rank that is done becomes -1 */
    int ranks[];
} fy_retired;

/* The binding of a mover. All zero: it is not bound. */
typedef struct fy_bound {
    fy_stage stage;
    fy_direction in, out;
    size_t own_count; /* of copies within the rank, and of `own_moves` */
    fy_move *own_moves;
    uint64_t own_points;
    fy_mover_step *sequence; /* with options.ordered: all moves to run, in order */
    size_t sequence_count;
    fy_axes axes;               /* of all moves */
    fy_mover_channel *channels; /* of the links out, then the slots of staged ones */
    fy_retired *retired; /* the record that will keep `channels` after the mover disconnects */
    fy_ask *asks;        /* until binding is over */
    int ask_count;
    int failed_rank;           /* the rank on which binding failed first */
    bool explained;            /* the error message says the cause already */
    const fy_link_end *orphan; /* in: its source has freed its grids already; NULL: none */
} fy_bound;

/* The end of `rank`, or NULL. */
fy_link_end *fy_direction_find(const fy_direction *direction, int rank);

#endif
