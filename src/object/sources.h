/* Sources: for each object, the sequence number expected next from each rank that has sent to it.
 *
 * The struct itself has room for the first few ranks. More ranks make a small hash table. A rank
 * that is not in it is expected to begin with 0. Invariant: memory grows with the ranks that have
 * sent, not with the job. */
#ifndef FY_SOURCES_H
#define FY_SOURCES_H

#include <stdint.h>
#include <stdlib.h>

#include "base/shared.h"

enum { FY_SOURCES_INLINE = 4 };

typedef struct fy_source {
    uint32_t rank_plus_1; /* 0: unused */
    uint32_t expected;
} fy_source;

typedef struct fy_sources {
    fy_source few[FY_SOURCES_INLINE];
    fy_source *many; /* hash table of `capacity` places, a power of two; NULL while the inline
                        places suffice */
    uint32_t capacity;
    uint32_t count;
} fy_sources;

static inline void fy_sources_fini(fy_sources *sources)
{
    free(sources->many);
}

/* As fy_sources_of, for a rank that is in no inline place. */
FY_SHARED uint32_t *fy_sources_find(fy_sources *sources, int rank);

/* The number expected from `rank`, which the caller may change in place until the next call. NULL
 * if there is no memory for a new place. */
static inline uint32_t *fy_sources_of(fy_sources *sources, int rank)
{
    for (uint32_t i = 0; sources->many == NULL && i < sources->count; i++)
        if (sources->few[i].rank_plus_1 == (uint32_t)rank + 1)
            return &sources->few[i].expected;
    return fy_sources_find(sources, rank);
}

/* Fills `sources`, which has no hash table, from what fy_sources_copy wrote: at most
 * FY_SOURCES_INLINE, each of another rank of `ranks`. FERRY_EINVAL. */
int fy_sources_read(fy_sources *sources, const unsigned char *at, uint32_t count, int ranks);

/* As fy_sources_copy, of many. */
void fy_sources_copy_many(const fy_sources *sources, fy_source *out);

/* Copies all, `count` of them, to `out`. */
static inline void fy_sources_copy(const fy_sources *sources, fy_source *out)
{
    if (sources->many != NULL)
        fy_sources_copy_many(sources, out);
    for (uint32_t i = 0; i < FY_SOURCES_INLINE && sources->many == NULL && i < sources->count; i++)
        out[i] = sources->few[i];
}

#endif
