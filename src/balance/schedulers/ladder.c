#include "balance/schedulers/ladder.h"

#include <stddef.h>
#include <string.h>

enum { LOWEST_EXPONENT = 999, HEAVY_TURNS = 31 }; /* of 2^-24, as a double has it */

/* A double's exponent and the first bit behind it count half octaves; of 0 they are 0. */
static inline int rung_of(double load)
{
    int64_t bits;
    memcpy(&bits, &load, sizeof bits);
    int64_t rung = (bits >> 51) - 2 * LOWEST_EXPONENT;
    if (rung < 0)
        return 0;
    return rung < FY_RUNGS ? (int)rung : FY_RUNGS - 1;
}

static void link_last(fy_ladder *ladder, ferry_schedulable *item)
{
    int at = rung_of(item->load);
    fy_rung *rung = &ladder->rungs[at];
    item->mark = item->load;
    item->prev = rung->last;
    item->next = NULL;
    if (rung->last == NULL)
        rung->first = item;
    else
        rung->last->next = item;
    rung->last = item;
    ladder->used[at / 64] |= UINT64_C(1) << at % 64;
    ladder->load += item->mark;
    ladder->loaded += item->mark > 0;
}

static void unlink_from(fy_ladder *ladder, ferry_schedulable *item)
{
    int at = rung_of(item->mark);
    fy_rung *rung = &ladder->rungs[at];
    if (item->prev == NULL)
        rung->first = item->next;
    else
        item->prev->next = item->next;
    if (item->next == NULL)
        rung->last = item->prev;
    else
        item->next->prev = item->prev;
    item->prev = NULL;
    item->next = NULL;
    if (rung->first == NULL)
        ladder->used[at / 64] &= ~(UINT64_C(1) << at % 64);
    ladder->load -= item->mark;
    ladder->loaded -= item->mark > 0;
}

bool fy_ladder_add(fy_ladder *ladder, ferry_schedulable *item)
{
    if (item->pending == 0)
        return false;
    if (!item->queued) {
        item->queued = true;
        ladder->count++;
        link_last(ladder, item);
        return true;
    }
    if (rung_of(item->load) == rung_of(item->mark)) {
        ladder->load += item->load - item->mark;
        ladder->loaded += item->load > 0;
        ladder->loaded -= item->mark > 0;
        item->mark = item->load;
    } else {
        unlink_from(ladder, item);
        link_last(ladder, item);
    }
    return false;
}

void fy_ladder_remove(fy_ladder *ladder, ferry_schedulable *item)
{
    if (!item->queued)
        return;
    item->queued = false;
    unlink_from(ladder, item);
    /* Sums of fractions do not come back to zero by themselves. */
    if (--ladder->count == 0 || ladder->load < 0)
        ladder->load = 0;
}

static const fy_rung *heaviest(const fy_ladder *ladder)
{
    for (int i = FY_RUNG_WORDS - 1; i >= 0; i--)
        if (ladder->used[i] != 0)
            return &ladder->rungs[64 * i + 63 - __builtin_clzll(ladder->used[i])];
    return NULL;
}

ferry_schedulable *fy_ladder_first(const fy_ladder *ladder)
{
    const fy_rung *rung = heaviest(ladder);
    return rung != NULL ? rung->first : NULL;
}

ferry_schedulable *fy_ladder_last(const fy_ladder *ladder)
{
    const fy_rung *rung = heaviest(ladder);
    return rung != NULL ? rung->last : NULL;
}

static bool has_one_rung(const fy_ladder *ladder)
{
    int words = 0;
    for (int i = 0; i < FY_RUNG_WORDS; i++) {
        if ((ladder->used[i] & (ladder->used[i] - 1)) != 0)
            return false;
        words += ladder->used[i] != 0;
    }
    return words == 1;
}

/* After many turns of the heaviest rung: another, each in its turn. Some rung is not empty. */
static const fy_rung *another(fy_ladder *ladder)
{
    ladder->passed = 0;
    uint32_t from = ++ladder->turn % FY_RUNGS;
    uint64_t mask = UINT64_MAX << from % 64;
    for (uint32_t at = from / 64;; mask = UINT64_MAX, at = (at + 1) % FY_RUNG_WORDS)
        if ((ladder->used[at] & mask) != 0)
            return &ladder->rungs[64 * at + (uint32_t)__builtin_ctzll(ladder->used[at] & mask)];
}

ferry_schedulable *fy_ladder_pop(fy_ladder *ladder)
{
    if (ladder->count == 0)
        return NULL;
    if (has_one_rung(ladder))
        ladder->passed = 0;
    else
        ladder->passed++;
    const fy_rung *rung = ladder->passed <= HEAVY_TURNS ? heaviest(ladder) : another(ladder);
    ferry_schedulable *item = rung->first;
    fy_ladder_remove(ladder, item);
    return item;
}
