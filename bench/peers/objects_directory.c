/* The directory: finding an object's rank and noting where one has gone, with a million objects.
 *
 *   lookup   a read of one of as many slots, chosen in the same way
 *   update   a write of one */
#include <stdlib.h>

#include "object/object.h"
#include "peers/objects_side.h"

enum { ENTRIES = 1000000 };

/* Names of objects that rank 1 made, in an order that no cache foresees. */
static ferry_object name_at(uint64_t i)
{
    uint64_t number = i * 7919 % ENTRIES + 1;
    return (ferry_object){(uint64_t)1 << (64 - FY_CREATOR_BITS) | (uint64_t)1 << 32 | number};
}

static void fill_directory(state *s)
{
    fy_entry *entry;
    for (uint64_t i = 0; i < ENTRIES; i++)
        bench_check(s->f, fy_entry_make(fy_objects_of(s->f), name_at(i), &entry));
}

static double lookup(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t start = 0;
    if (s->rank)
        return 0;
    fill_directory(s);
    for (int pass = 0; pass < 2; pass++) {
        start = bench_now();
        for (uint64_t i = 0; i < job->count; i++)
            s->sum += (uint64_t)fy_entry_find(fy_objects_of(s->f), name_at(i))->guess;
    }
    return (double)(bench_now() - start);
}

static double update(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t start = 0;
    fy_frame frame = {.kind = FY_KIND_LOCATION, .word_count = 2};
    if (s->rank)
        return 0;
    fill_directory(s);
    for (int pass = 0; pass < 2; pass++) {
        start = bench_now();
        for (uint64_t i = 0; i < job->count; i++) {
            frame.words[0] = name_at(i).word;
            frame.words[1] = ++s->arrived & UINT32_MAX;
            fy_location_frame(s->f, 1, &frame);
        }
    }
    return (double)(bench_now() - start);
}

static fy_entry *slots_of(state *s)
{
    if (!s->slots)
        s->slots = calloc(ENTRIES + 1, sizeof(fy_entry));
    if (!s->slots)
        exit(1);
    return s->slots;
}

static double read_slots(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t start = 0;
    fy_entry *slots = slots_of(s);
    for (int pass = 0; pass < 2; pass++) {
        start = bench_now();
        for (uint64_t i = 0; i < job->count; i++)
            s->sum += (uint64_t)slots[name_at(i).word & UINT32_MAX].guess;
    }
    return (double)(bench_now() - start);
}

static double write_slots(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t start = 0;
    fy_entry *slots = slots_of(s);
    for (int pass = 0; pass < 2; pass++) {
        start = bench_now();
        for (uint64_t i = 0; i < job->count; i++) {
            fy_entry *slot = &slots[name_at(i).word & UINT32_MAX];
            slot->guess = 1;
            slot->movement++;
        }
    }
    return (double)(bench_now() - start);
}

void bench_objects_directory(state *s, bench_team *team, bool reference)
{
    (void)s;
    team->kinds[BENCH_LOOKUP] = reference ? read_slots : lookup;
    team->kinds[BENCH_UPDATE] = reference ? write_slots : update;
}
