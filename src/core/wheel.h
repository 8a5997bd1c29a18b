/* Wheel: timers in a hierarchy of wheels, each slot of one covering a whole turn of the one below.
 *
 * Adding and removing are a few instructions, whatever the number of timers; so is finding out when
 * something is due next. A timer moves down at most once per level. Invariant: a timer stands in
 * the level of the highest group of bits in which its tick differs from the current one. So slots
 * that are not empty lie ahead of the current one in their level. One thread at a time. */
#ifndef FY_WHEEL_H
#define FY_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

enum {
    FY_TICK_BITS = 14, /* a tick is 16.4 us */
    FY_SLOT_BITS = 6,
    FY_SLOTS = 1 << FY_SLOT_BITS,
    FY_LEVELS = (64 - FY_TICK_BITS + FY_SLOT_BITS - 1) / FY_SLOT_BITS,
};

/* A timer inside its owner. `tick` is 0 while it is in no wheel. */
typedef struct fy_timer {
    fy_link link;
    uint64_t tick;
} fy_timer;

typedef struct fy_wheel {
    uint64_t tick;            /* all timers are due later */
    uint64_t used[FY_LEVELS]; /* a bit per slot with timers */
    fy_link slots[FY_LEVELS][FY_SLOTS];
} fy_wheel;

/* A wheel without timers. Not NULL but without memory. Free it with free. */
fy_wheel *fy_wheel_create(uint64_t now_ns);

/* Adds a timer, which is in no wheel, due at `deadline_ns` or up to a tick later. */
void fy_wheel_add(fy_wheel *wheel, fy_timer *timer, uint64_t deadline_ns);

/* Takes a timer out, if it is in. */
void fy_wheel_remove(fy_wheel *wheel, fy_timer *timer);

/* Takes out one timer that is due at `now_ns`; NULL when there is none. Due ones come in the order
 * of their ticks, and of their additions within one. */
fy_timer *fy_wheel_take(fy_wheel *wheel, uint64_t now_ns);

/* When fy_wheel_take should be asked next: not after the first timer is due. UINT64_MAX without
 * timers. */
uint64_t fy_wheel_next_ns(const fy_wheel *wheel);

#endif
