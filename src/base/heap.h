/* Heap: an allocator in memory that several processes map, with one owner.
 *
 * An arena is the shared part: a table of spans, and the blocks. Its owner allocates by a private
 * fy_heap. Every process that maps the arena may ask about addresses and free blocks. Nothing in an
 * arena is a pointer, and free blocks are linked outside the program's memory. So a program that
 * writes past its block does not mislead the allocator.
 *
 * Invariant: a block that was allocated and not freed has a live record with its size. The records
 * alone say what is allocated. So a second free is noticed, in whatever process it happens.
 *
 * Threads: every thread and process may call fy_arena_... at any time, and every thread of the
 * owner fy_heap_... */
#ifndef FY_HEAP_H
#define FY_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FY_HEAP_ALIGN 64
#define FY_HEAP_KEEPERS (1u << 14)
#define FY_HEAP_SPAN_BYTES (64u * 1024)

/* Where an arena is. A value: every process makes its own. */
typedef struct fy_arena {
    char *base;
    size_t span_count;
    size_t info_offset, data_offset;
} fy_arena;

typedef struct fy_heap fy_heap;

/* Bytes of address space that an arena for `heap_bytes` of blocks needs. */
size_t fy_arena_bytes(size_t heap_bytes);

/* The arena of `heap_bytes` at `base`, page aligned, zero before its owner's first use. */
fy_arena fy_arena_at(void *base, size_t heap_bytes);

/* A live block that was found once, so that it is quick to ask about addresses in it again. All
 * zero: none. It belongs to one thread. */
typedef struct fy_block_memo {
    uintptr_t start;
    size_t size_bytes;
    /* The two words that describe the block, and their values when it was found. */
    const _Atomic uint64_t *tag, *record;
    uint64_t tag_value, record_value;
} fy_block_memo;

/* Finds the live block that `address` lies in. Returns whether there is one. Any address may be
 * asked. */
bool fy_arena_find(const fy_arena *arena, const void *address, fy_block_memo *out);

/* Whether [address, address + size_bytes) lies in the block of `memo`, and the block is unchanged.
 */
static inline bool fy_memo_holds(const fy_block_memo *memo, const void *address, size_t size_bytes)
{
    size_t at = (uintptr_t)address - memo->start;
    if (at >= memo->size_bytes || size_bytes > memo->size_bytes - at)
        return false;
    /* acquire: pairs with the releases of set_tag (heap_spans.c) and fy_heap_alloc. Equal words
     * describe the same block, even if it was freed and allocated again. */
    return atomic_load_explicit(memo->tag, memory_order_acquire) == memo->tag_value &&
           atomic_load_explicit(memo->record, memory_order_acquire) == memo->record_value;
}

/* Size of the live block that starts at `address`; 0 when there is none. */
size_t fy_arena_block_bytes(const fy_arena *arena, const void *address);

/* Gives a block back to the arena's owner, who reuses it at a later call of its own. FERRY_EINVAL:
 * no live block starts there; nothing was freed. [never blocks] */
int fy_arena_release(const fy_arena *arena, void *address);

/* Sets the rank for which a live block is kept: when that rank has gone, another one releases the
 * block (fy_arena_release_kept). 0: no rank. At most FY_HEAP_KEEPERS - 1. FERRY_EINVAL: no live
 * block starts there. */
int fy_arena_keep_for(const fy_arena *arena, void *address, uint32_t keeper);

/* Releases all blocks that are kept for `keeper`, a rank that has gone. Any number of threads and
 * processes may call it at the same time. */
void fy_arena_release_kept(const fy_arena *arena, uint32_t keeper);

/* As fy_arena_release, if the owner has gone and takes nothing back. It makes one store, and after
 * it touches nothing of the arena. */
int fy_arena_release_gone(const fy_arena *arena, void *address);

/* The owner has gone. Gives pages on which no block lives back to the system. `address` is of a
 * block that was just released: only pages of its run are given back. NULL: pages of all runs. If
 * no block lives, the arena's tables go too, and the call returns true: the arena is as before its
 * owner's first use. Any number of threads and processes may call it at the same time. */
bool fy_arena_discard(const fy_arena *arena, const void *address);

/* Whether no block in the arena lives. Exact if the owner has gone. */
bool fy_arena_is_empty(const fy_arena *arena);

/* Takes ownership of a fresh arena. Gives `*out`, freed with fy_heap_destroy; blocks stay.
 * FERRY_ENOMEM. */
int fy_heap_create(const fy_arena *arena, fy_heap **out);
void fy_heap_destroy(fy_heap *heap);

/* A block of at least `size_bytes` (0 counts as 1), FY_HEAP_ALIGN aligned, page aligned from 1 MiB,
 * that is kept for `keeper` (fy_arena_keep_for). The block freed last is reused first. NULL: the
 * arena is full. */
void *fy_heap_alloc(fy_heap *heap, size_t size_bytes, uint32_t keeper);

/* As fy_arena_release, for immediate reuse. */
int fy_heap_release(fy_heap *heap, void *address);

/* Returns pages that have been free for a while to the system. Cheap when called often. */
void fy_heap_trim(fy_heap *heap);

#endif
