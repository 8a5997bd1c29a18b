#include <stdlib.h>

#include "object/object.h"

int fy_entry_make(fy_objects *objects, ferry_object object, fy_entry **out)
{
    void *slot = NULL;
    size_t count = objects->directory.count;
    int error = fy_table_insert(&objects->directory, object.word, &slot);
    if (error != 0)
        return error;
    fy_entry *entry = slot;
    if (objects->directory.count != count)
        entry->guess = fy_object_creator(object);
    *out = entry;
    return 0;
}

/* The creator's tombstone is the name itself. A rank that had the object keeps the entry: a message
 * that still looks for it here must fail, not wait for its arrival. All others forget, and learn
 * from the creator if they ask again. */
void fy_entry_kill(fy_objects *objects, fy_entry *entry)
{
    ferry_object object = {entry->object};
    bool own = fy_object_creator(object) == objects->rank;
    if (own && fy_names_alive(&objects->names, object))
        fy_names_end(&objects->names, object);
    if (own || !entry->hosted) {
        fy_table_remove(&objects->directory, entry);
        return;
    }
    entry->record = NULL;
    entry->dead = 1;
}

fy_record *fy_record_create(ferry_object object)
{
    fy_record *record = calloc(1, sizeof *record);
    if (record == NULL)
        return NULL;
    fy_list_init(&record->link);
    record->state = FY_AWAITED;
    record->target = -1;
    record->object = object;
    record->item.object = object;
    return record;
}

static void letters_free(fy_objects *objects, fy_letters *letters)
{
    for (fy_letter *letter; (letter = fy_letters_pop(letters)) != NULL;)
        fy_letter_destroy(&objects->letters, letter);
}

void fy_record_destroy(fy_objects *objects, fy_record *record)
{
    letters_free(objects, &record->pending);
    letters_free(objects, &record->early);
    letters_free(objects, &record->late);
    fy_sources_fini(&record->sources);
    free(record->affinity);
    free(record);
}
