/* Blocks: the memory that ranks of a simulated node share: malloc, and a register of who owns what.
 *
 * The register is a treap in each block's own header, ordered by address, with priorities from a
 * counter through a mixer: its shape depends on addresses, what it answers does not. */
#ifndef FY_BLOCKS_H
#define FY_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

typedef struct fy_sim_block fy_sim_block;

typedef struct fy_blocks {
    fy_sim_block *root;
    uint64_t made;
} fy_blocks;

/* Room of `size_bytes` owned by `rank`, 64-byte aligned; NULL when there is no memory. */
void *fy_blocks_alloc(fy_blocks *blocks, int rank, size_t size_bytes);

/* Frees the block that starts at `address`. Its owner and size, for accounts. FERRY_EINVAL: there
 * is none. */
int fy_blocks_release(fy_blocks *blocks, void *address, int *rank, size_t *size_bytes);

/* Owner of the block that contains [address, address + size_bytes), or -1. */
int fy_blocks_owner(const fy_blocks *blocks, const void *address, size_t size_bytes);

/* Frees every block that is left. */
void fy_blocks_fini(fy_blocks *blocks);

#endif
