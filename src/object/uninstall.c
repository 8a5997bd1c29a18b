/* Uninstall: objects that the program takes from one rank to another by its own transport.
 *
 * The directory treats this as any other migration. The info that the program gets is a migration
 * frame without data, followed by a seal. The seal lets the target recognise an info that the
 * program's transport has damaged, or has brought to a wrong rank. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mix.h"
#include "core/control.h"
#include "core/fail.h"
#include "core/membership.h"
#include "object/delivery.h"
#include "object/entry.h"
#include "object/execution.h"
#include "object/migration_frame.h"
#include "object/moves.h"
#include "object/object.h"
#include "object/store_calls.h"

typedef struct seal {
    int32_t source, target;
    uint64_t sum; /* of the migration frame and both ranks */
} seal;

/* A hash of `size_bytes` bytes, a multiple of 8, at any alignment. */
static uint64_t sum_of(const void *bytes, size_t size_bytes, int source, int target)
{
    uint64_t word, sum = fy_mix((uint64_t)(uint32_t)source << 32 | (uint32_t)target, size_bytes);
    for (size_t at = 0; at < size_bytes; at += sizeof word) {
        memcpy(&word, (const unsigned char *)bytes + at, sizeof word);
        sum = fy_mix(sum, word);
    }
    return sum;
}

/* Whether `info` is of an object that goes from `source` to this rank. If so, gives the length of
 * its migration frame. */
static int unseal(ferry *f, const ferry_move_info *info, int source, size_t *size_bytes)
{
    seal label;
    size_t length = info->size_bytes - sizeof label;
    bool whole = info->size_bytes >= sizeof label && length % 8 == 0;
    if (whole)
        memcpy(&label, (const unsigned char *)info->bytes + length, sizeof label);
    if (!whole || label.sum != sum_of(info->bytes, length, label.source, label.target))
        return fy_fail(f, FERRY_EINVAL,
                       "object_install: %zu bytes of info, not as object_uninstall gave them",
                       info->size_bytes);
    if (label.source != source || label.target != ferry_rank(f))
        return fy_fail(f, FERRY_EINVAL,
                       "object_install: the object goes from rank %d to rank %d, not from %d to %d",
                       label.source, label.target, source, ferry_rank(f));
    *size_bytes = length;
    return 0;
}

void fy_entry_met(fy_objects *objects, fy_entry *entry)
{
    entry->left = FY_SEEN;
    --objects->carried;
}

void fy_entry_announce(fy_objects *objects, fy_entry *entry)
{
    fy_location_send(objects->f, entry->guess, (ferry_object){entry->object}, FY_PLACE_CARRIED,
                     entry->movement);
    entry->left = FY_ANNOUNCED;
    ++objects->carried;
}

void fy_record_depart(ferry *f, fy_record *record, int rank)
{
    fy_objects *objects = fy_objects_of(f);
    fy_control_lock(f);
    record->target = rank;
    record->handed = true;
    record->state = FY_DEPARTED;
    fy_list_insert(&objects->done, &record->link);
    /* release: pairs with the acquire in fy_object_layer's progress. */
    atomic_store_explicit(&objects->mail, true, memory_order_release);
    fy_layers_signal(objects->f);
    fy_control_unlock(f);
    (void)fy_done_drain(f);
}

int ferry_object_uninstall(ferry *f, ferry_object object, int rank, ferry_move_info *info,
                           void **data)
{
    const fy_objects *objects = fy_objects_of(f);
    if (rank < 0 || rank >= objects->ranks || rank == objects->rank)
        return fy_fail(f, FERRY_EINVAL, "object_uninstall: rank %d of %d is not another one", rank,
                       objects->ranks);
    if (info == NULL || data == NULL)
        return fy_fail(f, FERRY_EINVAL, "object_uninstall: the place for the %s is missing",
                       info == NULL ? "information" : "data");
    if (!fy_peer_takes(f, rank))
        return fy_fail(f, FERRY_EPEER,
                       "object_uninstall: rank %d is not there, or takes no objects", rank);
    fy_record *record = fy_record_here(f, object);
    if (record != NULL && objects->running == record)
        return fy_fail(f, FERRY_ESTATE, "object_uninstall: a handler of object %016llx runs",
                       (unsigned long long)object.word);
    if (record == NULL || !fy_record_unlink(f, record))
        return fy_fail_absent(f, "object_uninstall", object, record);
    if (record->stored != NULL && objects->store->fetch(f, record) != 0) {
        fy_record_rest(f, record);
        return FERRY_ESYSTEM;
    }
    size_t size_bytes = fy_migration_bytes(record, 0);
    unsigned char *bytes = fy_malloc(size_bytes + sizeof(seal));
    if (bytes == NULL) {
        fy_record_rest(f, record);
        return fy_fail(f, FERRY_ENOMEM, "object_uninstall: no memory for %zu bytes", size_bytes);
    }
    if (objects->messages.tokens != 0)
        fy_held_mark(f, record);
    (void)fy_migration_write(record, size_bytes, 0, true, bytes);
    const seal label = {.source = objects->rank,
                        .target = rank,
                        .sum = sum_of(bytes, size_bytes, objects->rank, rank)};
    memcpy(bytes + size_bytes, &label, sizeof label);
    *info = (ferry_move_info){.bytes = bytes, .size_bytes = size_bytes + sizeof label};
    *data = record->data;
    fy_record_depart(f, record, rank);
    return 0;
}

int ferry_object_install(ferry *f, const ferry_move_info *info, void *data, int source)
{
    if (info == NULL || info->bytes == NULL || data == NULL)
        return fy_fail(f, FERRY_EINVAL, "object_install: the %s missing",
                       data == NULL ? "data are" : "information is");
    fy_arrival arrival = {.source = source, .given = data, .data = info->bytes};
    int error = unseal(f, info, source, &arrival.size_bytes);
    if (error != 0)
        return error;
    error = fy_arrival_install(f, &arrival);
    if (arrival.record != NULL)
        fy_record_destroy(fy_objects_of(f), arrival.record);
    const char *why = error == FERRY_ENOMEM    ? "no memory"
                      : error == FERRY_ENOTSUP ? "its type is not registered here"
                                               : "it is not expected here";
    return error == 0 ? 0
                      : fy_fail(f, error == FERRY_ENOTSUP ? FERRY_EAGAIN : error,
                                "object_install: %zu bytes of info from rank %d: %s",
                                info->size_bytes, source, why);
}
