/* Blocks as mobile objects: blocks of xarrays get names and handlers, and a scheduler may move
 * them. The xarrays' movers stay valid.
 *
 * A set of blocks has one object for each block number of one or several xarrays with the same
 * floor plan. The object's data are the grids of that block. Its handlers run on the rank where it
 * is, on its grids. After messages and moves, ferry_blocks_settle finds where the blocks are and
 * updates the xarrays and their movers. Only copies whose blocks changed owners are planned again.
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
    ferry_grid *grids; /* one for each xarray, in the order given, with ghost cells */
} ferry_block_data;

/* A set of blocks. While a mover of its xarrays is in flight on a rank, the blocks there rest:
 * messages to them wait until it has ended, ferry_object_data gives NULL, and ferry_object_move
 * returns FERRY_ENOENT. Their messages are handled by polls after that. */
typedef struct ferry_blocks ferry_blocks;

/* Makes an object of each block of the `count` arrays. They have the same floor plan (of shares:
 * the same blocks on this rank) and grids of their own. Collective; it counts in the orders of
 * collectives and of ferry_object_type_register. Borrows `arrays`, keeps the xarrays until
 * ferry_blocks_destroy; until then ferry_xarray_remap refuses them. Gives `*out`. FERRY_EINVAL: no
 * arrays, different floor plans, grids of the caller, or an xarray of another set. FERRY_ENOMEM. An
 * error on one rank is one on all. [app thread, not in handlers | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_blocks_create(ferry *f, ferry_xarray *const *arrays,
                                                 size_t count, ferry_blocks **out);

/* The name of the object of block number `block`, on any rank. Use it to send messages, to move the
 * object and, on its rank, for ferry_balance_add. All zero: there is no such block or, with a share
 * of a floor plan, the block was neither here nor in the first xarray's share at the last
 * ferry_blocks_settle. [app thread, handlers | never blocks] */
FERRY_API ferry_object ferry_blocks_object(const ferry_blocks *blocks, int32_t block);

/* Sends `message` to the objects of the blocks that were here at the last ferry_blocks_settle.
 * Until the next one blocks may be anywhere: the xarrays' movers cannot start, and only handlers
 * may use the grids. If handlers send to other blocks, call ferry_barrier between the last mover
 * and this call: otherwise a block may get a message and move before its rank has started that
 * mover, which then cannot start. FERRY_ESTATE: a mover of the xarrays is in flight. Other errors
 * as ferry_object_send without track. [app thread, not in handlers | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_blocks_send(ferry_blocks *blocks, const ferry_message *message);

/* Waits as ferry_quiesce does until no message or block is in flight. Then updates the xarrays on
 * every rank: `x->local`, `x->grids` and owners. Movers stay valid. Collective. Sets `*moved` (if
 * not NULL) to how many blocks changed owners since a call last succeeded. FERRY_ESTATE: a mover
 * is in flight. FERRY_ENOMEM, on all ranks: movers cannot start until a call succeeds; with
 * shares the xarrays may have changed, else not. FERRY_EPEER: also if blocks are lost with a dead
 * rank. Movers that could not follow fail as after ferry_xarray_remap. [app thread, not in
 * handlers | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_blocks_settle(ferry_blocks *blocks, size_t *moved);

/* Does ferry_blocks_settle, then ends the objects. The xarrays keep the grids where they are.
 * Collective. NULL, on every rank, is ignored. Errors as ferry_blocks_settle; after an error the
 * set is still there, until ferry_close. [app thread, not in handlers | polls | may block] */
FERRY_API int ferry_blocks_destroy(ferry_blocks *blocks);

#ifdef __cplusplus
}
#endif
#endif
