#include "base/heap_spans.h"

#include <sys/mman.h>

/* A run that is reused within this time keeps its pages. */
#define DIRTY_NS 100000000u
#define TRIM_INTERVAL_NS 20000000u

static span_run *run_at(const fy_spans *s, size_t span)
{
    return &s->runs[span];
}

static void link_run(fy_spans *s, size_t first)
{
    span_run *run = run_at(s, first);
    uint32_t *bin = &s->bins[fy_class_of(run->span_count)];
    run->prev = 0;
    run->next = *bin;
    if (*bin != 0)
        run_at(s, *bin - 1)->prev = (uint32_t)first + 1;
    *bin = (uint32_t)first + 1;
}

static void unlink_run(fy_spans *s, size_t first)
{
    span_run *run = run_at(s, first);
    if (run->next != 0)
        run_at(s, run->next - 1)->prev = run->prev;
    if (run->prev != 0)
        run_at(s, run->prev - 1)->next = run->next;
    else
        s->bins[fy_class_of(run->span_count)] = run->next;
}

static void set_tag(fy_spans *s, size_t span, uint64_t tag)
{
    _Atomic uint64_t *at = tag_of(&s->arena, span);
    if (atomic_load_explicit(at, memory_order_relaxed) != tag)
        /* release: pairs with the acquire in block_at_offset */
        atomic_store_explicit(at, tag, memory_order_release);
}

/* A free run is marked at both ends, for its neighbours. Others read its tags. */
static void mark_free(fy_spans *s, size_t first, size_t count)
{
    set_tag(s, first, tag_make(RUN_FREE, 1, 0));
    if (count > 1)
        set_tag(s, first + count - 1, tag_make(RUN_FREE, 1, count - 1));
    run_at(s, first)->free_begins = true;
    run_at(s, first + count - 1)->free_back = (uint32_t)count;
}

static bool mergeable(const span_run *a, const span_run *b)
{
    if (a->dirty != b->dirty)
        return false;
    uint64_t apart =
        a->freed_ns > b->freed_ns ? a->freed_ns - b->freed_ns : b->freed_ns - a->freed_ns;
    return !a->dirty || apart < DIRTY_NS;
}

/* Takes the free neighbours of a run that is not linked into it; returns its new first span. */
static size_t merge(fy_spans *s, size_t first)
{
    span_run *run = run_at(s, first);
    size_t after = first + run->span_count;
    if (after < s->top && run_at(s, after)->free_begins) {
        span_run *next = run_at(s, after);
        if (mergeable(run, next)) {
            unlink_run(s, after);
            run->span_count += next->span_count;
        }
    }
    if (first > 0 && run_at(s, first - 1)->free_back != 0) {
        size_t before = first - run_at(s, first - 1)->free_back;
        span_run *prev = run_at(s, before);
        if (mergeable(prev, run)) {
            unlink_run(s, before);
            prev->span_count += run->span_count;
            prev->freed_ns = run->freed_ns;
            return before;
        }
    }
    return first;
}

static void add_free(fy_spans *s, size_t first, size_t count, bool dirty, uint64_t freed_ns)
{
    span_run *run = run_at(s, first);
    run->span_count = (uint32_t)count;
    run->dirty = dirty;
    run->freed_ns = freed_ns;
    first = merge(s, first);
    run = run_at(s, first);
    if (!run->dirty && first + run->span_count == s->top) {
        s->top = first;
        return;
    }
    mark_free(s, first, run->span_count);
    link_run(s, first);
}

static bool find_free(fy_spans *s, size_t count, size_t *first)
{
    for (uint32_t bin = fy_class_of(count); bin < SPAN_BINS; bin++) {
        for (uint32_t at = s->bins[bin]; at != 0; at = run_at(s, at - 1)->next) {
            if (run_at(s, at - 1)->span_count >= count) {
                *first = at - 1;
                return true;
            }
        }
    }
    return false;
}

/* Not merged: its neighbours were not when the run was whole. */
static void split_rest(fy_spans *s, size_t first, size_t count, const span_run *whole)
{
    span_run *run = run_at(s, first);
    run->span_count = (uint32_t)count;
    run->dirty = whole->dirty;
    run->freed_ns = whole->freed_ns;
    mark_free(s, first, count);
    link_run(s, first);
}

static bool spans_find(fy_spans *s, size_t count, size_t *first)
{
    if (find_free(s, count, first)) {
        unlink_run(s, *first);
        span_run *run = run_at(s, *first);
        size_t rest = run->span_count - count;
        if (rest > 0)
            split_rest(s, *first + count, rest, run);
        return true;
    }
    if (count > s->arena.span_count - s->top)
        return false;
    *first = s->top;
    s->top += count;
    return true;
}

bool fy_spans_take(fy_spans *s, size_t count, run_kind kind, uint32_t size_class, size_t *first)
{
    if (!spans_find(s, count, first)) {
        fy_spans_trim(s, UINT64_MAX);
        if (!spans_find(s, count, first))
            return false;
    }
    span_run *run = run_at(s, *first);
    run->span_count = (uint32_t)count;
    run->kind = (uint8_t)kind;
    run->size_class = (uint8_t)size_class;
    run->free_begins = false;
    run_at(s, *first + count - 1)->free_back = 0;
    for (uint32_t i = 0; i < RUN_RECORDS; i++)
        atomic_store_explicit(&info_of(&s->arena, *first)->record[i], 0, memory_order_relaxed);
    for (size_t i = 0; i < count; i++)
        set_tag(s, *first + i, tag_make(kind, size_class, i));
    return true;
}

void fy_spans_give(fy_spans *s, size_t first, uint64_t now_ns)
{
    run_at(s, first)->kind = RUN_FREE;
    add_free(s, first, run_at(s, first)->span_count, true, now_ns);
    fy_spans_trim(s, now_ns);
}

static void punch(fy_spans *s, size_t first)
{
    size_t count = run_at(s, first)->span_count;
    unlink_run(s, first);
    /* Memory that cannot be punched (not a shared file) stays; it is as free as before. */
    (void)madvise(data_of(&s->arena, first), count * FY_HEAP_SPAN_BYTES, MADV_REMOVE);
    add_free(s, first, count, false, 0);
}

void fy_spans_trim(fy_spans *s, uint64_t now_ns)
{
    if (now_ns < s->trim_ns)
        return;
    for (uint32_t bin = 0; bin < SPAN_BINS; bin++) {
        uint32_t at = s->bins[bin];
        while (at != 0) {
            const span_run *run = run_at(s, at - 1);
            if (run->dirty && (now_ns == UINT64_MAX || run->freed_ns + DIRTY_NS <= now_ns)) {
                punch(s, at - 1);
                at = s->bins[bin]; /* merging may have moved any of them */
            } else {
                at = run->next;
            }
        }
    }
    if (now_ns != UINT64_MAX)
        s->trim_ns = now_ns + TRIM_INTERVAL_NS;
}
