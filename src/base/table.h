/* Table: fixed-size slots found by a 64-bit key, in one array.
 *
 * Open addressing with linear probing, at most three quarters full; removal moves the slots behind
 * back, so there are no markers and a search ends at the first empty slot. A slot begins with its
 * key; key 0 is an empty slot and not a key. Invariant: between a key's home and its slot no slot
 * is empty. Slots move when another is inserted or removed. The order of a walk depends on the keys
 * and on the history, never on addresses. One thread at a time. */
#ifndef FY_TABLE_H
#define FY_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/shared.h"

typedef struct fy_table {
    unsigned char *slots;
    size_t slot_bytes;
    size_t count;
    size_t mask;    /* capacity - 1; capacity is a power of two */
    unsigned shift; /* 64 - log2(capacity) */
} fy_table;

/* An empty table of slots of `slot_bytes`, a multiple of 8 that counts the key. FERRY_ENOMEM. */
FY_SHARED int fy_table_init(fy_table *table, size_t slot_bytes);

/* Frees the slots; what they point to is the caller's. */
FY_SHARED void fy_table_fini(fy_table *table);

/* Finds the slot of `key` or adds one, zero but for its key. Lends `*slot` until the next insertion
 * or removal. FERRY_ENOMEM: nothing changed. */
FY_SHARED int fy_table_insert(fy_table *table, uint64_t key, void **slot);

/* Removes a slot that fy_table_find or fy_table_insert gave. */
FY_SHARED void fy_table_remove(fy_table *table, void *slot);

/* The first slot at or after `*index` in the array, and its index + 1 there; NULL at the end. */
FY_SHARED void *fy_table_next(const fy_table *table, size_t *index);

static inline uint64_t *fy_table_slot(const fy_table *table, size_t index)
{
    return (uint64_t *)(void *)(table->slots + index * table->slot_bytes);
}

/* Multiplication spreads the low bits, in which names of objects differ, over the high ones. */
static inline size_t fy_table_home(const fy_table *table, uint64_t key)
{
    return (size_t)((key * 0x9e3779b97f4a7c15u) >> table->shift);
}

/* As fy_table_find, for callers to whom the table's size of slots is a constant. */
static inline void *fy_table_find_sized(const fy_table *table, uint64_t key, size_t slot_bytes)
{
    for (size_t i = fy_table_home(table, key);; i = (i + 1) & table->mask) {
        uint64_t *slot = (uint64_t *)(void *)(table->slots + i * slot_bytes);
        if (*slot == key)
            return slot;
        if (*slot == 0)
            return NULL;
    }
}

/* The slot of `key`, not 0; NULL when it has none. Lends it until the next insertion or removal. */
static inline void *fy_table_find(const fy_table *table, uint64_t key)
{
    return fy_table_find_sized(table, key, table->slot_bytes);
}

#endif
