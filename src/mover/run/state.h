/* State: what a mover consists of, and the part of a rank that finds movers by number.
 *
 * Movers are numbered alike on all ranks, because binding is collective. The copies of a mover are
 * of three kinds: within the rank, in from another (a link in), out to another (a link out). The
 * two ends of a link have the same copies in the same order.
 *
 * Where memory is shared a link has a channel of counters. Over a direct link the target's moves
 * read the source's grids; the source waits until they have been taken. Over a staged link the
 * source packs into one of a few slots in the shared heap and goes on. That saves one hand-off of a
 * cache line, which for little data costs more than copying twice. It also serves grids that nobody
 * else sees. Without shared memory the source packs into one buffer and sends it, at most one
 * movement ahead of the target, which unpacks and acknowledges. */
#ifndef FY_MOVER_STATE_H
#define FY_MOVER_STATE_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/table.h"
#include "core/core.h"
#include "mover/kernels/move.h"
#include "mover/run/copies.h"

#include <ferry/mover_blocks.h>

/* The kind of frames: offers, packed copies, acknowledgements, wakes. */
enum { FY_KIND_MOVER = FY_KINDS_OF_MOVER };

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

typedef struct fy_binding fy_binding;
typedef struct fy_exchange fy_exchange;

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

/* A handshake for a mover that is not bound here yet. Each rank waits for the answer to its last
 * one, so that one per rank is enough. */
typedef struct fy_early {
    struct fy_early *next;
    int source;
    uint64_t words[3];
    size_t size_bytes;
    uint64_t data[];
} fy_early;

struct ferry_mover {
    fy_link active; /* among the movers in flight; the first member */
    ferry *f;
    uint32_t number;
    uint32_t round; /* how often it was bound, this time included */
    fy_stage stage;
    const fy_binding *binding;
    ferry_xarray *source, *target;       /* movers over regions */
    ferry_grid source_grid, target_grid; /* movers over indices */
    size_t element_bytes;
    ferry_mover_options options;
    fy_combine how, copying; /* the operation; the copy into packed buffers */
    uint64_t epoch;          /* movements started since it was bound last */
    uint64_t movements;      /* before that */
    bool under_way, flagged; /* a sleeps flag may be set */
    bool own_left;           /* the copies within the rank have not been made yet */
    bool spread;             /* neighbours know that it is lost */
    bool astray;             /* blocks of its xarrays may be anywhere: it cannot be started */
    int error;               /* for ever: FERRY_EPEER once a neighbour died; that of a binding */
    int culprit;             /* the rank that told of the error */
    bool explained;          /* the error's message is that of its cause */
    uint32_t op;
    fy_copies kept;         /* all copies: within, in, out */
    const ferry_plan *plan; /* until it is bound */
    uint32_t *copies;       /* its entries within the rank, in and out, until it is bound */
    size_t own_count;       /* of those within, and of own_moves */
    fy_move *own_moves;
    fy_axes axes; /* of all moves */
    uint64_t own_points;
    fy_direction in, out;
    fy_step *sequence; /* with options.ordered: all moves to run, in order */
    size_t sequence_count;
    fy_channel *channels; /* of the links out, then their slots */
    fy_remains *remains;  /* what becomes of them */
    fy_ask *asks;         /* until binding is over */
    int ask_count;
};

/* The mover layer's part of a rank. */
typedef struct fy_movers {
    fy_table by_number;
    fy_link active;
    uint32_t next;
    bool news; /* a handshake has come: binding looks again */
    fy_early *early;
    fy_remains *remains;
    fy_exchange *exchanges;
    uint32_t next_exchange;
    ferry_blocks *blocks; /* sets of blocks that are objects */
    uint32_t next_set;
    bool typed; /* the type of blocks is registered */
    ferry_object_type type;
} fy_movers;

