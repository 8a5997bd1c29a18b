/* Gone: what a rank does about objects that it knows at ranks that have gone. Inline, since one
 * layer of the data library alone needs it. */
#ifndef FY_OBJECT_GONE_H
#define FY_OBJECT_GONE_H

#include <ferry/member.h>

#include "object/calls.h"
#include "object/entry.h"

/* Ranks have gone. For objects that were at one, this rank asks the home for a newer place. For
 * layers above whose objects' homes are always told.
 *
 * The rank keeps what it knows, because a movement number never goes back (deliver.c). Messages of
 * others may come here for an object that has been here, or that a departed rank has handed over.
 * If this rank knew less than they, it would wait for the object without end. Its own messages find
 * the home by themselves (send.c). [application thread] */
static inline void fy_entries_ask(const fy_objects *objects)
{
    size_t index = 0;
    for (const fy_entry *entry; (entry = fy_table_next(&objects->directory, &index)) != NULL;) {
        const ferry_object object = {entry->object};
        int home = fy_object_home(objects, object);
        if (entry->record == NULL && !entry->dead && home != objects->rank &&
            ferry_peer_is_gone(objects->f, fy_entry_route(objects, entry)) &&
            !ferry_peer_is_gone(objects->f, home))
            objects->calls->locate(objects->f, home, object, FY_PLACE_ASK, entry->movement);
    }
}

#endif
