/* Gaps: messages that a rank was forwarding when it died leave gaps in the order of others.
 *
 * A message that a dead rank was to forward is missing, and later messages of its sender wait for
 * it at the object. No rank can tell a lost message from a slow one, and no rank reports the loss
 * of a message without an operation. So once a rank has died, early queued messages are looked at
 * from time to time. Messages that still wait at a second look run. If a message that should have
 * come before them comes after all, it fails with FERRY_EPEER at its sender.
 *
 * Messages may also wait for an object that has ended, whose home would say so, and is gone
 * (ends.c). They fail after a second. */
#include "core/control.h"
#include "object/delivery.h"
#include "object/ends.h"
#include "object/entry.h"
#include "object/object.h"

/* As long as peer.c waits for what a dead peer has sent. */
enum { GAP_TIMEOUT_NS = 20 * 1000 * 1000 };

void fy_gaps_watch(ferry *f)
{
    fy_objects *objects = fy_objects_of(f);
    fy_layer_due(f, FY_LAYER_OBJECT);
    if (objects->after_death && objects->gap_ns == 0)
        objects->gap_ns = objects->port->ops->host.now(objects->port) + GAP_TIMEOUT_NS;
}

void fy_gaps_rank_died(ferry *f)
{
    fy_objects_of(f)->after_death = true;
    fy_gaps_watch(f);
}

static const fy_queued_message *overdue_of(const fy_record *record)
{
    const fy_queued_message *queued = record->early.head;
    while (queued != NULL && !queued->overdue)
        queued = queued->next;
    return queued;
}

/* Gives up the messages that are missing before `last`, an early message. The early messages of the
 * same origin up to `last`, and those that follow it without a gap, become pending, in order. */
static void record_release(ferry *f, fy_record *record, const fy_queued_message *last)
{
    int origin = last->envelope.origin;
    uint32_t sequence = last->envelope.sequence;
    uint32_t *expected = fy_sources_of(&record->sources, origin); /* exists: `last` waits */
    for (const fy_queued_message *queued = record->early.head; queued != NULL;) {
        if (queued->envelope.origin != origin) {
            queued = queued->next;
            continue;
        }
        if ((int32_t)(queued->envelope.sequence - sequence) > 0)
            return;
        *expected = queued->envelope.sequence;
        fy_record_add_early(f, record, origin, expected);
        queued = record->early.head;
    }
}

/* Makes the overdue early messages of an object pending, without the messages missing before them.
 * Marks the other early messages as overdue. Returns whether there were early messages. */
static bool record_close_gaps(ferry *f, fy_record *record)
{
    fy_control_lock(f);
    bool waits = record->early.count != 0;
    if (fy_record_is_here(record)) {
        for (const fy_queued_message *queued; (queued = overdue_of(record)) != NULL;)
            record_release(f, record, queued);
        for (fy_queued_message *queued = record->early.head; queued != NULL; queued = queued->next)
            queued->overdue = true;
        if (!record->scheduled)
            fy_record_make_ready(fy_objects_of(f), record);
    }
    fy_control_unlock(f);
    return waits;
}

int fy_gaps_close(ferry *f)
{
    fy_objects *objects = fy_objects_of(f);
    if (objects->port->ops->host.now(objects->port) < objects->gap_ns)
        return 0;
    bool waits = false;
    size_t index = 0;
    for (fy_entry *entry; (entry = fy_table_next(&objects->directory, &index)) != NULL;) {
        if (entry->record != NULL && fy_entry_doubt(f, entry))
            waits = true;
        if (entry->record != NULL && record_close_gaps(f, entry->record))
            waits = true;
    }
    objects->gap_ns = 0;
    if (waits)
        fy_gaps_watch(f);
    return 1;
}
