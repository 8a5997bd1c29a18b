/* The owner's side of an arena.
 *
 * Small blocks come from runs of one size class; a class keeps a list of its runs that have room,
 * the one freed into last in front. Free blocks of a run are linked through their records. A run
 * without live blocks goes back to the spans unless it is its class's only one with room. Blocks
 * that others freed wait in a stack that they push to and the owner takes whole: a pusher that dies
 * loses one block and stops nobody. */
#include "base/heap.h"

#include <stdlib.h>

#include <ferry/error.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/elsewhere.h"
#include "base/heap_spans.h"
#include "base/mutex.h"

/* Small blocks that others freed are fetched after so many allocations, so that the line they
 * arrive on is not fought for. Larger ones are fetched at once: their data is warm. */
#define FETCH_INTERVAL 64
#define FETCH_BYTES 4096

struct fy_heap {
    fy_mutex lock;
    fy_spans spans;
    uint32_t avail[CLASS_COUNT]; /* first span + 1 of the first run with room */
    uint32_t until_fetch;
};

int fy_heap_create(const fy_arena *arena, fy_heap **out)
{
    fy_heap *heap = fy_calloc(1, sizeof(*heap));
    if (heap == NULL)
        return FERRY_ENOMEM;
    if (fy_mutex_init(&heap->lock) != 0) {
        free(heap);
        return FERRY_ENOMEM;
    }
    heap->spans.arena = *arena;
    *out = heap;
    return 0;
}

void fy_heap_destroy(fy_heap *heap)
{
    fy_mutex_fini(&heap->lock);
    free(heap);
}

static void list_run(fy_heap *heap, uint32_t size_class, size_t span)
{
    span_info *run = info_of(&heap->spans.arena, span);
    uint32_t *first = &heap->avail[size_class];
    run->listed = true;
    run->prev = 0;
    run->next = *first;
    if (*first != 0)
        info_of(&heap->spans.arena, *first - 1)->prev = (uint32_t)span + 1;
    *first = (uint32_t)span + 1;
}

static void unlist_run(fy_heap *heap, uint32_t size_class, size_t span)
{
    span_info *run = info_of(&heap->spans.arena, span);
    run->listed = false;
    if (run->next != 0)
        info_of(&heap->spans.arena, run->next - 1)->prev = run->prev;
    if (run->prev != 0)
        info_of(&heap->spans.arena, run->prev - 1)->next = run->next;
    else
        heap->avail[size_class] = run->next;
}

static void free_small(fy_heap *heap, const block *b)
{
    span_info *run = info_of(&heap->spans.arena, b->first_span);
    /* relaxed: only the owner follows the list */
    atomic_store_explicit(b->record, record_make(BLOCK_FREE, run->free_first),
                          memory_order_relaxed);
    run->free_first = b->index + 1;
    run->live--;
    if (run->listed && heap->avail[b->size_class] != b->first_span + 1)
        unlist_run(heap, b->size_class, b->first_span);
    if (!run->listed)
        list_run(heap, b->size_class, b->first_span);
    if (run->live == 0 && run->next != 0) {
        unlist_run(heap, b->size_class, b->first_span);
        fy_spans_give(&heap->spans, b->first_span, fy_clock_now_ns());
    }
}

/* The record is no longer live. */
static void free_block(fy_heap *heap, const block *b)
{
    if (b->kind == RUN_SMALL)
        free_small(heap, b);
    else
        fy_spans_give(&heap->spans, b->first_span, fy_clock_now_ns());
}

static void take_remote(fy_heap *heap)
{
    _Atomic uint64_t *top = &head_of(&heap->spans.arena)->remote;
    heap->until_fetch = FETCH_INTERVAL;
    if (atomic_load_explicit(top, memory_order_relaxed) == 0)
        return;
    /* acquire: pairs with the release in fy_arena_release */
    uint64_t at = atomic_exchange_explicit(top, 0, memory_order_acquire);
    while (at != 0) {
        block b;
        if (!fy_block_starting(&heap->spans.arena, (at - 1) * FY_HEAP_ALIGN, &b))
            return; /* overwritten by somebody: what it led to is lost, nothing else */
        uint64_t record = atomic_load_explicit(b.record, memory_order_relaxed);
        if (record_state(record) != BLOCK_REMOTE)
            return;
        at = record_value(record);
        fy_elsewhere_returns(data_of(&heap->spans.arena, 0) + b.start);
        atomic_store_explicit(b.record, record_make(BLOCK_FREE, 0), memory_order_relaxed);
        free_block(heap, &b);
    }
}

