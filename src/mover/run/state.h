/* State: a mover, and the part of a rank that finds movers by number.
 *
 * A mover consists of what it copies (planned.h), of its binding (bound.h) and of the movement in
 * flight (movement.h). Movers are numbered alike on all ranks, because binding is collective. */
#ifndef FY_MOVER_STATE_H
#define FY_MOVER_STATE_H

#include "base/list.h"
#include "base/table.h"
#include "core/core.h"
#include "mover/run/bound.h"
#include "mover/run/movement.h"
#include "mover/run/planned.h"

#include <ferry/mover_blocks.h>

/* The kind of frames: offers, packed copies, acknowledgements, wakes. */
enum { FY_KIND_MOVER = FY_KINDS_OF_MOVER };

typedef struct fy_exchange fy_exchange;

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
    fy_movement run;
    fy_bound bound;
    fy_planned plan;
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
