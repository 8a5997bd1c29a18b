/* Holding: blocks that are objects rest while a mover of their xarrays is in flight on this rank.
 *
 * A neighbour may have ended the same movement already, and its handlers may send messages to
 * blocks here. A handler must not see a grid that the mover writes, and the block must not leave.
 * So the start of a mover takes the objects of the blocks here out of their lists, as if they were
 * leaving. Their messages wait, and neither the program nor a scheduler moves them. When no mover
 * of the xarrays is in flight, all come back with their messages. The mover itself needs no message
 * to an object, so it ends. */
#include <stdlib.h>

#include <ferry/memory.h>

#include "core/fail.h"
#include "mover/bind/blocks.h"
#include "mover/geometry/array.h"
#include "object/calls.h"
#include "object/entry.h"

static fy_record *record_of(const ferry_blocks *set, int32_t block)
{
    const ferry_object object = ferry_blocks_object(set, block);
    const fy_entry *entry =
        ferry_object_is_none(object) ? NULL : fy_entry_find(fy_objects_of(set->f), object);
    return entry != NULL ? entry->record : NULL;
}

/* Whether the object of a block is on this rank, and its handler does not run. RETURNED: it was
 * held a moment ago, or could not be sent. */
static bool is_at_rest(const ferry_blocks *set, int32_t block)
{
    const fy_record *record = record_of(set, block);
    if (record == NULL)
        return false;
    const fy_object_state state = fy_objects_of(set->f)->calls->state(set->f, record);
    return state == FY_RESTING || state == FY_PINNED || state == FY_RETURNED;
}

/* Takes an object that is RETURNED out of the list `done`. */
static bool take_returned(ferry *f, fy_record *record)
{
    const fy_objects *objects = fy_objects_of(f);
    objects->calls->lock(f);
    const bool returned = record->state == FY_RETURNED;
    if (returned) {
        fy_list_remove(&record->link);
        record->state = FY_MIGRATING;
    }
    objects->calls->unlock(f);
    return returned;
}

static bool hold(ferry_blocks *set, int32_t block)
{
    fy_record *record = record_of(set, block);
    if (!is_at_rest(set, block) ||
        (!take_returned(set->f, record) && !fy_objects_of(set->f)->calls->unlink(set->f, record)))
        return false;
    fy_list_insert(&set->held, &record->link);
    return true;
}

/* Lets an object rest again. If messages have come for it, or if it was on its way when it was
 * held, the next poll does that. */
static void let_rest(ferry *f, fy_record *record)
{
    const fy_object_calls *calls = fy_objects_of(f)->calls;
    if (record->target < 0 && record->late.count == 0 && !record->worked) {
        calls->rest(f, record);
        return;
    }
    calls->lock(f);
    calls->set_down(f, record, FY_RETURNED);
    calls->unlock(f);
}

static bool concerns(const ferry_blocks *set, const ferry_mover *m)
{
    return fy_arrays_have(set->arrays, m->plan.source) ||
           fy_arrays_have(set->arrays, m->plan.target);
}

static int fail_away(ferry *f, int32_t block)
{
    return fy_fail(f, FERRY_ESTATE,
                   "mover_start: block %d has moved, or a message has come to it, since the last "
                   "ferry_blocks_settle; settle, or call ferry_barrier before messages to blocks",
                   block);
}

void fy_blocks_release_held(ferry_blocks *set)
{
    for (fy_link *link; (link = fy_list_pop(&set->held)) != NULL;)
        let_rest(set->f, (fy_record *)(void *)link);
}

int fy_blocks_hold_all(ferry_blocks *set)
{
    const ferry_xarray *x = set->items[0];
    if (!fy_list_empty(&set->held))
        return 0;
    for (size_t i = 0; i < x->local_count; i++)
        if (!hold(set, x->local[i])) {
            fy_blocks_release_held(set);
            return fail_away(set->f, x->local[i]);
        }
    return 0;
}

int fy_blocks_hold(const ferry_mover *m)
{
    int error = 0;
    for (ferry_blocks *set = fy_movers_of(m->plan.f)->blocks; set != NULL && error == 0;
         set = set->next)
        if (concerns(set, m))
            error = fy_blocks_hold_all(set);
    if (error)
        fy_blocks_let_go(m);
    return error;
}

void fy_blocks_let_go(const ferry_mover *m)
{
    for (ferry_blocks *set = fy_movers_of(m->plan.f)->blocks; set != NULL; set = set->next) {
        if (!concerns(set, m) || fy_mover_any_in_flight(set->f, set->arrays))
            continue;
        fy_blocks_release_held(set);
        for (; set->kept_count > 0; set->kept_count--)
            fy_block_free(set->f, set->kept[set->kept_count - 1]);
    }
}

void fy_block_sets_leave(const fy_movers *movers)
{
    for (ferry_blocks *set = movers->blocks; set != NULL; set = set->next)
        fy_blocks_release_held(set);
}

int fy_blocks_away(const ferry_mover *m)
{
    for (const ferry_blocks *set = fy_movers_of(m->plan.f)->blocks; set != NULL; set = set->next)
        for (size_t i = 0; concerns(set, m) && i < set->items[0]->local_count; i++)
            if (!is_at_rest(set, set->items[0]->local[i]))
                return fail_away(set->f, set->items[0]->local[i]);
    return fy_fail(m->plan.f, FERRY_ESTATE,
                   "mover_start: blocks of its xarrays may be elsewhere; "
                   "call ferry_blocks_settle first");
}
