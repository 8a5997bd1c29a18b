#include "port/sim/events.h"

#include <stdlib.h>

#include <ferry/error.h>

#include "base/log.h"

enum { CHILDREN = 4 };

void fy_events_init(fy_events *events)
{
    *events = (fy_events){0};
}

void fy_events_fini(fy_events *events)
{
    free(events->slots);
    *events = (fy_events){0};
}

int fy_events_reserve(fy_events *events, size_t count)
{
    if (count < events->capacity)
        return 0;
    size_t capacity = events->capacity == 0 ? 1024 : events->capacity;
    while (capacity <= count)
        capacity *= 2;
    if (capacity > UINT32_MAX)
        return FERRY_ENOMEM;
    fy_event_slot *slots = realloc(events->slots, capacity * sizeof(*slots));
    if (slots == NULL)
        return FERRY_ENOMEM;
    events->slots = slots;
    events->capacity = capacity;
    return 0;
}

static bool before(const fy_event_slot *a, const fy_event_slot *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->number < b->number;
}

static void events_put(fy_events *events, size_t place, fy_event_slot slot)
{
    events->slots[place] = slot;
    slot.event->place = (uint32_t)place;
}

/* The root is at 1, the children of p at 4p - 2 to 4p + 1. */
static void rise(fy_events *events, size_t place, fy_event_slot slot)
{
    while (place > 1) {
        size_t parent = (place + 2) / CHILDREN;
        if (!before(&slot, &events->slots[parent]))
            break;
        events_put(events, place, events->slots[parent]);
        place = parent;
    }
    events_put(events, place, slot);
}

static void sink(fy_events *events, size_t place, fy_event_slot slot)
{
    for (;;) {
        size_t first = CHILDREN * place - 2;
        if (first > events->count)
            break;
        size_t last = first + CHILDREN - 1;
        if (last > events->count)
            last = events->count;
        size_t least = first;
        for (size_t i = first + 1; i <= last; i++)
            if (before(&events->slots[i], &events->slots[least]))
                least = i;
        if (!before(&events->slots[least], &slot))
            break;
        events_put(events, place, events->slots[least]);
        place = least;
    }
    events_put(events, place, slot);
}

static void events_settle(fy_events *events, size_t place, fy_event_slot slot)
{
    if (place > 1 && before(&slot, &events->slots[(place + 2) / CHILDREN]))
        rise(events, place, slot);
    else
        sink(events, place, slot);
}

void fy_events_set(fy_events *events, fy_event *event, uint64_t time_ns)
{
    fy_event_slot slot = {time_ns, events->number++, event};
    event->time_ns = time_ns;
    if (event->place != 0) {
        events_settle(events, event->place, slot);
        return;
    }
    if (fy_events_reserve(events, events->count + 1) != 0) {
        fy_log_line(-1, "sim: no memory for %zu events", events->count + 1);
        abort();
    }
    rise(events, ++events->count, slot);
}

void fy_events_cancel(fy_events *events, fy_event *event)
{
    size_t place = event->place;
    if (place == 0)
        return;
    event->place = 0;
    fy_event_slot last = events->slots[events->count--];
    if (place <= events->count)
        events_settle(events, place, last);
}

fy_event *fy_events_pop(fy_events *events)
{
    if (events->count == 0)
        return NULL;
    fy_event *event = events->slots[1].event;
    fy_events_cancel(events, event);
    return event;
}
