/* Blocks as objects: each holds the grids of one block number; see mover_blocks.h.
 *
 * Between two settlings the objects own the grids, and an xarray's own list of grids is out of
 * date. Data and grids stand in the shared heap, so that on a node an object goes by its pointer;
 * elsewhere the grids are packed one behind the other. At settling each rank asks which objects it
 * has. One sum says whether all are somewhere and whether any is where it was not; only then all
 * ranks learn of the owners, and xarrays and movers follow. Where floor plans are whole, a second
 * sum tells them. With shares an object carries the rank where it was settled last, so the rank
 * that has it tells that rank. Names of objects are known for blocks that are here or near: their
 * owners are asked.
 *
 * After a collective a rank uses what it found before it. Others may send the next messages as soon
 * as they are out of the last collective. Blocks then move again while this rank is still in it. */
#ifndef FY_MOVER_BLOCKS_H
#define FY_MOVER_BLOCKS_H

#include "mover/bind/link.h"

/* The flags of a block's data: whether the grids are the xarrays', and above that the rank that had
 * it at the last settling. */
enum { FY_BLOCK_LENT = 1, FY_SETTLED_SHIFT = 1 };

/* An object that is here. */
typedef struct fy_found {
    ferry_block_data *data;
    ferry_object object;
    int32_t number;
    int settled; /* where it was at the last settling */
} fy_found;

struct ferry_blocks {
    ferry_blocks *next;
    ferry *f;
    uint32_t number;
    fy_arrays arrays;
    size_t count;          /* of blocks */
    int32_t *numbers;      /* with a share: of the blocks whose objects are known, ascending */
    ferry_object *objects; /* by block, or by number */
    size_t known_count;    /* of them */
    bool nameless;         /* names could not be learnt */
    fy_found *found;       /* at settling: what is here, by number */
    ferry_xarray **items;  /* the arrays */
};

/* The block's region, from that of its first grid with ghost cells. */
static inline ferry_region fy_block_region(const ferry_blocks *set, ferry_region first)
{
    return ferry_region_shrink(first, set->items[0]->ghosts);
}

static inline uint32_t fy_block_flags(int rank, bool lent)
{
    return (uint32_t)rank << FY_SETTLED_SHIFT | (lent ? FY_BLOCK_LENT : 0);
}

/* Where the name of a block's object stands; NULL when it is not known. */
ferry_object *fy_blocks_place(const ferry_blocks *set, int32_t number);

/* Whether movers of the set's xarrays may find their grids elsewhere. */
void fy_blocks_set_astray(const ferry_blocks *set, bool astray);

/* Learns the names of the objects of blocks that are elsewhere. Collective; an `error` is one of
 * all ranks. FERRY_ENOMEM, FERRY_EPEER. */
int fy_blocks_name(ferry_blocks *set, int error);

#endif
