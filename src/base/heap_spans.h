/* Spans: the owner's supply of free runs in an arena.
 *
 * Free runs are in bins by length. Dirty runs have pages. Clean runs were given back or never used.
 * Neighbours are merged if both are clean, or if both are dirty and were freed at about the same
 * time. Every caller holds the heap's lock. */
#ifndef FY_HEAP_SPANS_H
#define FY_HEAP_SPANS_H

#include "base/heap_arena.h"

#define SPAN_BINS 112

/* The owner's private data of a span. Spans are named by index + 1; 0 is none. All fields but
 * `free_back` belong to a run, and are at its first span. */
typedef struct span_run {
    uint32_t prev, next; /* list of runs with room, or of free runs */
    uint32_t span_count;
    uint32_t free_first; /* first free block, index + 1 */
    uint32_t carved;     /* how many blocks were ever allocated */
    uint32_t live;
    uint32_t free_back;       /* if a free run ends here: 1 + how far back it begins; else 0 */
    uint8_t size_class, kind; /* run_kind; used: not RUN_FREE */
    bool free_begins;         /* a free run begins here */
    bool dirty, listed;       /* free run: has pages; used run: is in a list */
    uint64_t freed_ns;
} span_run;

typedef struct fy_spans {
    fy_arena arena;
    span_run *runs;           /* by span */
    uint32_t bins[SPAN_BINS]; /* first span + 1 */
    size_t top;               /* spans from here on were never used, or are clean again */
    uint64_t trim_ns;         /* when to look for old dirty runs again */
} fy_spans;

/* Finds a run of `count` spans and sets its tags. Returns false if there is none. */
bool fy_spans_take(fy_spans *spans, size_t count, run_kind kind, uint32_t size_class,
                   size_t *first);

/* Makes a run free. */
void fy_spans_give(fy_spans *spans, size_t first, uint64_t now_ns);

/* Gives back pages of dirty runs that have been free for a while; UINT64_MAX: of all. */
void fy_spans_trim(fy_spans *spans, uint64_t now_ns);

#endif
