#include "core/wheel.h"

#include <stdlib.h>

#include "base/alloc.h"

fy_wheel *fy_wheel_create(uint64_t now_ns)
{
    fy_wheel *wheel = fy_calloc(1, sizeof(*wheel));
    if (wheel == NULL)
        return NULL;
    wheel->tick = now_ns >> FY_TICK_BITS;
    for (int level = 0; level < FY_LEVELS; level++)
        for (int slot = 0; slot < FY_SLOTS; slot++)
            fy_list_init(&wheel->slots[level][slot]);
    return wheel;
}

static int level_of(uint64_t tick, uint64_t current)
{
    return (63 - __builtin_clzll(tick ^ current)) / FY_SLOT_BITS;
}

static uint32_t slot_of(uint64_t tick, int level)
{
    return tick >> level * FY_SLOT_BITS & (FY_SLOTS - 1);
}

/* Links a timer whose tick is ahead. */
static void wheel_place(fy_wheel *wheel, fy_timer *timer)
{
    int level = level_of(timer->tick, wheel->tick);
    uint32_t slot = slot_of(timer->tick, level);
    fy_list_insert(&wheel->slots[level][slot], &timer->link);
    wheel->used[level] |= UINT64_C(1) << slot;
}

void fy_wheel_add(fy_wheel *wheel, fy_timer *timer, uint64_t deadline_ns)
{
    timer->tick = (deadline_ns >> FY_TICK_BITS) + 1;
    if (timer->tick <= wheel->tick)
        timer->tick = wheel->tick + 1;
    wheel_place(wheel, timer);
}

void fy_wheel_remove(fy_wheel *wheel, fy_timer *timer)
{
    if (timer->tick == 0)
        return;
    /* If anything is left in the slot, it is the slot's own head. */
    const fy_link *head = timer->link.next == timer->link.prev ? timer->link.next : NULL;
    fy_list_remove(&timer->link);
    if (head != NULL && fy_list_empty(head)) {
        int level = level_of(timer->tick, wheel->tick);
        wheel->used[level] &= ~(UINT64_C(1) << slot_of(timer->tick, level));
    }
    timer->tick = 0;
}

/* The lowest level with timers; its first slot with some is the next to be looked at. */
static int next_level(const fy_wheel *wheel)
{
    for (int level = 0; level < FY_LEVELS; level++)
        if (wheel->used[level] != 0)
            return level;
    return -1;
}

/* The first tick of that slot. */
static uint64_t next_tick(const fy_wheel *wheel, int level)
{
    uint64_t slot = (uint64_t)__builtin_ctzll(wheel->used[level]);
    int above = (level + 1) * FY_SLOT_BITS;
    uint64_t prefix = above >= 64 ? 0 : wheel->tick >> above << above;
    return prefix | slot << level * FY_SLOT_BITS;
}

/* Goes to the first tick of a slot and moves its timers to the levels below. */
static void spread(fy_wheel *wheel, int level, uint64_t tick)
{
    uint32_t slot = slot_of(tick, level);
    fy_link *list = &wheel->slots[level][slot];
    fy_link all = *list;
    all.next->prev = &all;
    all.prev->next = &all;
    fy_list_init(list);
    wheel->used[level] &= ~(UINT64_C(1) << slot);
    wheel->tick = tick;
    for (fy_timer *timer; (timer = (fy_timer *)(void *)fy_list_pop(&all)) != NULL;) {
        /* The current tick itself has no slot: one due now waits for the next. */
        timer->tick += timer->tick == tick;
        wheel_place(wheel, timer);
    }
}

fy_timer *fy_wheel_take(fy_wheel *wheel, uint64_t now_ns)
{
    uint64_t now = now_ns >> FY_TICK_BITS;
    for (int level; (level = next_level(wheel)) >= 0;) {
        uint64_t tick = next_tick(wheel, level);
        if (tick > now)
            break;
        if (level == 0) {
            const fy_link *list = &wheel->slots[0][slot_of(tick, 0)];
            fy_timer *timer = (fy_timer *)(void *)list->next;
            fy_wheel_remove(wheel, timer);
            return timer;
        }
        spread(wheel, level, tick);
    }
    /* All timers are due after `now`, so going there leaves every timer in its place. */
    wheel->tick = now > wheel->tick ? now : wheel->tick;
    return NULL;
}

uint64_t fy_wheel_next_ns(const fy_wheel *wheel)
{
    int level = next_level(wheel);
    if (level < 0)
        return UINT64_MAX;
    uint64_t tick = next_tick(wheel, level);
    return tick > UINT64_MAX >> FY_TICK_BITS ? UINT64_MAX : tick << FY_TICK_BITS;
}
