/* Blocks as objects: an object has the grids of one block number in all xarrays of a set; see
 * mover_blocks.h.
 *
 * Between two calls of ferry_blocks_settle the objects own the grids, and the xarrays' lists of
 * grids are out of date. Data and grids are in the shared heap, so within a node an object migrates
 * by its pointer. Between nodes its grids are packed one after the other.
 *
 * At settling each rank lists the objects that it has. One sum over the ranks says whether all
 * objects have arrived, and whether any has moved. If one has, all ranks learn the new owners, and
 * xarrays and movers follow. If floor plans are whole, a second sum has the owners. With shares, an
 * object carries the rank where it was settled last, and its present rank tells that rank. A rank
 * asks the owners for the names of objects of blocks that it knows.
 *
 * After a collective a rank uses the list that it made before it. Another rank may have left the
 * collective earlier, and may send messages that move blocks again. */
#ifndef FY_MOVER_BLOCKS_H
#define FY_MOVER_BLOCKS_H

#include "mover/bind/link.h"

/* The flags of a block's data: FY_BLOCK_LENT if the xarrays own the grids; from FY_SETTLED_SHIFT on
 * the rank that had it at the last settling. */
enum { FY_BLOCK_LENT = 1, FY_SETTLED_SHIFT = 1 };

/* An object on this rank. */
typedef struct fy_found {
    ferry_block_data *data;
    ferry_object object;
    int32_t number;
    int settled; /* its rank at the last settling */
} fy_found;

struct ferry_blocks {
    ferry_blocks *next;
    ferry *f;
    uint32_t number;
    fy_arrays arrays;
    size_t count;            /* of blocks */
    int32_t *numbers;        /* with a share: the blocks whose objects are known, ascending */
    ferry_object *objects;   /* by block; with a share in the order of `numbers` */
    size_t known_count;      /* of `objects` */
    bool nameless;           /* the names could not be learnt */
    uint64_t moved;          /* blocks, since the last settling that succeeded */
    fy_found *found;         /* at settling: the objects on this rank, by number */
    fy_link held;            /* records of the objects that a mover in flight holds (hold.c) */
    ferry_block_data **kept; /* blocks that have left, whose grids a mover in flight may use */
    size_t kept_count, kept_capacity;
    ferry_xarray **items; /* the arrays */
};

/* The region of a block. `first`: the region of its first grid, with ghost cells. */
static inline ferry_region fy_block_region(const ferry_blocks *set, ferry_region first)
{
    return ferry_region_shrink(first, set->items[0]->ghosts);
}

static inline uint32_t fy_block_flags(int rank, bool lent)
{
    return (uint32_t)rank << FY_SETTLED_SHIFT | (lent ? FY_BLOCK_LENT : 0);
}

/* The place for the name of a block's object; NULL: this rank does not know the block. */
ferry_object *fy_blocks_place(const ferry_blocks *set, int32_t number);

/* Notes whether grids of the set may be elsewhere: then movers of its xarrays cannot start. */
void fy_blocks_set_unsettled(const ferry_blocks *set, bool unsettled);

/* Holds the objects of the blocks on this rank, unless it holds them already. FERRY_ESTATE: one is
 * not at rest here; then it holds none. The second function lets them rest again. */
int fy_blocks_hold_all(ferry_blocks *set);
void fy_blocks_release_held(ferry_blocks *set);

/* Frees the data of a block that has left, with its grids. */
void fy_block_free(ferry *f, ferry_block_data *block);

/* Learns the names of the objects of blocks that are elsewhere. Collective. If one rank passes an
 * `error`, all return one. FERRY_ENOMEM, FERRY_EPEER. */
int fy_blocks_name(ferry_blocks *set, int error);

#endif
