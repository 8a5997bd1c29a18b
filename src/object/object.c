#include "object/object.h"
#include "core/control.h"
#include "core/fail.h"
#include "core/handler.h"
#include "object/cost.h"
#include "object/entry.h"
#include "object/execution.h"
#include "object/flat.h"
#include "object/migration_frame.h"
#include "object/moves.h"
#include "object/store_calls.h"

#include <stdio.h>
#include <stdlib.h>

static int type_read(ferry *f, const ferry_object_ops *given, fy_type *type)
{
    ferry_object_ops *ops = &type->ops;
    int error = fy_read_sized(f, "object_type_register: ferry_object_ops", given, ops, sizeof *ops);
    if (error != 0)
        return error;
    if ((ops->flags & ~FERRY_OBJECT_SHARED) != 0)
        return fy_fail(f, FERRY_EINVAL,
                       "object_type_register: flags are 0x%x, expected FERRY_OBJECT_SHARED or 0",
                       ops->flags);
    type->plain =
        ops->flags == 0 && ops->pack == NULL && ops->unpack == NULL && ops->destroy == NULL;
    (void)snprintf(type->name, sizeof type->name, "%s", ops->name != NULL ? ops->name : "object");
    if (!fy_flat_fill(ops))
        return fy_fail(f, FERRY_EINVAL, "object_type_register: \"%s\" has %s", type->name,
                       ops->pack != NULL ? "pack, expected unpack too"
                                         : "no size, expected flat_bytes or packed_size");
    return 0;
}

int fy_type_register_as(ferry *f, const ferry_object_ops *ops, uint16_t number)
{
    fy_objects *objects = fy_objects_of(f);
    fy_type type = {0};
    int error = type_read(f, ops, &type);
    if (error == 0 && number >= FY_TYPES_MAX)
        error = fy_fail(f, FERRY_ENOMEM, "object_type_register: more than %d types", FY_TYPES_MAX);
    if (error != 0)
        return error;
    while (objects->type_count <= number)
        objects->types[objects->type_count++].ops.size = 0;
    objects->types[number] = type;
    objects->types[number].ops.name = objects->types[number].name;
    fy_unregistered_retry(f);
    return 0;
}

int ferry_object_type_register(ferry *f, const ferry_object_ops *ops, ferry_object_type *out)
{
    if (ops == NULL || out == NULL)
        return fy_fail(f, FERRY_EINVAL, "object_type_register: the %s missing",
                       ops == NULL ? "functions are" : "result is");
    uint16_t number = fy_objects_of(f)->type_count;
    int error = fy_type_register_as(f, ops, number);
    if (error == 0)
        out->index = number;
    return error;
}

void fy_type_watch(ferry *f, ferry_object_type type, fy_leaving_fn *leaving)
{
    fy_objects_of(f)->types[type.index].leaving = leaving;
}

int ferry_object_handler_register(ferry *f, const char *name, ferry_object_fn *fn,
                                  ferry_handler *out)
{
    return fy_handler_add(f, name, FY_HANDLER_OBJECT, (fy_any_fn *)fn, out);
}

static int create(ferry *f, ferry_object_type type, void *data, ferry_object *out)
{
    fy_objects *objects = fy_objects_of(f);
    fy_entry *entry = NULL;
    ferry_object object;
    int error = fy_names_give(&objects->names, &object);
    if (error != 0)
        return error;
    error = fy_entry_make(objects, object, &entry);
    if (error != 0)
        goto end_name;
    fy_record *record = fy_record_create(objects, object);
    if (record == NULL)
        goto remove_entry;
    record->state = FY_RESTING;
    record->type = &objects->types[type.index];
    record->type_index = type.index;
    record->data = data;
    fy_data_keep(objects, record);
    entry->record = record;
    entry->hosted = 1;
    objects->count++;
    if (objects->costs != NULL)
        fy_trail_created(objects, object);
    *out = object;
    return 0;
remove_entry:
    error = FERRY_ENOMEM;
    fy_table_remove(&objects->directory, entry);
end_name:
    fy_names_end(&objects->names, object);
    return error;
}

int ferry_object_create(ferry *f, ferry_object_type type, void *data, ferry_object *out)
{
    if (!fy_type_is_known(fy_objects_of(f), type.index))
        return fy_fail(f, FERRY_EINVAL, "object_create: type %u is not registered", type.index);
    if (data == NULL || out == NULL)
        return fy_fail(f, FERRY_EINVAL, "object_create: the %s missing",
                       data == NULL ? "data are" : "result is");
    int error = create(f, type, data, out);
    return error == 0 ? 0 : fy_fail(f, error, "object_create: no memory");
}

