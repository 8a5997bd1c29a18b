/* Messages of steps that need no task: they become part of their element where they arrive.
 *
 * The helper packs an element only after it has marked it as leaving, under the lock. So an element
 * that is here may be changed under the lock, or while it runs. A message that has to wait for its
 * turn, or comes while the element moves, waits among the element's tasks. Later ones follow it
 * there, so that the order of their sender is kept. */
#include "collection/state.h"
#include "object/calls.h"
#include "object/object.h"

/* Whether no message waits for the element, but for its own that runs a step. While costs are
 * counted, each message has a task. */
static bool may_keep(const fy_objects *objects, const fy_record *record,
                     const fy_envelope *envelope)
{
    const fy_queued_list *pending = &record->pending;
    uint16_t proceed = fy_collections_of(objects->f)->proceed.index;
    bool alone = pending->count == 0 ||
                 (pending->count == 1 && pending->head->message.handler.index == proceed);
    return alone && record->early.count == 0 && envelope->hops == 0 && envelope->op == 0 &&
           objects->costs == NULL && fy_record_is_here(record);
}

static bool step_keep(ferry *f, fy_record *record, const fy_envelope *envelope,
                      const ferry_message *message)
{
    const fy_objects *objects = fy_objects_of(f);
    bool locks = record->scheduled && objects->running != record;
    if (locks)
        objects->calls->lock(f);
    uint32_t *expected = may_keep(objects, record, envelope)
                             ? fy_sources_of(&record->sources, envelope->origin)
                             : NULL;
    bool kept = expected != NULL && *expected == envelope->sequence &&
                fy_step_add(fy_element_of(record->data), envelope->origin, message);
    if (kept)
        ++*expected;
    if (locks)
        objects->calls->unlock(f);
    fy_stats(f)->messages_handled += kept;
    return kept;
}

static void kept(ferry *f, fy_record *record)
{
    (void)f;
    fy_step_settle(fy_element_of(record->data));
}

void fy_keeper_start(ferry *f)
{
    const fy_collections *all = fy_collections_of(f);
    fy_objects_of(f)->keeper = (fy_keeper){
        .handler = all->step.index, .silent = all->proceed.index, .keep = step_keep, .kept = kept};
}