static bool add_run(fy_heap *heap, uint32_t size_class)
{
    size_t span;
    if (!fy_spans_take(&heap->spans, fy_run_spans(size_class), RUN_SMALL, size_class, &span))
        return false;
    span_info *run = info_of(&heap->spans.arena, span);
    run->free_first = run->carved = run->live = 0;
    for (uint32_t i = 0; i < fy_run_blocks(size_class); i++)
        atomic_store_explicit(fy_run_record(&heap->spans.arena, span, size_class, i), 0,
                              memory_order_relaxed);
    list_run(heap, size_class, span);
    return true;
}

static char *alloc_small(fy_heap *heap, size_t size_bytes, uint32_t keeper)
{
    uint32_t size_class = fy_class_of((size_bytes + FY_HEAP_ALIGN - 1) / FY_HEAP_ALIGN);
    const fy_arena *arena = &heap->spans.arena;
    if (heap->avail[size_class] == 0) {
        take_remote(heap);
        if (heap->avail[size_class] == 0 && !add_run(heap, size_class))
            return NULL;
    }
    size_t span = heap->avail[size_class] - 1;
    span_info *run = info_of(arena, span);
    uint32_t index = run->free_first != 0 ? run->free_first - 1 : run->carved++;
    _Atomic uint64_t *record = fy_run_record(arena, span, size_class, index);
    if (run->free_first != 0) {
        uint64_t old = atomic_load_explicit(record, memory_order_relaxed);
        run->free_first = (uint32_t)record_value(old);
    }
    run->live++;
    if (run->free_first == 0 && run->carved == fy_run_blocks(size_class))
        unlist_run(heap, size_class, span);
    /* release: pairs with the acquire in fy_arena_holds */
    atomic_store_explicit(record, record_live(size_bytes, keeper), memory_order_release);
    return data_of(arena, span) + fy_run_first(size_class) + index * fy_class_bytes(size_class);
}

static char *alloc_large(fy_heap *heap, size_t size_bytes, uint32_t keeper)
{
    size_t span;
    size_t count = (size_bytes + FY_HEAP_SPAN_BYTES - 1) / FY_HEAP_SPAN_BYTES;
    if (!fy_spans_take(&heap->spans, count, RUN_LARGE, 0, &span))
        return NULL;
    /* release: as in alloc_small */
    atomic_store_explicit(&info_of(&heap->spans.arena, span)->record[0],
                          record_live(size_bytes, keeper), memory_order_release);
    return data_of(&heap->spans.arena, span);
}

static char *alloc_any(fy_heap *heap, size_t size_bytes, uint32_t keeper)
{
    return size_bytes <= LARGE_BYTES ? alloc_small(heap, size_bytes, keeper)
                                     : alloc_large(heap, size_bytes, keeper);
}

void *fy_heap_alloc(fy_heap *heap, size_t size_bytes, uint32_t keeper)
{
    if (size_bytes == 0)
        size_bytes = 1;
    if (size_bytes > heap->spans.arena.span_count * FY_HEAP_SPAN_BYTES)
        return NULL;
    fy_mutex_lock(&heap->lock);
    if (size_bytes >= FETCH_BYTES || --heap->until_fetch > FETCH_INTERVAL)
        take_remote(heap);
    char *address = alloc_any(heap, size_bytes, keeper);
    if (address == NULL) {
        take_remote(heap);
        address = alloc_any(heap, size_bytes, keeper);
    }
    fy_mutex_unlock(&heap->lock);
    return address;
}

int fy_heap_release(fy_heap *heap, void *address)
{
    const fy_arena *arena = &heap->spans.arena;
    block b;
    int error = FERRY_EINVAL;
    fy_mutex_lock(&heap->lock);
    if (fy_block_at(arena, address, &b) && data_of(arena, 0) + b.start == (char *)address) {
        uint64_t record = atomic_load_explicit(b.record, memory_order_relaxed);
        /* relaxed: of those that free one block at once, one succeeds */
        if (record_state(record) == BLOCK_LIVE &&
            atomic_compare_exchange_strong_explicit(b.record, &record, record_make(BLOCK_FREE, 0),
                                                    memory_order_relaxed, memory_order_relaxed)) {
            free_block(heap, &b);
            error = 0;
        }
    }
    fy_mutex_unlock(&heap->lock);
    return error;
}

void fy_heap_trim(fy_heap *heap)
{
    if (!fy_mutex_try(&heap->lock))
        return;
    take_remote(heap);
    fy_spans_trim(&heap->spans, fy_clock_now_ns());
    fy_mutex_unlock(&heap->lock);
}
