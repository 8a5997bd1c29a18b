#include "object/sources.h"

#include <stdlib.h>
#include <string.h>

#include <ferry/error.h>

#include "base/alloc.h"

/* The place of `key`, or the empty one where it belongs. */
static fy_source *sources_place(fy_source *table, uint32_t capacity, uint32_t key)
{
    uint32_t i = (key * 0x9e3779b9u) & (capacity - 1);
    while (table[i].rank_plus_1 != 0 && table[i].rank_plus_1 != key)
        i = (i + 1) & (capacity - 1);
    return &table[i];
}

/* Makes the hash table, or doubles it. */
static __attribute__((cold)) int sources_grow(fy_sources *sources)
{
    uint32_t old_capacity = sources->many != NULL ? sources->capacity : FY_SOURCES_INLINE;
    fy_source *old = sources->many != NULL ? sources->many : sources->few;
    uint32_t capacity = old_capacity * 4;
    fy_source *table = fy_calloc(capacity, sizeof *table);
    if (table == NULL)
        return -1;
    for (uint32_t i = 0; i < old_capacity; i++)
        if (old[i].rank_plus_1 != 0)
            *sources_place(table, capacity, old[i].rank_plus_1) = old[i];
    free(sources->many);
    sources->many = table;
    sources->capacity = capacity;
    return 0;
}

static uint32_t *of_many(fy_sources *sources, uint32_t key)
{
    fy_source *source = sources_place(sources->many, sources->capacity, key);
    if (source->rank_plus_1 == 0) {
        if (sources->count * 2 >= sources->capacity) {
            if (sources_grow(sources) != 0)
                return NULL;
            source = sources_place(sources->many, sources->capacity, key);
        }
        source->rank_plus_1 = key;
        sources->count++;
    }
    return &source->expected;
}

uint32_t *fy_sources_find(fy_sources *sources, int rank)
{
    uint32_t key = (uint32_t)rank + 1;
    if (sources->many == NULL && sources->count < FY_SOURCES_INLINE) {
        fy_source *source = &sources->few[sources->count++];
        *source = (fy_source){.rank_plus_1 = key};
        return &source->expected;
    }
    if (sources->many == NULL && sources_grow(sources) != 0)
        return NULL;
    return of_many(sources, key);
}

int fy_sources_read(fy_sources *sources, const unsigned char *at, uint32_t count, int ranks)
{
    fy_source *few = sources->few;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&few[i], at + i * sizeof *few, sizeof *few);
        if (few[i].rank_plus_1 - 1 >= (uint32_t)ranks)
            return FERRY_EINVAL;
        for (uint32_t j = 0; j < i; j++)
            if (few[j].rank_plus_1 == few[i].rank_plus_1)
                return FERRY_EINVAL;
    }
    sources->count = count;
    return 0;
}

void fy_sources_copy_many(const fy_sources *sources, fy_source *out)
{
    for (uint32_t i = 0; i < sources->capacity; i++)
        if (sources->many[i].rank_plus_1 != 0)
            *out++ = sources->many[i];
}
