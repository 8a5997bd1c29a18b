/* Slots: calls that wait for answers of another rank. A frame names the call by index and
 * generation, never by an address, so an answer that comes twice or from nowhere finds nothing. */
#ifndef FY_MEMORY_SLOTS_H
#define FY_MEMORY_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of the record of such a call. */
typedef struct fy_call_slot {
    int rank; /* that answers */
    uint32_t op;
    uint32_t index, generation;
    uint32_t next_free;
    bool open; /* answers may come */
} fy_call_slot;

typedef struct fy_call_slots {
    unsigned char *items;
    size_t item_bytes;
    uint32_t count, capacity;
    uint32_t free_item; /* index + 1; 0 for none */
} fy_call_slots;

/* A record whose slot is filled in; its address holds until the next one is taken. NULL: no memory.
 */
void *fy_call_slot_take(fy_call_slots *slots, int rank, uint32_t op);

/* The record that an answer of `rank` names, or NULL. */
void *fy_call_slot_find(const fy_call_slots *slots, int rank, uint64_t index, uint32_t generation);

void fy_call_slot_give(fy_call_slots *slots, uint32_t index);

#endif
