/* Directory: what this rank knows of objects that are elsewhere. ends.c has how it forgets them.
 *
 * A rank makes an entry when it sends to an object, or when the object visits it. It also makes one
 * when it is told where the object is (location.c), if the protocol has `everyone`, and as the home
 * of an object after a death. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "object/entry.h"
#include "object/store_calls.h"

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

/* Sets the fields one by one, which is fast: the first message of an object that arrives waits for
 * this. */
static void directory_fill(fy_record *record, ferry_object object)
{
    fy_list_init(&record->link);
    record->state = FY_AWAITED;
    record->scheduled = record->out = record->placed = record->handed = record->destroy_pending =
        record->worked = record->due = record->travels = record->returned = false;
    record->doubts = 0;
    record->target = -1;
    record->from = 0;
    record->movement = 0;
    record->object = object;
    record->type = NULL;
    record->type_index = 0;
    record->data = NULL;
    record->stored = NULL;
    record->left_ns = record->pack_ns = 0;
    record->load = 0;
    record->unasked = 0;
    record->affinity = NULL;
    record->item = (ferry_schedulable){.object = object};
    record->sources.many = NULL;
    record->sources.capacity = record->sources.count = 0;
    record->pending = record->early = record->late = (fy_queued_list){0};
}

fy_record *fy_record_create(fy_objects *objects, ferry_object object)
{
    fy_record *record = (fy_record *)(void *)fy_list_pop(&objects->spares);
    if (record != NULL)
        objects->spare_count--;
    else
        record = fy_malloc(sizeof *record);
    if (record != NULL)
        directory_fill(record, object);
    return record;
}

static __attribute__((noinline)) void queued_free(fy_objects *objects, fy_queued_list *messages)
{
    for (fy_queued_message *queued; (queued = fy_queued_list_pop(messages)) != NULL;)
        fy_queued_destroy(&objects->messages, queued);
}

void fy_record_destroy(fy_objects *objects, fy_record *record)
{
    if (record->stored != NULL)
        objects->store->gone(record);
    if (record->pending.count != 0)
        queued_free(objects, &record->pending);
    if (record->early.count != 0)
        queued_free(objects, &record->early);
    if (record->late.count != 0)
        queued_free(objects, &record->late);
    if (record->sources.many != NULL)
        fy_sources_fini(&record->sources);
    if (record->affinity != NULL)
        free(record->affinity);
    if (objects->spare_count == FY_SPARES_MAX) {
        free(record);
        return;
    }
    objects->spare_count++;
    fy_list_insert(&objects->spares, &record->link);
}
