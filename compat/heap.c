/* The symmetric heap: an allocator of offsets, by first fit. All PEs make the same calls, so they
 * get the same offsets, and their lists of blocks are equal. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

static void insert(size_t at, const fy_shmem_block *block)
{
    fy_shmem_state *s = &fy_shmem_pe;
    if (!block->used && at < s->free_from)
        s->free_from = at;
    if (s->block_count == s->block_room) {
        size_t room = s->block_room == 0 ? 64 : 2 * s->block_room;
        fy_shmem_block *blocks = realloc(s->blocks, room * sizeof(*blocks));
        if (blocks == NULL)
            fy_compat_fail("shmem_malloc: no memory to note another block");
        s->blocks = blocks;
        s->block_room = room;
    }
    memmove(&s->blocks[at + 1], &s->blocks[at], (s->block_count - at) * sizeof(*block));
    s->blocks[at] = *block;
    s->block_count++;
}

static void erase(size_t at)
{
    fy_shmem_state *s = &fy_shmem_pe;
    s->block_count--;
    memmove(&s->blocks[at], &s->blocks[at + 1], (s->block_count - at) * sizeof(s->blocks[0]));
}

void fy_shmem_heap_begin(void)
{
    const fy_shmem_block all = {0, fy_shmem_pe.heap_bytes, false};
    insert(0, &all);
}

/* Takes `size_bytes` at `offset` out of block `at`, which is free. */
static void split(size_t at, size_t offset, size_t size_bytes)
{
    const fy_shmem_block whole = fy_shmem_pe.blocks[at];
    size_t end = whole.offset + whole.size_bytes;
    const fy_shmem_block before = {whole.offset, offset - whole.offset, false};
    const fy_shmem_block rest = {offset + size_bytes, end - offset - size_bytes, false};
    fy_shmem_pe.blocks[at] = (fy_shmem_block){offset, size_bytes, true};
    if (rest.size_bytes > 0)
        insert(at + 1, &rest);
    if (before.size_bytes > 0)
        insert(at, &before);
}

static void *take(size_t alignment, size_t size_bytes)
{
    fy_shmem_state *s = &fy_shmem_pe;
    if (fy_shmem_pe.heap == NULL)
        fy_compat_fail("shmem_malloc before shmem_init or after shmem_finalize");
    if (size_bytes == 0 || size_bytes > s->heap_bytes)
        return NULL;
    size_bytes = (size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    while (s->free_from < s->block_count && s->blocks[s->free_from].used)
        s->free_from++;
    for (size_t i = s->free_from; i < s->block_count; i++) {
        const fy_shmem_block *block = &s->blocks[i];
        size_t offset = (block->offset + alignment - 1) / alignment * alignment;
        size_t gap = offset - block->offset;
        if (!block->used && gap <= block->size_bytes && size_bytes <= block->size_bytes - gap) {
            split(i, offset, size_bytes);
            return s->heap + offset;
        }
    }
    return NULL;
}

/* The blocks lie in the order of their offsets. */
static size_t find(const void *address)
{
    const fy_shmem_state *s = &fy_shmem_pe;
    size_t low = 0, high = s->block_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const fy_shmem_block *block = &s->blocks[middle];
        if (block->used && s->heap + block->offset == (const char *)address)
            return middle;
        if ((uintptr_t)(s->heap + block->offset) < (uintptr_t)address)
            low = middle + 1;
        else
            high = middle;
    }
    fy_compat_fail("shmem_free: %p is not from shmem_malloc, or was freed before", address);
}

static void give_back(const void *address)
{
    fy_shmem_state *s = &fy_shmem_pe;
    size_t at = find(address);
    s->blocks[at].used = false;
    if (at + 1 < s->block_count && !s->blocks[at + 1].used) {
        s->blocks[at].size_bytes += s->blocks[at + 1].size_bytes;
        erase(at + 1);
    }
    if (at > 0 && !s->blocks[at - 1].used) {
        s->blocks[at - 1].size_bytes += s->blocks[at].size_bytes;
        erase(at--);
    }
    s->free_from = at < s->free_from ? at : s->free_from;
}

void *shmem_malloc(size_t size)
{
    void *memory = take(ALIGNMENT, size);
    if (size != 0)
        shmem_barrier_all();
    return memory;
}

void *shmem_malloc_with_hints(size_t size, long hints)
{
    (void)hints;
    return shmem_malloc(size);
}

void *shmem_calloc(size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    void *memory = take(ALIGNMENT, count * size);
    if (memory != NULL)
        memset(memory, 0, count * size);
    if (count * size != 0)
        shmem_barrier_all();
    return memory;
}

/* The heap begins at a multiple of the largest alignment on all PEs. So an aligned offset is an
 * aligned address. */
void *shmem_align(size_t alignment, size_t size)
{
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > FY_SHMEM_ALIGNMENT)
        return NULL;
    void *memory = take(alignment < ALIGNMENT ? ALIGNMENT : alignment, size);
    if (size != 0)
        shmem_barrier_all();
    return memory;
}

void *shmem_realloc(void *address, size_t size)
{
    if (address == NULL)
        return shmem_malloc(size);
    if (size == 0) {
        shmem_free(address);
        return NULL;
    }
    shmem_barrier_all();
    size_t old = fy_shmem_pe.blocks[find(address)].size_bytes;
    void *memory = address;
    if (size > old) {
        memory = take(ALIGNMENT, size);
        if (memory != NULL) {
            memcpy(memory, address, old);
            give_back(address);
        }
    }
    shmem_barrier_all();
    return memory;
}

void shmem_free(void *address)
{
    if (address == NULL)
        return;
    shmem_barrier_all();
    give_back(address);
}
