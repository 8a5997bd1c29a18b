#include "memory/slots.h"

#include "base/alloc.h"

static fy_call_slot *slot_at(const fy_call_slots *slots, uint64_t index)
{
    return (fy_call_slot *)(void *)(slots->items + index * slots->item_bytes);
}

void *fy_call_slot_take(fy_call_slots *slots, int rank, uint32_t op)
{
    uint32_t index = slots->free_item - 1, generation = 0;
    if (slots->free_item != 0) {
        generation = slot_at(slots, index)->generation;
        slots->free_item = slot_at(slots, index)->next_free;
    } else {
        index = slots->count;
        if (index == slots->capacity) {
            unsigned char *items = fy_double(slots->items, &slots->capacity, 16, slots->item_bytes);
            if (items == NULL)
                return NULL;
            slots->items = items;
        }
        slots->count++;
    }
    fy_call_slot *slot = slot_at(slots, index);
    *slot = (fy_call_slot){
        .rank = rank, .op = op, .index = index, .generation = generation, .open = true};
    return slot;
}

void *fy_call_slot_find(const fy_call_slots *slots, int rank, uint64_t index, uint32_t generation)
{
    if (index >= slots->count)
        return NULL;
    fy_call_slot *slot = slot_at(slots, index);
    return slot->open && slot->generation == generation && slot->rank == rank ? slot : NULL;
}

void fy_call_slot_give(fy_call_slots *slots, uint32_t index)
{
    fy_call_slot *slot = slot_at(slots, index);
    slot->open = false;
    slot->generation++;
    slot->next_free = slots->free_item;
    slots->free_item = index + 1;
}
