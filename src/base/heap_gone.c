/* The arena of a rank that has gone. The survivors release the blocks that were kept for ranks that
 * have gone. They give its pages back when no block in them lives. */
#include <sys/mman.h>

#include <ferry/error.h>

#include "base/heap_arena.h"

int fy_arena_release_gone(const fy_arena *arena, void *address)
{
    block b;
    if (!fy_block_at(arena, address, &b) || data_of(arena, 0) + b.start != (char *)address)
        return FERRY_EINVAL;
    uint64_t record = atomic_load_explicit(b.record, memory_order_relaxed);
    do {
        if (record_state(record) != BLOCK_LIVE)
            return FERRY_EINVAL;
        /* release: pairs with the acquire in is_not_live */
    } while (!atomic_compare_exchange_weak_explicit(b.record, &record, record_make(BLOCK_FREE, 0),
                                                    memory_order_release, memory_order_relaxed));
    return 0;
}

/* How many spans the used run that begins at `first` has. */
static size_t run_spans(const fy_arena *arena, size_t first, uint64_t tag)
{
    uint32_t size_class = (uint32_t)(tag >> 8) & 0xff;
    size_t count = 1, most = arena->span_count - first;
    if (tag_kind(tag) == RUN_SMALL && size_class < CLASS_COUNT)
        count = fy_run_spans(size_class);
    while (tag_kind(tag) == RUN_LARGE && count < most &&
           /* relaxed: the owner is dead, and a rank that knows that sees its stores */
           atomic_load_explicit(tag_of(arena, first + count), memory_order_relaxed) ==
               tag_make(RUN_LARGE, size_class, count))
        count++;
    return count < most ? count : most;
}

/* A walk over the blocks of a run; `see` returns whether to go on. */
typedef bool see_fn(const fy_arena *arena, _Atomic uint64_t *record, char *at, uint64_t arg);

/* Calls `see` for each block of a run until it returns false. Returns whether it never did. */
static bool each_block(const fy_arena *arena, size_t first, uint64_t tag, see_fn *see, uint64_t arg)
{
    uint32_t size_class = (uint32_t)(tag >> 8) & 0xff;
    if (tag_kind(tag) != RUN_SMALL || size_class >= CLASS_COUNT)
        return see(arena, &info_of(arena, first)->record[0], data_of(arena, first), arg);
    char *at = data_of(arena, first) + fy_run_first(size_class);
    for (uint32_t i = 0; i < fy_run_blocks(size_class); i++) {
        if (!see(arena, fy_run_record(arena, first, size_class, i), at, arg))
            return false;
        at += fy_class_bytes(size_class);
    }
    return true;
}

static bool is_not_live(const fy_arena *arena, _Atomic uint64_t *record, char *at, uint64_t arg)
{
    (void)arena;
    (void)at;
    (void)arg;
    /* acquire: pairs with the release in fy_arena_release_gone, before others use the memory */
    return record_state(atomic_load_explicit(record, memory_order_acquire)) != BLOCK_LIVE;
}

static bool release_kept(const fy_arena *arena, _Atomic uint64_t *record, char *at, uint64_t arg)
{
    /* acquire: pairs with the release in fy_arena_keep_for */
    uint64_t value = atomic_load_explicit(record, memory_order_acquire);
    if (record_state(value) == BLOCK_LIVE && record_keeper(value) == arg)
        (void)fy_arena_release(arena, at); /* if it fails, another rank was faster */
    return true;
}

/* Whether a used run begins at a span; sets `*count` to its number of spans, else to 1. A walk that
 * skips whole used runs meets other tags in free spans alone. There the records tell the first
 * spans of runs that no longer exist. The walk goes through spans within such runs one by one. */
static bool run_begins(const fy_arena *arena, size_t span, uint64_t tag, size_t *count)
{
    bool begins = tag_kind(tag) != RUN_FREE && tag >> 16 == 0;
    *count = begins ? run_spans(arena, span, tag) : 1;
    return begins;
}

/* Gives back the pages of the run that begins at `first`, unless a block in it is live. Returns its
 * number of spans. A caller first releases its own block. So of several callers the last one sees
 * no live block. Records that lie beside the blocks go too. All zero, they say that nothing lives
 * here. */
static size_t discard_run(const fy_arena *arena, size_t first, uint64_t tag)
{
    size_t count;
    if (!run_begins(arena, first, tag, &count) || each_block(arena, first, tag, is_not_live, 0))
        (void)madvise(data_of(arena, first), count * FY_HEAP_SPAN_BYTES, MADV_REMOVE);
    return count;
}

/* Calls `see` for each block of each run, until it returns false. Returns whether it never did. */
static bool each_run(const fy_arena *arena, see_fn *see, uint64_t arg)
{
    for (size_t span = 0, count; span < arena->span_count; span += count) {
        /* acquire: pairs with the release of set_tag (heap_spans.c) */
        uint64_t tag = atomic_load_explicit(tag_of(arena, span), memory_order_acquire);
        if (tag == 0)
            break; /* neither this span nor a later one was ever used */
        if (run_begins(arena, span, tag, &count) && !each_block(arena, span, tag, see, arg))
            return false;
    }
    return true;
}

static void discard_runs(const fy_arena *arena)
{
    for (size_t span = 0; span < arena->span_count;) {
        uint64_t tag = atomic_load_explicit(tag_of(arena, span), memory_order_relaxed);
        if (tag == 0)
            break; /* as in each_run */
        span += discard_run(arena, span, tag);
    }
}

bool fy_arena_is_empty(const fy_arena *arena)
{
    return each_run(arena, is_not_live, 0);
}

bool fy_arena_discard(const fy_arena *arena, const void *address)
{
    block b;
    /* seq_cst: after the release of a block, before the look at the others */
    atomic_thread_fence(memory_order_seq_cst);
    if (address == NULL)
        discard_runs(arena);
    else if (fy_block_at(arena, address, &b))
        discard_run(arena, b.first_span,
                    atomic_load_explicit(tag_of(arena, b.first_span), memory_order_relaxed));
    /* Only live blocks may be asked for, and zero says that none lives. */
    return fy_arena_is_empty(arena) &&
           madvise(arena->base, arena->data_offset + arena->span_count * FY_HEAP_SPAN_BYTES,
                   MADV_REMOVE) == 0;
}

void fy_arena_release_kept(const fy_arena *arena, uint32_t keeper)
{
    (void)each_run(arena, release_kept, keeper);
}
