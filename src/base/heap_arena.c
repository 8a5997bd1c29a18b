/* The calls that every process may make on an arena, and the geometry of its runs.
 *
 * A lookup may race with the owner's work on the same span. It reads tag, first tag and record,
 * each once. It trusts a block only if its record is live. Then the tags were set before the record
 * was made live (release), so the answer was true at that moment. */
#include "base/heap_arena.h"

#include <ferry/error.h>

#define PAGE_BYTES 4096u

static size_t round_up(size_t n, size_t step)
{
    return (n + step - 1) / step * step;
}

fy_arena fy_arena_at(void *base, size_t heap_bytes)
{
    size_t spans = heap_bytes / FY_HEAP_SPAN_BYTES;
    size_t infos = round_up(sizeof(arena_head) + spans * sizeof(uint64_t), PAGE_BYTES);
    return (fy_arena){
        .base = base,
        .span_count = spans,
        .info_offset = infos,
        .data_offset = round_up(infos + spans * sizeof(span_info), FY_HEAP_SPAN_BYTES),
    };
}

size_t fy_arena_bytes(size_t heap_bytes)
{
    fy_arena arena = fy_arena_at(NULL, heap_bytes);
    return arena.data_offset + arena.span_count * FY_HEAP_SPAN_BYTES;
}

uint32_t fy_class_of(size_t units)
{
    if (units <= 8)
        return (uint32_t)units - 1;
    uint32_t e = 63 - (uint32_t)__builtin_clzll(units - 1);
    size_t step = (size_t)1 << (e - 2);
    size_t k = (units - ((size_t)1 << e) + step - 1) / step;
    return 8 + (e - 3) * 4 + (uint32_t)k - 1;
}

/* The largest number of units of a class. */
static size_t class_units(uint32_t size_class)
{
    if (size_class < 8)
        return size_class + 1;
    uint32_t e = 3 + (size_class - 8) / 4;
    size_t k = (size_class - 8) % 4 + 1;
    return ((size_t)1 << e) + (k << (e - 2));
}

size_t fy_class_bytes(uint32_t size_class)
{
    return class_units(size_class) * FY_HEAP_ALIGN;
}

/* The records and the blocks share the spans. Records come first, rounded up to whole lines. */
uint32_t fy_run_blocks(uint32_t size_class)
{
    size_t bytes = fy_class_bytes(size_class);
    if (bytes >= RUN_BLOCK_BYTES)
        return RUN_RECORDS;
    size_t records_max = FY_HEAP_SPAN_BYTES / (bytes + sizeof(uint64_t));
    size_t first = round_up(records_max * sizeof(uint64_t), FY_HEAP_ALIGN);
    return (uint32_t)((FY_HEAP_SPAN_BYTES - first) / bytes);
}

size_t fy_run_first(uint32_t size_class)
{
    size_t bytes = fy_class_bytes(size_class);
    if (bytes >= RUN_BLOCK_BYTES)
        return 0;
    size_t records_max = FY_HEAP_SPAN_BYTES / (bytes + sizeof(uint64_t));
    return round_up(records_max * sizeof(uint64_t), FY_HEAP_ALIGN);
}

size_t fy_run_spans(uint32_t size_class)
{
    size_t bytes = fy_class_bytes(size_class);
    if (bytes < RUN_BLOCK_BYTES)
        return 1;
    return round_up(bytes * RUN_RECORDS, FY_HEAP_SPAN_BYTES) / FY_HEAP_SPAN_BYTES;
}

_Atomic uint64_t *fy_run_record(const fy_arena *arena, size_t span, uint32_t size_class,
                                uint32_t index)
{
    if (fy_class_bytes(size_class) >= RUN_BLOCK_BYTES)
        return &info_of(arena, span)->record[index];
    return (_Atomic uint64_t *)(void *)data_of(arena, span) + index;
}

static bool small_block_at(const fy_arena *arena, size_t offset, block *b)
{
    size_t in_run = offset - b->first_span * FY_HEAP_SPAN_BYTES;
    size_t first = fy_run_first(b->size_class);
    if (in_run < first)
        return false;
    size_t index = (in_run - first) / fy_class_bytes(b->size_class);
    if (index >= fy_run_blocks(b->size_class))
        return false;
    b->index = (uint32_t)index;
    b->start = b->first_span * FY_HEAP_SPAN_BYTES + first + index * fy_class_bytes(b->size_class);
    b->record = fy_run_record(arena, b->first_span, b->size_class, b->index);
    /* A tag that was overwritten may lead beyond the last span. */
    return fy_class_bytes(b->size_class) <= arena->span_count * FY_HEAP_SPAN_BYTES - b->start;
}

