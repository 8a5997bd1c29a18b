/* Pool: items of one size, taken and given back without calling malloc each time.
 *
 * Invariant: an item is either the user's or on the free list; chunks are freed only by fini, so an
 * item's address never changes. One thread at a time. */
#ifndef FY_POOL_H
#define FY_POOL_H

#include <stddef.h>

#include "base/shared.h"

typedef struct fy_pool {
    size_t item_bytes;
    size_t chunk_items;
    void *free_items;
    void *chunks;
} fy_pool;

/* An empty pool of items of `item_bytes`, 16-byte aligned, that grows by `chunk_items`. */
FY_SHARED void fy_pool_init(fy_pool *pool, size_t item_bytes, size_t chunk_items);

/* Frees every item, given back or not. */
FY_SHARED void fy_pool_fini(fy_pool *pool);

/* Adds a chunk of free items. Returns whether there was memory. */
FY_SHARED int fy_pool_grow(fy_pool *pool);

/* An item with undefined contents; NULL when there is no memory. Give it back with fy_pool_put. */
static inline void *fy_pool_get(fy_pool *pool)
{
    void **item = pool->free_items;
    if (item == NULL) {
        if (!fy_pool_grow(pool))
            return NULL;
        item = pool->free_items;
    }
    pool->free_items = *item;
    return item;
}

static inline void fy_pool_put(fy_pool *pool, void *item)
{
    *(void **)item = pool->free_items;
    pool->free_items = item;
}

#endif
