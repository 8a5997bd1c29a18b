/* State: a mover, and the mover layer's state in a rank.
 *
 * A mover consists of its plan (planned.h), its binding (bound.h) and the movement in flight
 * (movement.h). It has the same number on all ranks, because binding is collective. */
#ifndef FY_MOVER_STATE_H
#define FY_MOVER_STATE_H

#include "base/list.h"
#include "base/table.h"
#include "core/head.h"
#include "core/layer.h"
#include "mover/run/bound.h"
#include "mover/run/movement.h"
#include "mover/run/planned.h"
#include "port/port.h"

#include <ferry/mover_blocks.h>

/* The kind of all frames of the layer. Their `aux` is a fy_mover_frame. */
enum { FY_KIND_MOVER = FY_KINDS_OF_MOVER };

typedef struct fy_exchange fy_exchange;

/* A handshake for a mover that this rank does not bind yet. A rank waits for the answer to its last
 * handshake, so one per rank is enough. */
typedef struct fy_pending_handshake {
    struct fy_pending_handshake *next;
    int source;
    uint64_t words[3];
    size_t size_bytes;
    uint64_t data[];
} fy_pending_handshake;

struct ferry_mover {
    fy_link active; /* in the list of movers in flight; the first member */
    uint32_t number;
    uint32_t round; /* how often it was bound, this time included */
    bool given_up;  /* its blocks' last change of owners failed here: nobody binds it again */
    fy_movement run;
    fy_bound bound;
    fy_planned plan;
};

/* The mover layer's part of a rank. */
typedef struct fy_movers {
    fy_table by_number;
    fy_link active;
    uint32_t next;
    bool news; /* a frame has come for which a call of this layer may wait */
    fy_pending_handshake *pending;
    fy_retired *retired;
    fy_exchange *exchanges;
    uint32_t next_exchange;
    ferry_blocks *blocks; /* sets of blocks that are objects */
    uint32_t next_set;
    uint32_t failed;  /* the mover that failed last here, */
    int failed_error; /* and how; 0: none has */
    bool typed;       /* the type of blocks is registered */
    ferry_object_type type;
} fy_movers;

typedef enum fy_mover_frame {
    FY_MOVER_HANDSHAKE, /* words: mover, channel + mode, buffer; data: fy_handshake and offers */
    FY_MOVER_DATA,      /* words: mover, epoch, offset; data: packed copies */
    FY_MOVER_ACK,       /* words: mover, epoch */
    FY_MOVER_WAKE,      /* the counters have moved */
    FY_MOVER_ASK,       /* words: mover; data: pairs, or entries of blocks that change owners */
    FY_MOVER_LOST, /* words: mover, error; the mover has failed on the sender, which uses no link */
    FY_MOVER_DONE, /* words: mover; the sender no longer uses its links, and starts no movement */
    FY_MOVER_POST, /* words: exchange, round, error; data */
} fy_mover_frame;

fy_movers *fy_movers_of(const ferry *f);

/* Makes the next poll report progress, so that a call which waits looks again. Needed also for a
 * frame from this rank to itself. */
static inline void fy_movers_news(ferry *f)
{
    fy_movers_of(f)->news = true;
    fy_layer_due(f, FY_LAYER_MOVER);
}

/* Gives `m` its number and enters it in the table. Even on failure the number is used up, so that
 * it is the same on all ranks. FERRY_ENOMEM. The second function removes `m` from the table. */
int fy_movers_enter(ferry_mover *m);
void fy_movers_leave(ferry_mover *m);

/* Gives `m`, the last mover that was entered, the number before `next`, which becomes the next one.
 * `m` NULL: it could not be entered. FERRY_ENOMEM. */
int fy_movers_rename(ferry *f, ferry_mover *m, uint32_t next);

/* Xarrays with one floor plan. Their blocks change owners together. */
typedef struct fy_arrays {
    ferry_xarray *const *items;
    size_t count;
} fy_arrays;

/* Makes an xarray without the data of its grids. Errors as ferry_xarray_create. */
int fy_xarray_make(ferry *f, const ferry_floorplan *blocks, size_t element_bytes,
                   ferry_point ghosts, ferry_xarray **out);

bool fy_arrays_have(fy_arrays arrays, const ferry_xarray *x);

/* The mover of `arrays` after `after`, by number: the order is the same on all ranks. `after` NULL:
 * the first one. Returns NULL after the last. */
ferry_mover *fy_movers_next(ferry *f, fy_arrays arrays, const ferry_mover *after);

/* The first word of a frame: the number in the low half, the round in the high half. */
static inline uint64_t fy_mover_name(uint32_t number, uint32_t round)
{
    return number | (uint64_t)round << 32;
}

/* The mover with this number, or NULL. */
ferry_mover *fy_movers_find(const fy_movers *movers, uint32_t number);

/* Send a frame for `m`, or for the mover with this name. */
int fy_mover_tell(ferry *f, int rank, fy_mover_frame what, uint64_t name, uint64_t word);
int fy_mover_send(ferry_mover *m, int rank, fy_mover_frame what, uint64_t a, uint64_t b,
                  const void *data, size_t size_bytes);

/* Does the steps of a movement in flight that can be done now. Returns how many. Never polls. */
int fy_mover_advance(ferry_mover *m);

/* Whether the movement has ended. */
bool fy_mover_is_done(const ferry_mover *m);

/* Whether a movement in flight waited for a rank that is dead, has left or has freed the mover.
 * Then the movement has ended: with FERRY_EPEER, if that rank had not done its part. */
bool fy_mover_lost_peer(ferry_mover *m);

/* Tells the neighbours, once, that the mover has failed on this rank. Otherwise they would wait
 * forever. The mover uses no channel after that. */
void fy_mover_tell_loss(ferry_mover *m);

/* Take frames (handshake.c): FY_MOVER_HANDSHAKE, FY_MOVER_DONE, and FY_MOVER_LOST with its
 * error. */
void fy_handshake_take(ferry *f, int source, const fy_frame *frame);
void fy_done_take(ferry *f, int source, uint64_t name);
void fy_loss_take(ferry *f, int source, uint64_t name, int error);

/* Takes a frame of an exchange (exchange.h). */
void fy_exchange_take(ferry *f, int source, const fy_frame *frame);

/* Frees kept handshakes and the channels of movers that are gone. */
void fy_handshakes_close(fy_movers *movers);

/* Ends the movement: ends its operation, if any, and removes it from the list of those in
 * flight. */
void fy_mover_finish(ferry_mover *m);

/* Sets the flags that tell neighbours that this rank sleeps. Returns true if it must not sleep,
 * since the movement can go on or has ended. */
bool fy_mover_would_miss(ferry_mover *m);

/* Before a movement: blocks of its xarrays that are objects rest until the second function is
 * called and no mover of their xarrays is in flight (hold.c). FERRY_ESTATE: a block is elsewhere.
 */
int fy_blocks_hold(const ferry_mover *m);
void fy_blocks_let_go(const ferry_mover *m);

/* Lets the blocks of all sets rest, although movers are in flight: this rank leaves. */
void fy_block_sets_leave(const fy_movers *movers);

/* Fails with FERRY_ESTATE, because blocks may be elsewhere. Names one that is. */
int fy_blocks_away(const ferry_mover *m);

/* Frees the sets of blocks that still exist. */
void fy_block_sets_close(fy_movers *movers);

/* Frees the memory of a mover to which nothing refers any more. */
void fy_mover_destroy(ferry_mover *m);

#endif
