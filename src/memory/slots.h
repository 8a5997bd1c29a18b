/* Slots: calls that wait for the answers of another rank. A frame names its call by index and
 * generation, never by an address. So an answer that comes twice, or for which no call waits, finds
 * no slot. */
#ifndef FY_MEMORY_SLOTS_H
#define FY_MEMORY_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of the record of a waiting call. */
typedef struct fy_call_slot {
    int rank;    /* the rank that answers */
    uint32_t op; /* the operation that the answer ends */
    uint32_t index, generation;
    uint32_t next_free;
    bool open; /* taken, and not given back yet */
} fy_call_slot;

typedef struct fy_call_slots {
    unsigned char *items;
    size_t item_bytes;
    uint32_t count, capacity;
    uint32_t free_item; /* index + 1; 0 for none */
} fy_call_slots;

/* Takes a record and fills in its slot. Its address is valid until the next take, which may move
 * all records. NULL: no memory. */
void *fy_call_slot_take(fy_call_slots *slots, int rank, uint32_t op);

/* The record that an answer of `rank` names, or NULL. */
void *fy_call_slot_find(const fy_call_slots *slots, int rank, uint64_t index, uint32_t generation);

/* Gives a record back. Later answers for it find nothing. */
void fy_call_slot_give(fy_call_slots *slots, uint32_t index);

#endif
