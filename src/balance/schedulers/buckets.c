#include "balance/schedulers/buckets.h"

#include <stddef.h>
#include <string.h>

_Static_assert(FY_BUCKET_WORDS == 2, "heaviest and has_one_bucket look at two words");

enum { LOWEST_EXPONENT = 999, HEAVY_TURNS = 31 }; /* of 2^-24, as a double has it */

/* The exponent of a double and the first bit after it count half octaves. For 0 they are 0. */
static inline uint32_t bucket_of(const fy_buckets *buckets, double load)
{
    if (buckets->in_order)
        return 0;
    int64_t bits;
    memcpy(&bits, &load, sizeof bits);
    int64_t bucket = (bits >> 51) - 2 * LOWEST_EXPONENT;
    if (bucket < 0)
        return 0;
    return bucket < FY_BUCKETS ? (uint32_t)bucket : FY_BUCKETS - 1;
}

static inline double counted(const fy_buckets *buckets, double load)
{
    return load > buckets->floor ? load : 0;
}

static void weigh(fy_buckets *buckets, ferry_schedulable *item, double mark)
{
    buckets->load += mark - item->mark;
    buckets->loaded += mark > 0;
    buckets->loaded -= item->mark > 0;
    item->mark = mark;
}

static void link_last(fy_buckets *buckets, ferry_schedulable *item, uint32_t at)
{
    fy_bucket *bucket = &buckets->buckets[at];
    item->place = (uint8_t)at;
    item->prev = bucket->last;
    item->next = NULL;
    if (bucket->last == NULL)
        bucket->first = item;
    else
        bucket->last->next = item;
    bucket->last = item;
    buckets->used[at / 64] |= UINT64_C(1) << at % 64;
}

static void unlink_from(fy_buckets *buckets, ferry_schedulable *item)
{
    fy_bucket *bucket = &buckets->buckets[item->place];
    ferry_schedulable *prev = item->prev, *next = item->next;
    item->prev = NULL;
    item->next = NULL;
    if (next == NULL)
        bucket->last = prev;
    else
        next->prev = prev;
    if (prev == NULL)
        bucket->first = next;
    else
        prev->next = next;
    if (bucket->first == NULL)
        buckets->used[item->place / 64] &= ~(UINT64_C(1) << item->place % 64);
}

bool fy_buckets_add(fy_buckets *buckets, ferry_schedulable *item)
{
    if (item->pending == 0)
        return false;
    bool is_new = !item->queued;
    uint32_t at = bucket_of(buckets, item->load);
    if (is_new) {
        item->queued = true;
        item->mark = 0;
        buckets->count++;
        link_last(buckets, item, at);
    } else if (at != item->place) {
        unlink_from(buckets, item);
        link_last(buckets, item, at);
    }
    weigh(buckets, item, counted(buckets, item->load));
    return is_new;
}

void fy_buckets_remove(fy_buckets *buckets, ferry_schedulable *item)
{
    if (!item->queued)
        return;
    item->queued = false;
    unlink_from(buckets, item);
    weigh(buckets, item, 0);
    /* Sums of fractions do not come back to zero by themselves. */
    if (--buckets->count == 0 || buckets->load < 0)
        buckets->load = 0;
}

static const fy_bucket *heaviest(const fy_buckets *buckets)
{
    uint64_t low = buckets->used[0], high = buckets->used[1];
    if (high != 0)
        return &buckets->buckets[127 - __builtin_clzll(high)];
    return low != 0 ? &buckets->buckets[63 - __builtin_clzll(low)] : NULL;
}

ferry_schedulable *fy_buckets_first(const fy_buckets *buckets)
{
    const fy_bucket *bucket = heaviest(buckets);
    return bucket != NULL ? bucket->first : NULL;
}

ferry_schedulable *fy_buckets_last(const fy_buckets *buckets)
{
    const fy_bucket *bucket = heaviest(buckets);
    if (bucket == NULL)
        return NULL;
    ferry_schedulable *best = bucket->last;
    if (buckets->in_order)
        for (ferry_schedulable *item = best->prev; item != NULL; item = item->prev)
            if (item->mark > best->mark)
                best = item;
    return best;
}

__attribute__((cold)) ferry_schedulable *fy_buckets_ahead(const fy_buckets *buckets,
                                                          const ferry_schedulable *after)
{
    uint32_t at = after == NULL ? FY_BUCKETS : after->place;
    ferry_schedulable *item = after == NULL ? NULL : after->next;
    while (item == NULL && at-- > 0)
        item = buckets->buckets[at].first;
    return item;
}

static bool has_one_bucket(const fy_buckets *buckets)
{
    uint64_t low = buckets->used[0], high = buckets->used[1], one = low | high;
    return (one & (one - 1)) == 0 && (low == 0 || high == 0);
}

/* The bucket to take from: after many turns of the heaviest one, each other bucket in its turn. At
 * least one bucket is not empty. */
static const fy_bucket *another(fy_buckets *buckets)
{
    buckets->passed = 0;
    uint32_t from = ++buckets->turn % FY_BUCKETS;
    uint64_t mask = UINT64_MAX << from % 64;
    for (uint32_t at = from / 64;; mask = UINT64_MAX, at = (at + 1) % FY_BUCKET_WORDS)
        if ((buckets->used[at] & mask) != 0)
            return &buckets->buckets[64 * at + (uint32_t)__builtin_ctzll(buckets->used[at] & mask)];
}

ferry_schedulable *fy_buckets_pop(fy_buckets *buckets)
{
    if (buckets->count == 0)
        return NULL;
    if (has_one_bucket(buckets))
        buckets->passed = 0;
    else
        buckets->passed++;
    const fy_bucket *bucket = buckets->passed <= HEAVY_TURNS ? heaviest(buckets) : another(buckets);
    ferry_schedulable *item = bucket->first;
    fy_buckets_remove(buckets, item);
    return item;
}

__attribute__((cold)) void fy_buckets_set_order(fy_buckets *buckets, bool in_order)
{
    fy_buckets old = *buckets;
    *buckets = (fy_buckets){.in_order = in_order};
    for (ferry_schedulable *item; (item = fy_buckets_pop(&old)) != NULL;)
        fy_buckets_add(buckets, item);
}
