/* The inside of an arena, for heap.c, heap_arena.c, heap_gone.c and heap_spans.c.
 *
 * The data area is divided into spans. A run is one or more consecutive spans: of equal small
 * blocks, of one large block, or free. The tag of a span says the kind of its run and how far back
 * the run begins. If a run has few blocks, their records are in the info of its first span. Tags
 * inside a run that no longer exist may be old. They lead only to a first span, and that span's own
 * tag and records decide.
 *
 * Any process may write wrong words there. So each reader checks the bounds of what they say. The
 * owner keeps what it needs to allocate in its private memory (heap_spans.h). */
#ifndef FY_HEAP_ARENA_H
#define FY_HEAP_ARENA_H

#include <stdatomic.h>

#include "base/heap.h"

#define RUN_RECORDS 8 /* runs of at most this many blocks keep their records in the info */
#define LARGE_BYTES (256u * 1024)   /* larger blocks have a run of their own */
#define RUN_BLOCK_BYTES (8u * 1024) /* from here on a small run has RUN_RECORDS blocks */
#define CLASS_COUNT 51
#define SIZE_BITS 48 /* bits of the size in a live record; the keeper is above them */

typedef enum run_kind { RUN_FREE, RUN_SMALL, RUN_LARGE } run_kind;

/* The state of a block, in the low bits of its record. The bits above are its size and keeper if it
 * is live, else the next block of its free list. */
typedef enum block_state { BLOCK_NEVER, BLOCK_LIVE, BLOCK_FREE, BLOCK_REMOTE } block_state;

typedef struct span_info {
    _Atomic uint64_t record[RUN_RECORDS];
} span_info;

typedef struct arena_head {
    /* The stack of blocks freed by others: data offset / FY_HEAP_ALIGN + 1 of the last one, 0:
     * none. */
    _Alignas(64) _Atomic uint64_t remote;
} arena_head;

/* A block, as found from an address. */
typedef struct block {
    size_t first_span;
    run_kind kind;
    uint32_t size_class;
    uint32_t index;
    size_t start; /* data offset */
    _Atomic uint64_t *record;
} block;

static inline arena_head *head_of(const fy_arena *arena)
{
    return (arena_head *)(void *)arena->base;
}

static inline _Atomic uint64_t *tag_of(const fy_arena *arena, size_t span)
{
    return (_Atomic uint64_t *)(void *)(arena->base + sizeof(arena_head)) + span;
}

static inline span_info *info_of(const fy_arena *arena, size_t span)
{
    return (span_info *)(void *)(arena->base + arena->info_offset) + span;
}

static inline char *data_of(const fy_arena *arena, size_t span)
{
    return arena->base + arena->data_offset + span * FY_HEAP_SPAN_BYTES;
}

static inline uint64_t tag_make(run_kind kind, uint32_t size_class, size_t back)
{
    return (uint64_t)kind | (uint64_t)size_class << 8 | (uint64_t)back << 16;
}

static inline run_kind tag_kind(uint64_t tag)
{
    return (run_kind)(tag & 0xff);
}

static inline uint64_t record_make(block_state state, uint64_t value)
{
    return (uint64_t)state | value << 2;
}

static inline block_state record_state(uint64_t record)
{
    return (block_state)(record & 3);
}

static inline uint64_t record_value(uint64_t record)
{
    return record >> 2;
}

static inline uint64_t record_live(size_t size_bytes, uint32_t keeper)
{
    return record_make(BLOCK_LIVE, size_bytes | (uint64_t)keeper << SIZE_BITS);
}

/* Size and keeper in the record of a live block. */
static inline size_t record_size(uint64_t record)
{
    return (size_t)(record_value(record) & ((UINT64_C(1) << SIZE_BITS) - 1));
}

static inline uint32_t record_keeper(uint64_t record)
{
    return (uint32_t)(record_value(record) >> SIZE_BITS);
}

/* The size class for a number of units: 4 classes per doubling, exact up to 8. */
uint32_t fy_class_of(size_t units);

/* Geometry of a run of small blocks. */
size_t fy_class_bytes(uint32_t size_class);
uint32_t fy_run_blocks(uint32_t size_class);
size_t fy_run_spans(uint32_t size_class);
size_t fy_run_first(uint32_t size_class); /* offset of block 0 in its run */
_Atomic uint64_t *fy_run_record(const fy_arena *arena, size_t span, uint32_t size_class,
                                uint32_t index);

/* Finds the block of a run in which `address` lies, live or not. Returns false if there is none. */
bool fy_block_at(const fy_arena *arena, const void *address, block *out);
/* The block that starts at a data offset. */
bool fy_block_starting(const fy_arena *arena, size_t offset, block *out);

#endif