fy_object_state fy_record_state(ferry *f, const fy_record *record)
{
    if (!record->scheduled)
        return record->state;
    fy_control_lock(f);
    fy_object_state state = record->state;
    fy_control_unlock(f);
    return state;
}

fy_record *fy_record_here(ferry *f, ferry_object object)
{
    const fy_objects *objects = fy_objects_of(f);
    if (objects->running != NULL && objects->running->object.word == object.word)
        return objects->running;
    const fy_entry *entry = object.word == 0 ? NULL : fy_entry_find(objects, object);
    fy_record *record = entry == NULL ? NULL : entry->record;
    if (record == NULL)
        return NULL;
    fy_object_state state = fy_record_state(f, record);
    return state == FY_RESTING || state == FY_RUNNING || state == FY_PINNED ? record : NULL;
}

__attribute__((cold)) int fy_fail_absent(ferry *f, const char *call, ferry_object object,
                                         const fy_record *record)
{
    return fy_fail(f, FERRY_ENOENT, "%s: object %016llx is %s rank %d", call,
                   (unsigned long long)object.word,
                   record != NULL && record->destroy_pending ? "destroyed already on" : "not on",
                   ferry_rank(f));
}

bool fy_record_unlink(ferry *f, fy_record *record)
{
    if (!record->scheduled) {
        fy_list_remove(&record->link);
        record->state = FY_MIGRATING;
        return true;
    }
    fy_control_lock(f);
    bool resting = record->state == FY_RESTING;
    bool pinned = record->state == FY_PINNED;
    if (resting)
        fy_objects_of(f)->watch->remove(f, record);
    if (pinned)
        fy_list_remove(&record->link);
    if (resting || pinned)
        record->state = FY_MIGRATING;
    fy_control_unlock(f);
    return resting || pinned;
}

int ferry_object_destroy(ferry *f, ferry_object object)
{
    fy_record *record = fy_record_here(f, object);
    if (record != NULL && !record->destroy_pending && fy_objects_of(f)->running == record) {
        record->destroy_pending = true;
        return 0;
    }
    if (record == NULL || record->destroy_pending || !fy_record_unlink(f, record))
        return fy_fail_absent(f, "object_destroy", object, record);
    fy_record_end(f, record);
    return 0;
}

/* Keeps a resting object from being migrated while the application has its data. False when it has
 * begun to leave. */
static bool pin(ferry *f, fy_record *record)
{
    fy_objects *objects = fy_objects_of(f);
    if (!record->scheduled || !objects->helped)
        return true;
    fy_control_lock(f);
    bool resting = record->state == FY_RESTING;
    bool stays = resting || record->state == FY_RUNNING || record->state == FY_PINNED;
    if (resting) {
        objects->watch->remove(f, record);
        record->state = FY_PINNED;
        fy_list_insert(&objects->pinned, &record->link);
        fy_layer_due(f, FY_LAYER_OBJECT);
    }
    fy_control_unlock(f);
    return stays;
}

void *ferry_object_data(ferry *f, ferry_object object)
{
    fy_record *record = fy_record_here(f, object);
    if (record != NULL && record->out)
        return fy_objects_of(f)->store->absent(f, object);
    return record != NULL && pin(f, record) ? record->data : NULL;
}

int ferry_object_locate(ferry *f, ferry_object object, int *rank)
{
    const fy_objects *objects = fy_objects_of(f);
    if (rank == NULL)
        return fy_fail(f, FERRY_EINVAL, "object_locate: the result is missing");
    if (!fy_object_is_name(objects, object))
        return fy_fail(f, FERRY_EINVAL, "object_locate: %016llx names no object",
                       (unsigned long long)object.word);
    int place = fy_object_place(objects, object, fy_entry_find(objects, object));
    if (place < 0)
        return fy_fail(f, FERRY_ENOENT, "object_locate: object %016llx does not exist",
                       (unsigned long long)object.word);
    *rank = place;
    return 0;
}

bool fy_object_next(ferry *f, ferry_object_type type, size_t *index, ferry_object *out)
{
    const fy_objects *objects = fy_objects_of(f);
    for (const fy_entry *entry; (entry = fy_table_next(&objects->directory, index)) != NULL;)
        if (entry->record != NULL && entry->record->type_index == type.index) {
            *out = (ferry_object){entry->object};
            return true;
        }
    return false;
}

size_t ferry_object_count(const ferry *f)
{
    return fy_objects_of(f)->count;
}
