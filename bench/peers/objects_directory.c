/* The directory: finding an object's rank and noting where one has gone, with a million objects.
 *
 *   lookup   a read of the slot of the same memory where the search begins
 *   update   a write of it
 *
 * Samples go on where the last one ended: all of the directory is used, not what a cache keeps. */
#include <stdlib.h>

#include "object/entry.h"
#include "object/kinds.h"
#include "object/object.h"
#include "peers/objects_side.h"

enum { ENTRIES = 1000000 };

/* In an order that no cache foresees, and in memory, where programs have theirs. Objects that the
 * job has are of other generations. */
static ferry_object names[ENTRIES];

static ferry_object name_of(uint64_t number, uint64_t creators)
{
    uint64_t word = UINT64_C(0x7ff) << 32 | (number / creators + 1);
    return (ferry_object){number % creators << (64 - FY_CREATOR_BITS) | word};
}

/* Makes the directory one of a million objects of `creators` ranks beside the job's own. */
static void fill_directory(state *s, uint64_t creators)
{
    fy_objects *objects = fy_objects_of(s->f);
    fy_entry *entry;
    if (creators == s->creators)
        return;
    for (uint64_t i = 0; i < ENTRIES && s->creators != 0; i++)
        fy_table_remove(&objects->directory, fy_entry_find(objects, names[i]));
    for (uint64_t i = 0; i < ENTRIES; i++) {
        names[i] = name_of(i * 7919 % ENTRIES, creators);
        check(s->f, fy_entry_make(objects, names[i], &entry));
    }
    s->creators = creators;
}

static ferry_object next_name(state *s)
{
    s->asked = s->asked + 1 == ENTRIES ? 0 : s->asked + 1;
    return names[s->asked];
}

static double lookup(void *context, const bench_job *job)
{
    state *s = context;
    if (s->rank)
        return 0;
    fill_directory(s, job->size_bytes);
    uint64_t start = bench_now();
    for (uint64_t i = 0; i < job->count; i++)
        s->sum += (uint64_t)fy_entry_find(fy_objects_of(s->f), next_name(s))->guess;
    return (double)(bench_now() - start);
}

/* The places are another rank, which need not be there. */
static double update(void *context, const bench_job *job)
{
    state *s = context;
    fy_objects *objects = fy_objects_of(s->f);
    fy_frame frame = {.kind = FY_KIND_LOCATION, .word_count = FY_PLACE_WORDS};
    int ranks = objects->ranks;
    if (s->rank)
        return 0;
    fill_directory(s, job->size_bytes);
    objects->ranks = ranks > 1 ? ranks : 2;
    uint64_t start = bench_now();
    for (uint64_t i = 0; i < job->count; i++) {
        frame.words[0] = next_name(s).word;
        frame.words[1] = fy_place_word(1, (uint32_t)++s->arrived);
        fy_location_frame(s->f, 0, &frame);
    }
    uint64_t end = bench_now();
    objects->ranks = ranks;
    /* The last of them, for all: the places that were told were believed. */
    if (fy_entry_find(objects, (ferry_object){frame.words[0]})->movement !=
        (uint32_t)frame.words[1])
        exit(1);
    return (double)(end - start);
}

/* Where the search for an object begins. */
static fy_entry *slot_of(const fy_table *table, ferry_object object)
{
    return (fy_entry *)(void *)fy_table_slot(table, fy_table_home(table, object.word));
}

static double read_slots(void *context, const bench_job *job)
{
    state *s = context;
    const fy_table *table = &fy_objects_of(s->f)->directory;
    fill_directory(s, job->size_bytes);
    uint64_t start = bench_now();
    for (uint64_t i = 0; i < job->count; i++)
        s->sum += (uint64_t)slot_of(table, next_name(s))->guess;
    return (double)(bench_now() - start);
}

static double write_slots(void *context, const bench_job *job)
{
    state *s = context;
    const fy_table *table = &fy_objects_of(s->f)->directory;
    fill_directory(s, job->size_bytes);
    uint64_t start = bench_now();
    for (uint64_t i = 0; i < job->count; i++) {
        fy_entry *slot = slot_of(table, next_name(s));
        slot->guess = 1;
        slot->movement++;
    }
    return (double)(bench_now() - start);
}

void bench_objects_directory(bench_team *team, bool reference)
{
    team->kinds[BENCH_LOOKUP] = reference ? read_slots : lookup;
    team->kinds[BENCH_UPDATE] = reference ? write_slots : update;
}
