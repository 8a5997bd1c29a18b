#include "base/pool.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"

/* The head of a chunk takes one alignment unit, so that the items behind it stay aligned. */
enum { ALIGNMENT = 16 };

void fy_pool_init(fy_pool *pool, size_t item_bytes, size_t chunk_items)
{
    assert(chunk_items > 0 && item_bytes >= sizeof(void *));
    pool->item_bytes = (item_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    pool->chunk_items = chunk_items;
    pool->free_items = NULL;
    pool->chunks = NULL;
}

void fy_pool_fini(fy_pool *pool)
{
    while (pool->chunks != NULL) {
        void *next = *(void **)pool->chunks;
        free(pool->chunks);
        pool->chunks = next;
    }
    pool->free_items = NULL;
}

int fy_pool_grow(fy_pool *pool)
{
    unsigned char *chunk = fy_malloc(ALIGNMENT + pool->item_bytes * pool->chunk_items);
    if (chunk == NULL)
        return 0;
    *(void **)chunk = pool->chunks;
    pool->chunks = chunk;
    /* Backwards, so that items are handed out in the order of their addresses. */
    for (size_t i = pool->chunk_items; i > 0; i--)
        fy_pool_put(pool, chunk + ALIGNMENT + (i - 1) * pool->item_bytes);
    return 1;
}
