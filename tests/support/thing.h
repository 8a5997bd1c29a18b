/* Thing: an object of any length whose data can be checked. Its words follow from its seed. */
#ifndef TEST_THING_H
#define TEST_THING_H

#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

typedef struct thing {
    uint64_t size_bytes; /* of the words that follow */
    uint64_t seed;
    uint64_t sum, count;
    uint64_t words[];
} thing;

static inline size_t packed_size(ferry *f, const void *data)
{
    (void)f;
    return sizeof(thing) + ((const thing *)data)->size_bytes;
}

static inline void pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    (void)f;
    memcpy(buffer, data, size_bytes);
}

/* With room for `bytes_max` bytes of words. NULL: no memory. */
static inline void *thing_unpack(const void *buffer, size_t size_bytes, size_t bytes_max)
{
    void *data = malloc(sizeof(thing) + bytes_max);
    return data == NULL ? NULL : memcpy(data, buffer, size_bytes);
}

static inline void fill(thing *t, uint64_t first, uint64_t last)
{
    for (uint64_t i = first; i < last; i++)
        t->words[i] = t->seed * 77 + i;
}

static inline bool is_whole(const thing *t)
{
    for (uint64_t i = 0; i < t->size_bytes / 8; i++)
        if (t->words[i] != t->seed * 77 + i)
            return false;
    return true;
}

#endif
