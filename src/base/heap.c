/* The owner's side of an arena.
 *
 * Small blocks come from runs of one size class. A class keeps a list of its runs that have room,
 * with the run into which a block was freed last in front. The free blocks of a run are linked by
 * their records. A run without live blocks goes back to the spans, unless it is the only run of its
 * class with room: then it stays until memory is short. Blocks that other ranks free are in a
 * stack. They push blocks, and the owner takes the whole stack. If a rank dies while it pushes, one
 * block is lost and nobody is stopped.
 *
 * Lists of runs, counts and kinds are in private memory, so nobody else can overwrite them. Other
 * ranks read and change records and tags. So these are compared with the private data before they
 * are followed. A value that makes no sense is logged, and the memory to which it led is lost. */
#include "base/heap.h"

#include <stdlib.h>

#include <ferry/error.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/elsewhere.h"
#include "base/heap_spans.h"
#include "base/log.h"
#include "base/mutex.h"

/* How many allocations pass between two looks for small blocks that other ranks have freed: so the
 * ranks do not compete for the cache line. Larger blocks are fetched immediately, because their
 * data are in the cache. */
#define FETCH_INTERVAL 64
#define FETCH_BYTES 4096

struct fy_heap {
    fy_mutex lock;
    fy_spans spans;
    uint32_t avail[CLASS_COUNT]; /* first span + 1 of the first run with room */
    uint32_t until_fetch;
};

__attribute__((cold)) int fy_heap_create(const fy_arena *arena, fy_heap **out)
{
    fy_heap *heap = fy_calloc(1, sizeof(*heap));
    if (heap == NULL)
        return FERRY_ENOMEM;
    if (fy_mutex_init(&heap->lock) != 0) {
        free(heap);
        return FERRY_ENOMEM;
    }
    heap->spans.arena = *arena;
    heap->spans.runs = fy_calloc(arena->span_count, sizeof(*heap->spans.runs));
    if (heap->spans.runs == NULL) {
        fy_heap_destroy(heap);
        return FERRY_ENOMEM;
    }
    *out = heap;
    return 0;
}

void fy_heap_destroy(fy_heap *heap)
{
    fy_mutex_fini(&heap->lock);
    free(heap->spans.runs);
    free(heap);
}

static __attribute__((cold, noinline)) void tell_overwritten(const fy_heap *heap, size_t span)
{
    fy_log_line(-1, "the heap's tables of the block at %p were overwritten: its memory is lost",
                (void *)data_of(&heap->spans.arena, span));
}

/* Whether the shared tables agree with what the owner knows of a block. */
static bool is_known(const fy_heap *heap, const block *b)
{
    const span_run *run = &heap->spans.runs[b->first_span];
    bool known = run->kind == b->kind &&
                 (b->kind == RUN_LARGE ||
                  (run->size_class == b->size_class && b->index < run->carved && run->live > 0));
    if (!known)
        tell_overwritten(heap, b->first_span);
    return known;
}

static void list_run(fy_heap *heap, uint32_t size_class, size_t span)
{
    span_run *run = &heap->spans.runs[span];
    uint32_t *first = &heap->avail[size_class];
    run->listed = true;
    run->prev = 0;
    run->next = *first;
    if (*first != 0)
        heap->spans.runs[*first - 1].prev = (uint32_t)span + 1;
    *first = (uint32_t)span + 1;
}

static void unlist_run(fy_heap *heap, uint32_t size_class, size_t span)
{
    span_run *run = &heap->spans.runs[span];
    run->listed = false;
    if (run->next != 0)
        heap->spans.runs[run->next - 1].prev = run->prev;
    if (run->prev != 0)
        heap->spans.runs[run->prev - 1].next = run->next;
    else
        heap->avail[size_class] = run->next;
}

static void give_run(fy_heap *heap, uint32_t size_class, size_t span)
{
    unlist_run(heap, size_class, span);
    fy_spans_give(&heap->spans, span, fy_clock_now_ns());
}

