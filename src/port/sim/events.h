/* Events: what will happen in a simulated world, in the order (time, number).
 *
 * A heap of four children per node. An event is embedded in what it happens to, so scheduling one
 * allocates nothing once the heap has its size. Numbers count schedulings: events of one time
 * happen in the order they were scheduled, on every machine.
 *
 * Events lie all over the memory of the world. So the heap moves slots without looking at their
 * events, and an event that is moved or taken back leaves its old slot behind. Invariants: a slot
 * is live if its event has its number. The first slot is live. At least a third of the slots are
 * live, but for a few. */
#ifndef FY_EVENTS_H
#define FY_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fy_event {
    uint64_t time_ns;
    uint64_t number; /* of its scheduling, from 1; 0: not scheduled */
    uint32_t kind;   /* belongs to the owner */
} fy_event;

typedef struct fy_event_slot {
    uint64_t time_ns;
    uint64_t number;
    fy_event *event;
} fy_event_slot;

typedef struct fy_events {
    fy_event_slot *slots; /* from 1 */
    size_t count;         /* events that are scheduled */
    size_t used, capacity;
    uint64_t number; /* of the last scheduling */
} fy_events;

void fy_events_init(fy_events *events);
/* Frees the heap; the events are their owners'. Until then the memory of an event that was moved or
 * taken back remains readable. */
void fy_events_fini(fy_events *events);

/* Makes room so that `count` events can be scheduled without failing. FERRY_ENOMEM. */
int fy_events_reserve(fy_events *events, size_t count);

/* Schedules an event, or moves one that is scheduled; in either case it comes after all others of
 * `time_ns`. Grows the heap; ends the process when there is no memory for that, since a world
 * that loses an event would lie. */
void fy_events_set(fy_events *events, fy_event *event, uint64_t time_ns);

/* Takes an event back; nothing when it is not scheduled. */
void fy_events_cancel(fy_events *events, fy_event *event);

/* Takes the next event; NULL when there is none. */
fy_event *fy_events_pop(fy_events *events);

/* The event that comes next as things stand; NULL when there is none. Has the memory of those that
 * may follow it fetched into the cache. */
fy_event *fy_events_ahead(const fy_events *events);

/* Time of the next event; UINT64_MAX when there is none. */
static inline uint64_t fy_events_next_ns(const fy_events *events)
{
    return events->count == 0 ? UINT64_MAX : events->slots[1].time_ns;
}

#endif