typedef enum fy_mover_frame {
    FY_MOVER_HANDSHAKE, /* words: mover, channel + mode, buffer; data: fy_handshake and offers */
    FY_MOVER_DATA,      /* words: mover, epoch, offset; data: packed copies */
    FY_MOVER_ACK,       /* words: mover, epoch */
    FY_MOVER_WAKE,      /* the counters have moved */
    FY_MOVER_ASK,       /* words: mover; data: pairs, or entries of blocks that change owners */
    FY_MOVER_LOST, /* words: mover, error; it moves no more on the sender, who touches nothing */
    FY_MOVER_DONE, /* words: mover; the sender touches the channel of its link in no more */
    FY_MOVER_POST, /* words: exchange, round, error; data */
} fy_mover_frame;

fy_movers *fy_movers_of(const ferry *f);

/* A poll shall say that something has happened, whoever waits for it: also to a rank that has told
 * itself. */
static inline void fy_movers_news(ferry *f)
{
    fy_movers_of(f)->news = true;
    fy_layer_due(f, FY_LAYER_MOVER);
}

/* Gives `m` its number, which is used up even on failure, so that ranks keep in step; takes it out
 * again. FERRY_ENOMEM. */
int fy_movers_enter(ferry_mover *m);
void fy_movers_leave(ferry_mover *m);

/* Xarrays with one floor plan, which change owners together. */
typedef struct fy_arrays {
    ferry_xarray *const *items;
    size_t count;
} fy_arrays;

/* Makes all of an xarray but the data of its grids. Errors as ferry_xarray_create. */
int fy_xarray_make(ferry *f, const ferry_floorplan *blocks, size_t element_bytes,
                   ferry_point ghosts, ferry_xarray **out);

bool fy_arrays_have(fy_arrays arrays, const ferry_xarray *x);

/* The movers of `arrays` by number, which is the same order on all ranks: the first when `after` is
 * NULL; NULL after the last. */
ferry_mover *fy_movers_next(ferry *f, fy_arrays arrays, const ferry_mover *after);

/* The first word of a frame: number, and round above it. */
static inline uint64_t fy_mover_name(uint32_t number, uint32_t round)
{
    return number | (uint64_t)round << 32;
}

/* The mover of that number, or NULL. */
ferry_mover *fy_movers_find(const fy_movers *movers, uint32_t number);

/* Sends a frame about `m`, or about the mover of that name. */
int fy_mover_tell(ferry *f, int rank, fy_mover_frame what, uint64_t name, uint64_t word);
int fy_mover_send(ferry_mover *m, int rank, fy_mover_frame what, uint64_t a, uint64_t b,
                  const void *data, size_t size_bytes);

/* Does what can be done of a movement in flight; returns how much that was. Never polls. */
int fy_mover_advance(ferry_mover *m);

/* Whether the movement has all it waited for. */
bool fy_mover_is_done(const ferry_mover *m);

/* Whether a movement in flight waited for a rank that is gone: then it is done, mostly failed. */
bool fy_mover_is_bereft(ferry_mover *m);

/* Tells the neighbours of a mover that is lost, once: they would wait for ever. It touches no
 * channel from then on. */
void fy_mover_spread(ferry_mover *m);

/* Frames that handshake.c takes: a handshake, a word that a rank is done with its channel, and a
 * loss with its error. */
void fy_handshake_take(ferry *f, int source, const fy_frame *frame);
void fy_parting_take(ferry *f, int source, uint64_t name);
void fy_loss_take(ferry *f, int source, uint64_t name, int error);

/* Takes a frame of an exchange (exchange.h). */
void fy_exchange_take(ferry *f, int source, const fy_frame *frame);

/* Frees what handshakes and partings have left. */
void fy_handshakes_close(fy_movers *movers);

/* The end of `rank`, or NULL. */
fy_link_end *fy_direction_find(const fy_direction *direction, int rank);

/* Ends the movement: its operation, if any, and its place among those in flight. */
void fy_mover_finish(ferry_mover *m);

/* Says to all neighbours that this rank is about to sleep; true when there is no reason to. */
bool fy_mover_would_miss(ferry_mover *m);

/* Sends what a link out has packed. */
void fy_mover_send_packed(ferry_mover *m, fy_link_end *end);

/* Frees the sets of blocks that are left. */
void fy_block_sets_close(fy_movers *movers);

/* Frees the memory of a mover that nobody refers to. */
void fy_mover_destroy(ferry_mover *m);

#endif