/* Gives empty runs back to the spans. A class has at most one. */
static void give_empty_runs(fy_heap *heap)
{
    for (uint32_t size_class = 0; size_class < CLASS_COUNT; size_class++)
        for (uint32_t at = heap->avail[size_class]; at != 0; at = heap->spans.runs[at - 1].next)
            if (heap->spans.runs[at - 1].live == 0) {
                give_run(heap, size_class, at - 1);
                break;
            }
}

static void free_small(fy_heap *heap, const block *b)
{
    span_run *run = &heap->spans.runs[b->first_span];
    /* relaxed: only the owner follows the list */
    atomic_store_explicit(b->record, record_make(BLOCK_FREE, run->free_first),
                          memory_order_relaxed);
    run->free_first = b->index + 1;
    run->live--;
    if (run->listed && heap->avail[b->size_class] != b->first_span + 1)
        unlist_run(heap, b->size_class, b->first_span);
    if (!run->listed)
        list_run(heap, b->size_class, b->first_span);
    if (run->live == 0 && run->next != 0)
        give_run(heap, b->size_class, b->first_span);
}

/* Frees a block whose record is no longer live. */
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
        block b = {.record = NULL};
        uint64_t record = 0;
        if (fy_block_starting(&heap->spans.arena, (at - 1) * FY_HEAP_ALIGN, &b))
            record = atomic_load_explicit(b.record, memory_order_relaxed);
        if (record_state(record) != BLOCK_REMOTE) {
            tell_overwritten(heap, 0);
            return;
        }
        at = record_value(record);
        if (!is_known(heap, &b))
            continue;
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
    span_run *run = &heap->spans.runs[span];
    run->free_first = run->carved = run->live = 0;
    for (uint32_t i = 0; i < fy_run_blocks(size_class); i++)
        atomic_store_explicit(fy_run_record(&heap->spans.arena, span, size_class, i), 0,
                              memory_order_relaxed);
    list_run(heap, size_class, span);
    return true;
}

/* Takes a block out of a run with room. Returns false if the list of free blocks was overwritten
 * and there is no other room. */
static bool take_block(fy_heap *heap, size_t span, uint32_t size_class, uint32_t *index)
{
    span_run *run = &heap->spans.runs[span];
    if (run->free_first != 0) {
        *index = run->free_first - 1;
        uint64_t next = atomic_load_explicit(
            fy_run_record(&heap->spans.arena, span, size_class, *index), memory_order_relaxed);
        bool sound = record_state(next) == BLOCK_FREE && record_value(next) <= run->carved;
        run->free_first = sound ? (uint32_t)record_value(next) : 0;
        if (sound)
            return true;
        tell_overwritten(heap, span);
    }
    if (run->carved == fy_run_blocks(size_class))
        return false;
    *index = run->carved++;
    return true;
}

static char *alloc_small(fy_heap *heap, size_t size_bytes, uint32_t keeper)
{
    uint32_t size_class = fy_class_of((size_bytes + FY_HEAP_ALIGN - 1) / FY_HEAP_ALIGN), index;
    const fy_arena *arena = &heap->spans.arena;
    size_t span;
    for (;;) {
        if (heap->avail[size_class] == 0)
            take_remote(heap);
        if (heap->avail[size_class] == 0 && !add_run(heap, size_class))
            return NULL;
        span = heap->avail[size_class] - 1;
        if (take_block(heap, span, size_class, &index))
            break;
        unlist_run(heap, size_class, span);
    }
    span_run *run = &heap->spans.runs[span];
    run->live++;
    if (run->free_first == 0 && run->carved == fy_run_blocks(size_class))
        unlist_run(heap, size_class, span);
    /* release: pairs with the acquire in fy_arena_find */
    atomic_store_explicit(fy_run_record(arena, span, size_class, index),
                          record_live(size_bytes, keeper), memory_order_release);
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
        give_empty_runs(heap);
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
        /* relaxed: if several ranks free one block together, one succeeds */
        if (record_state(record) == BLOCK_LIVE && is_known(heap, &b) &&
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
