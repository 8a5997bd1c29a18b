/* Blocks as mobile objects: blocks of xarrays get names, handlers and, if wanted, a scheduler that
 * moves them. The xarrays' movers stay valid.
 *
 * A set of blocks has one object for each block number of one or several xarrays with the same
 * floor plan. The object's data are the grids of that block. Its handlers run where it lives, on
 * its grids. After messages and moves ferry_blocks_settle finds where the blocks are. The xarrays
 * and their movers follow; only copies whose blocks changed owners are planned again.
 * kelp-data-mover.txt 5, prema.txt 4.2. */
#ifndef FERRY_MOVER_BLOCKS_H
#define FERRY_MOVER_BLOCKS_H

#include <ferry/mover.h>
#include <ferry/object.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The data of a block's object. The program changes the grids' elements and nothing else. */
typedef struct ferry_block_data {
    int32_t block;     /* its number in the floor plan */
    uint32_t set;      /* the library's */
    uint32_t count;    /* of grids */
    uint32_t flags;    /* the library's */
    ferry_grid *grids; /* of each xarray, in the order given, with ghost cells */
} ferry_block_data;

typedef struct ferry_blocks ferry_blocks;

/* Makes an object of each block of the `count` arrays, which have one floor plan (of shares: one
 * whose blocks here are the same) and grids of their own. Collective, in the same order as other
 * collectives and as ferry_object_type_register. Borrows `arrays`, keeps the xarrays themselves
 * until ferry_blocks_destroy; they may be remapped no more. Gives `*out`. FERRY_EINVAL: no arrays,
 * other floor plans, grids of the caller's, or an xarray that is in another set; FERRY_ENOMEM;
 * after an error on one rank the call fails on all. [app thread, not in handlers | polls | may
 * block] */
FERRY_API FERRY_MUST_USE int ferry_blocks_create(ferry *f, ferry_xarray *const *arrays,
                                                 size_t count, ferry_blocks **out);

/* The name of the object of block number `block`, wherever it is: to send it messages, to move it
 * and, on the rank where it is, to let a scheduler have it (ferry_balance_add). None when there is
 * no such block or, with a share of a floor plan, when it was neither here nor in the first
 * xarray's share at the last ferry_blocks_settle. [app thread, handlers | never blocks] */
FERRY_API ferry_object ferry_blocks_object(const ferry_blocks *blocks, int32_t block);

/* Sends `message` to the objects of the blocks that were here at the last ferry_blocks_settle. From
 * now to the next one the xarrays' movers cannot be started, because blocks may be anywhere, and
 * handlers alone touch the grids. Errors as ferry_object_send without track, and FERRY_ESTATE: a
 * mover of the xarrays is in flight. [app thread, not in handlers | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_blocks_send(ferry_blocks *blocks, const ferry_message *message);

/* Waits as ferry_quiesce until all messages have been handled and no block is in flight. Then
 * updates the xarrays on every rank: `x->local`, `x->grids` and owners. Movers go on without new
 * plans. Collective. Sets `*moved` (if not NULL) to the number of blocks that changed owners.
 * FERRY_ESTATE: a mover is in flight on some rank. FERRY_ENOMEM, on all: the xarrays are as before,
 * and movers cannot start until another call succeeds. FERRY_EPEER. Movers that could not follow
 * report it, as after ferry_xarray_remap. [app thread, not in handlers | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_blocks_settle(ferry_blocks *blocks, size_t *moved);

/* Settles, and makes an end of the objects: the xarrays keep the grids, where they are. Collective.
 * NULL is nothing, on every rank. Errors as ferry_blocks_settle; the set is gone all the same only
 * when it succeeds. [app thread, not in handlers | polls | may block] */
FERRY_API int ferry_blocks_destroy(ferry_blocks *blocks);

#ifdef __cplusplus
}
#endif
#endif
