/* Spans: the owner's supply of free runs in an arena.
 *
 * Free runs hang in bins by length. Dirty runs have pages, clean ones were punched or never
 * touched; neighbours are merged when both are clean, or both dirty and freed at about the same
 * time. The heap's lock is held by every caller. */
#ifndef FY_HEAP_SPANS_H
#define FY_HEAP_SPANS_H

#include "base/heap_arena.h"

#define SPAN_BINS 112

typedef struct fy_spans {
    fy_arena arena;
    uint32_t bins[SPAN_BINS]; /* first span + 1 */
    size_t top;               /* spans from here on were never used, or are clean again */
    uint64_t trim_ns;         /* when to look for old dirty runs next */
} fy_spans;

/* Finds a run of `count` spans and sets its tags. False when there is none. */
bool fy_spans_take(fy_spans *spans, size_t count, run_kind kind, uint32_t size_class,
                   size_t *first);

/* Makes a run free. */
void fy_spans_give(fy_spans *spans, size_t first, uint64_t now_ns);

/* Punches the dirty runs that have been free for a while; all of them when `now_ns` is
 * UINT64_MAX. */
void fy_spans_trim(fy_spans *spans, uint64_t now_ns);

#endif
