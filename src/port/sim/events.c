#include "port/sim/events.h"

#include <stdlib.h>

#include <ferry/error.h>

#include "base/log.h"

/* A heap this small may have any number of slots that are not live. */
enum { CHILDREN = 4, STALE_MIN = 256 };

void fy_events_init(fy_events *events)
{
    *events = (fy_events){0};
}

void fy_events_fini(fy_events *events)
{
    free(events->slots);
    *events = (fy_events){0};
}

static size_t slots_max(size_t count)
{
    return 3 * count + STALE_MIN;
}

int fy_events_reserve(fy_events *events, size_t count)
{
    size_t needed = slots_max(count) + 1;
    if (needed < events->capacity)
        return 0;
    size_t capacity = events->capacity == 0 ? 1024 : events->capacity;
    while (capacity <= needed)
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

/* Without a branch: which of two comes first is as good as random. */
static inline bool before(const fy_event_slot *a, const fy_event_slot *b)
{
    return (a->time_ns < b->time_ns) | ((a->time_ns == b->time_ns) & (a->number < b->number));
}

/* Moves the hole at `place` up, at most to `top`, to where the slot belongs. The root is at 1, the
 * children of p at 4p - 2 to 4p + 1. */
static void rise(fy_events *events, size_t top, size_t place, fy_event_slot slot)
{
    while (place > top) {
        size_t parent = (place + 2) / CHILDREN;
        if (!before(&slot, &events->slots[parent]))
            break;
        events->slots[place] = events->slots[parent];
        place = parent;
    }
    events->slots[place] = slot;
}

/* Returns the child that comes first. All `CHILDREN` of them exist, from `first` on. */
static inline size_t least_child(const fy_event_slot *slots, size_t first)
{
    size_t left = before(&slots[first + 1], &slots[first]) ? first + 1 : first;
    size_t right = before(&slots[first + 3], &slots[first + 2]) ? first + 3 : first + 2;
    return before(&slots[right], &slots[left]) ? right : left;
}

/* Fills the hole at `place` from below as far as it goes, and then lets the slot rise: it comes
 * from the end of the heap, and most of these belong there. */
static void sink(fy_events *events, size_t place, fy_event_slot slot)
{
    fy_event_slot *slots = events->slots;
    size_t first, top = place;
    while ((first = CHILDREN * place - 2) + CHILDREN - 1 <= events->used) {
        size_t least = least_child(slots, first);
        slots[place] = slots[least];
        place = least;
    }
    if (first <= events->used) {
        size_t least = first;
        for (size_t i = first + 1; i <= events->used; i++)
            least = before(&slots[i], &slots[least]) ? i : least;
        slots[place] = slots[least];
        place = least;
    }
    rise(events, top, place, slot);
}

static bool is_live(const fy_event_slot *slot)
{
    return slot->event->number == slot->number;
}

/* Restores the invariant of the first slot. */
static void uncover(fy_events *events)
{
    while (events->used > 0 && !is_live(&events->slots[1])) {
        fy_event_slot last = events->slots[events->used--];
        if (events->used > 0)
            sink(events, 1, last);
    }
}

/* Removes all slots that are not live. */
static __attribute__((cold, noinline)) void sweep(fy_events *events)
{
    size_t kept = 0;
    for (size_t i = 1; i <= events->used; i++)
        if (is_live(&events->slots[i]))
            events->slots[++kept] = events->slots[i];
    events->used = kept;
    for (size_t place = (kept + 2) / CHILDREN; place > 0; place--)
        sink(events, place, events->slots[place]);
}

void fy_events_set(fy_events *events, fy_event *event, uint64_t time_ns)
{
    bool first = event->number != 0 && events->slots[1].event == event;
    events->count += event->number == 0;
    event->time_ns = time_ns;
    event->number = ++events->number;
    if (events->used >= slots_max(events->count))
        sweep(events);
    if (fy_events_reserve(events, events->count) != 0) {
        fy_log_line(-1, "sim: no memory for %zu events", events->count);
        abort();
    }
    rise(events, 1, ++events->used, (fy_event_slot){time_ns, event->number, event});
    if (first)
        uncover(events);
}

void fy_events_cancel(fy_events *events, fy_event *event)
{
    if (event->number == 0)
        return;
    event->number = 0;
    events->count--;
    if (events->slots[1].event == event)
        uncover(events);
}

fy_event *fy_events_pop(fy_events *events)
{
    if (events->count == 0)
        return NULL;
    fy_event *event = events->slots[1].event;
    fy_events_cancel(events, event);
    return event;
}

fy_event *fy_events_ahead(const fy_events *events)
{
    size_t last = events->used < CHILDREN + 1 ? events->used : CHILDREN + 1;
    for (size_t i = 2; i <= last; i++)
        __builtin_prefetch(events->slots[i].event);
    return events->count == 0 ? NULL : events->slots[1].event;
}
