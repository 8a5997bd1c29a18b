/* Gone: what a rank does about objects that it knows at ranks that have gone. Inline, since one
 * layer of the data library alone needs it. */
#ifndef FY_OBJECT_GONE_H
#define FY_OBJECT_GONE_H

#include <ferry/member.h>

#include "object/calls.h"
#include "object/entry.h"

/* Ranks have gone. For objects that were at one, this rank asks the home for a newer place if
 * messages of others may come here for the object, since it has been here. Else it forgets the
 * place. For layers above whose objects' homes are always told. [application thread] */
static inline void fy_entries_ask(const fy_objects *objects)
{
    size_t index = 0;
    for (fy_entry *entry; (entry = fy_table_next(&objects->directory, &index)) != NULL;) {
        const ferry_object object = {entry->object};
        int home = fy_object_home(objects, object);
        if (entry->record != NULL || entry->dead || home == objects->rank ||
            !ferry_peer_is_gone(objects->f, fy_entry_route(objects, entry)))
            continue;
        if (entry->hosted && !ferry_peer_is_gone(objects->f, home))
            objects->calls->locate(objects->f, home, object, FY_PLACE_ASK, entry->movement);
        if (entry->hosted)
            continue;
        entry->guess = home;
        entry->movement = 0;
    }
}

#endif