static bool block_at_offset(const fy_arena *arena, size_t offset, block *out)
{
    size_t span = offset / FY_HEAP_SPAN_BYTES;
    if (span >= arena->span_count)
        return false;
    /* acquire: pairs with the release in set_tag (heap_spans.c) */
    uint64_t tag = atomic_load_explicit(tag_of(arena, span), memory_order_acquire);
    size_t back = (size_t)(tag >> 16);
    if (tag_kind(tag) == RUN_FREE || back > span)
        return false;
    *out = (block){.first_span = span - back};
    if (back != 0)
        tag = atomic_load_explicit(tag_of(arena, out->first_span), memory_order_acquire);
    out->kind = tag_kind(tag);
    out->size_class = (uint32_t)(tag >> 8) & 0xff;
    if (tag >> 16 != 0)
        return false;
    if (out->kind == RUN_SMALL && out->size_class < CLASS_COUNT)
        return small_block_at(arena, offset, out);
    out->start = out->first_span * FY_HEAP_SPAN_BYTES;
    out->record = &info_of(arena, out->first_span)->record[0];
    return out->kind == RUN_LARGE;
}

bool fy_block_at(const fy_arena *arena, const void *address, block *out)
{
    uintptr_t data = (uintptr_t)arena->base + arena->data_offset;
    if ((uintptr_t)address < data)
        return false;
    return block_at_offset(arena, (uintptr_t)address - data, out);
}

bool fy_block_starting(const fy_arena *arena, size_t offset, block *out)
{
    return block_at_offset(arena, offset, out) && out->start == offset;
}

/* The size of a block with this record, if it is live and can have that size; else 0. */
static size_t block_live_bytes(const fy_arena *arena, const block *b, uint64_t record)
{
    size_t most = b->kind == RUN_SMALL ? fy_class_bytes(b->size_class)
                                       : arena->span_count * FY_HEAP_SPAN_BYTES - b->start;
    bool sound = record_state(record) == BLOCK_LIVE && record_size(record) <= most;
    return sound ? record_size(record) : 0;
}

bool fy_arena_find(const fy_arena *arena, const void *address, fy_block_memo *out)
{
    block b;
    if (!fy_block_at(arena, address, &b))
        return false;
    /* acquire: pairs with the release in fy_heap_alloc */
    uint64_t record = atomic_load_explicit(b.record, memory_order_acquire);
    size_t size_bytes = block_live_bytes(arena, &b, record);
    if (size_bytes == 0)
        return false;
    *out = (fy_block_memo){
        .start = (uintptr_t)data_of(arena, 0) + b.start,
        .size_bytes = size_bytes,
        .tag = tag_of(arena, b.first_span),
        .record = b.record,
        .tag_value = tag_make(b.kind, b.size_class, 0),
        .record_value = record,
    };
    return true;
}

size_t fy_arena_block_bytes(const fy_arena *arena, const void *address)
{
    block b;
    if (!fy_block_at(arena, address, &b) || data_of(arena, 0) + b.start != (const char *)address)
        return 0;
    uint64_t record = atomic_load_explicit(b.record, memory_order_acquire);
    return block_live_bytes(arena, &b, record);
}

int fy_arena_release(const fy_arena *arena, void *address)
{
    block b;
    if (!fy_block_at(arena, address, &b) || data_of(arena, 0) + b.start != (char *)address)
        return FERRY_EINVAL;
    uint64_t record = atomic_load_explicit(b.record, memory_order_relaxed);
    _Atomic uint64_t *top = &head_of(arena)->remote;
    uint64_t next = atomic_load_explicit(top, memory_order_relaxed);
    do {
        if (record_state(record) != BLOCK_LIVE)
            return FERRY_EINVAL;
        /* relaxed: if several ranks free one block together, one succeeds; the push below
         * publishes */
    } while (!atomic_compare_exchange_weak_explicit(b.record, &record,
                                                    record_make(BLOCK_REMOTE, next),
                                                    memory_order_relaxed, memory_order_relaxed));
    uint64_t self = b.start / FY_HEAP_ALIGN + 1;
    /* release: the acquire of the owner in take_remote then sees the record, and all uses of the
     * block, before the block is allocated again */
    while (!atomic_compare_exchange_weak_explicit(top, &next, self, memory_order_release,
                                                  memory_order_relaxed))
        atomic_store_explicit(b.record, record_make(BLOCK_REMOTE, next), memory_order_relaxed);
    return 0;
}

int fy_arena_keep_for(const fy_arena *arena, void *address, uint32_t keeper)
{
    block b;
    if (!fy_block_at(arena, address, &b) || data_of(arena, 0) + b.start != (char *)address)
        return FERRY_EINVAL;
    uint64_t record = atomic_load_explicit(b.record, memory_order_relaxed), kept;
    do {
        if (record_state(record) != BLOCK_LIVE)
            return FERRY_EINVAL;
        kept = record_live(record_size(record), keeper);
        /* release: a rank that finds the block by this sees what was written before */
    } while (!atomic_compare_exchange_weak_explicit(b.record, &record, kept, memory_order_release,
                                                    memory_order_relaxed));
    return 0;
}
