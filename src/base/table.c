#include "base/table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <ferry/error.h>

#include "base/alloc.h"

enum { FIRST_LOG = 4, LINE_BYTES = 64, HUGE_BYTES = 2 << 20 };

/* Slots start at a cache line, so that those whose size divides 64 touch one line each. In large
 * tables most of a search is finding the page, so they ask for huge ones; where there are none it
 * does no harm. */
static unsigned char *allocate(size_t capacity, size_t slot_bytes)
{
    if (capacity > SIZE_MAX / 2 / slot_bytes)
        return NULL;
    size_t bytes = (capacity * slot_bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    bool large = bytes >= 2 * HUGE_BYTES && bytes % HUGE_BYTES == 0;
    unsigned char *slots = fy_aligned_alloc(large ? HUGE_BYTES : LINE_BYTES, bytes);
    if (slots != NULL && large)
        (void)madvise(slots, bytes, MADV_HUGEPAGE);
    if (slots != NULL)
        memset(slots, 0, bytes);
    return slots;
}

int fy_table_init(fy_table *table, size_t slot_bytes)
{
    size_t capacity = (size_t)1 << FIRST_LOG;
    unsigned char *slots = allocate(capacity, slot_bytes);
    if (slots == NULL)
        return FERRY_ENOMEM;
    *table = (fy_table){
        .slots = slots, .slot_bytes = slot_bytes, .mask = capacity - 1, .shift = 64 - FIRST_LOG};
    return 0;
}

void fy_table_fini(fy_table *table)
{
    free(table->slots);
    table->slots = NULL;
    table->count = 0;
}

/* The empty slot where `key`, which is not in the table, belongs. */
static uint64_t *vacancy(const fy_table *table, uint64_t key)
{
    size_t i = fy_table_home(table, key);
    while (*fy_table_slot(table, i) != 0)
        i = (i + 1) & table->mask;
    return fy_table_slot(table, i);
}

static int table_grow(fy_table *table)
{
    fy_table larger = *table;
    larger.mask = table->mask * 2 + 1;
    larger.shift = table->shift - 1;
    larger.slots = allocate(larger.mask + 1, table->slot_bytes);
    if (larger.slots == NULL)
        return FERRY_ENOMEM;
    size_t index = 0;
    for (uint64_t *slot; (slot = fy_table_next(table, &index)) != NULL;)
        memcpy(vacancy(&larger, *slot), slot, table->slot_bytes);
    free(table->slots);
    *table = larger;
    return 0;
}

int fy_table_insert(fy_table *table, uint64_t key, void **slot)
{
    size_t i = fy_table_home(table, key);
    uint64_t *found = fy_table_slot(table, i);
    while (*found != key && *found != 0) {
        i = (i + 1) & table->mask;
        found = fy_table_slot(table, i);
    }
    if (*found == 0) {
        if ((table->count + 1) * 4 > (table->mask + 1) * 3) {
            int error = table_grow(table);
            if (error != 0)
                return error;
            found = vacancy(table, key);
        }
        *found = key;
        table->count++;
    }
    *slot = found;
    return 0;
}

void fy_table_remove(fy_table *table, void *slot)
{
    size_t hole = (size_t)((unsigned char *)slot - table->slots) / table->slot_bytes;
    for (size_t i = (hole + 1) & table->mask; *fy_table_slot(table, i) != 0;
         i = (i + 1) & table->mask) {
        size_t home = fy_table_home(table, *fy_table_slot(table, i));
        /* A slot may move to the hole when the hole lies between its home and itself. */
        if (((i - home) & table->mask) >= ((i - hole) & table->mask)) {
            memcpy(fy_table_slot(table, hole), fy_table_slot(table, i), table->slot_bytes);
            hole = i;
        }
    }
    memset(fy_table_slot(table, hole), 0, table->slot_bytes);
    table->count--;
}

void *fy_table_next(const fy_table *table, size_t *index)
{
    while (*index <= table->mask) {
        uint64_t *slot = fy_table_slot(table, (*index)++);
        if (*slot != 0)
            return slot;
    }
    return NULL;
}
