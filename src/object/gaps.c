/* Gaps: messages that a rank was forwarding when it died leave gaps in the order of others.
 *
 * A message that a dead rank was to forward is missing, and later messages of its sender wait for
 * it at the object. No rank can tell a lost message from a slow one, and no rank reports the loss
 * of a message without an operation. So once a rank has died, early queued messages are looked at
 * from time to time. Messages that still wait at a second look run. If a message that should have
 * come before them comes after all, it fails with FERRY_EPEER at its sender. */
#include "object/delivery.h"
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

void fy_gaps_peer_gone(ferry *f, int rank)
{
    fy_objects *objects = fy_objects_of(f);
    if (objects->port->ops->members.peer(objects->port, rank) != FY_PEER_DEAD)
        return;
    objects->after_death = true;
    fy_gaps_watch(f);
}

int fy_gaps_close(ferry *f)
{
    fy_objects *objects = fy_objects_of(f);
    if (objects->port->ops->host.now(objects->port) < objects->gap_ns)
        return 0;
    bool waits = false;
    size_t index = 0;
    for (fy_entry *entry; (entry = fy_table_next(&objects->directory, &index)) != NULL;)
        if (entry->record != NULL)
            waits |= fy_record_close_gaps(f, entry->record);
    objects->gap_ns = 0;
    if (waits)
        fy_gaps_watch(f);
    return 1;
}
