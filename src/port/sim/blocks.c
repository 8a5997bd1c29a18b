#include "port/sim/blocks.h"

#include <stdbool.h>
#include <stdlib.h>

#include <ferry/error.h>

#include "base/random.h"

enum { ALIGNMENT = 64 };

struct fy_sim_block {
    fy_sim_block *left, *right;
    uint64_t priority;
    size_t size_bytes;
    int rank;
};

_Static_assert(sizeof(struct fy_sim_block) <= ALIGNMENT, "the header is one line");

static uintptr_t start_of(const fy_sim_block *block)
{
    return (uintptr_t)block + ALIGNMENT;
}

/* Splits `tree` into blocks before `address` and the others. */
static void split(fy_sim_block *tree, uintptr_t address, fy_sim_block **before, fy_sim_block **rest)
{
    while (tree != NULL) {
        if (start_of(tree) < address) {
            *before = tree;
            before = &tree->right;
            tree = tree->right;
        } else {
            *rest = tree;
            rest = &tree->left;
            tree = tree->left;
        }
    }
    *before = NULL;
    *rest = NULL;
}

static void insert(fy_blocks *blocks, fy_sim_block *block)
{
    fy_sim_block **at = &blocks->root;
    while (*at != NULL && (*at)->priority >= block->priority)
        at = start_of(*at) < start_of(block) ? &(*at)->right : &(*at)->left;
    split(*at, start_of(block), &block->left, &block->right);
    *at = block;
}

static void merge(fy_sim_block **at, fy_sim_block *before, fy_sim_block *rest)
{
    while (before != NULL && rest != NULL) {
        if (before->priority >= rest->priority) {
            *at = before;
            at = &before->right;
            before = before->right;
        } else {
            *at = rest;
            at = &rest->left;
            rest = rest->left;
        }
    }
    *at = before != NULL ? before : rest;
}

void *fy_blocks_alloc(fy_blocks *blocks, int rank, size_t size_bytes)
{
    if (size_bytes > SIZE_MAX - 2 * ALIGNMENT)
        return NULL;
    size_t bytes = (size_bytes + ALIGNMENT + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    fy_sim_block *block = aligned_alloc(ALIGNMENT, bytes);
    if (block == NULL)
        return NULL;
    fy_random random;
    fy_random_init(&random, blocks->made++, 0);
    *block =
        (fy_sim_block){.priority = fy_random_next(&random), .size_bytes = size_bytes, .rank = rank};
    insert(blocks, block);
    return (void *)start_of(block);
}

int fy_blocks_release(fy_blocks *blocks, void *address, int *rank, size_t *size_bytes)
{
    fy_sim_block **at = &blocks->root;
    while (*at != NULL && start_of(*at) != (uintptr_t)address)
        at = start_of(*at) < (uintptr_t)address ? &(*at)->right : &(*at)->left;
    fy_sim_block *block = *at;
    if (block == NULL)
        return FERRY_EINVAL;
    *rank = block->rank;
    *size_bytes = block->size_bytes;
    merge(at, block->left, block->right);
    free(block);
    return 0;
}

int fy_blocks_owner(const fy_blocks *blocks, const void *address, size_t size_bytes)
{
    const fy_sim_block *at = blocks->root, *found = NULL;
    uintptr_t first = (uintptr_t)address;
    while (at != NULL) {
        if (start_of(at) <= first) {
            found = at;
            at = at->right;
        } else {
            at = at->left;
        }
    }
    if (found == NULL)
        return -1;
    size_t offset = first - start_of(found);
    bool inside = offset <= found->size_bytes && size_bytes <= found->size_bytes - offset;
    return inside ? found->rank : -1;
}

void fy_blocks_fini(fy_blocks *blocks)
{
    while (blocks->root != NULL) {
        fy_sim_block *block = blocks->root;
        merge(&blocks->root, block->left, block->right);
        free(block);
    }
}
