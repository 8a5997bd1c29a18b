/* Carry: objects that the program takes from one rank to another by a transport of its own.
 *
 * For the directory it is a migration like any other: what the info has is a passage without data.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "object/object.h"
#include "object/passage.h"

/* The object leaves, as after a migration by Ferry. */
static void depart(ferry *f, fy_record *record, int rank)
{
    fy_objects *objects = fy_objects_of(f);
    fy_control_lock(f);
    record->target = rank;
    record->handed = true;
    record->state = FY_DEPARTED;
    fy_list_insert(&objects->done, &record->link);
    /* release: pairs with the acquire in fy_object_layer's progress. */
    atomic_store_explicit(&objects->mail, true, memory_order_release);
    fy_control_unlock(f);
    (void)fy_done_drain(f);
}

int ferry_object_uninstall(ferry *f, ferry_object object, int rank, ferry_move_info *info,
                           void **data)
{
    const fy_objects *objects = fy_objects_of(f);
    unsigned long long name = object.word;
    if (rank < 0 || rank >= objects->ranks || rank == objects->rank)
        return fy_fail(f, FERRY_EINVAL, "object_uninstall: rank %d of %d is not another one", rank,
                       objects->ranks);
    if (info == NULL || data == NULL)
        return fy_fail(f, FERRY_EINVAL, "object_uninstall: the place for the %s is missing",
                       info == NULL ? "information" : "data");
    fy_record *record = fy_record_here(f, object);
    if (record != NULL && objects->running == record)
        return fy_fail(f, FERRY_ESTATE, "object_uninstall: a handler of object %016llx runs", name);
    if (record == NULL || !fy_record_unlink(f, record))
        return fy_fail(f, FERRY_ENOENT, "object_uninstall: object %016llx is not on rank %d", name,
                       objects->rank);
    size_t size_bytes = fy_passage_bytes(record, 0);
    void *bytes = fy_malloc(size_bytes);
    if (bytes == NULL) {
        fy_record_rest(f, record);
        return fy_fail(f, FERRY_ENOMEM, "object_uninstall: no memory for %zu bytes", size_bytes);
    }
    if (objects->letters.tokens != 0)
        fy_holdings_mark(f, record);
    (void)fy_passage_write(record, size_bytes, 0, true, bytes);
    *info = (ferry_move_info){.bytes = bytes, .size_bytes = size_bytes};
    *data = record->data;
    depart(f, record, rank);
    return 0;
}

int ferry_object_install(ferry *f, const ferry_move_info *info, void *data, int source)
{
    const fy_objects *objects = fy_objects_of(f);
    const void *bytes = info == NULL ? NULL : info->bytes;
    if (bytes == NULL || data == NULL || source < 0 || source >= objects->ranks)
        return fy_fail(f, FERRY_EINVAL, "object_install: info at %p, data at %p, source %d", bytes,
                       data, source);
    fy_arrival arrival = {
        .source = source, .given = data, .data = info->bytes, .size_bytes = info->size_bytes};
    int error = fy_arrival_install(f, &arrival);
    if (arrival.record != NULL)
        fy_record_destroy(fy_objects_of(f), arrival.record);
    const char *why = error == FERRY_ENOMEM    ? "no memory"
                      : error == FERRY_ENOTSUP ? "its kind is not registered here"
                                               : "no object that is due here";
    return error == 0 ? 0
                      : fy_fail(f, error == FERRY_ENOTSUP ? FERRY_EAGAIN : error,
                                "object_install: %zu bytes of info from rank %d: %s",
                                info->size_bytes, source, why);
}
