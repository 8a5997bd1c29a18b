/* Migration, on the rank where the object arrives.
 *
 * If a helper thread exists, the thread that serves the control lane takes the frame, under the
 * lock, and keeps its block. The application thread installs it at its next progress, because the
 * directory belongs to that thread and `unpack` to the program. Without a helper the frame is
 * installed in place, and only `unpack` copies the packed data.
 *
 * An object of a type that is not registered here is set aside until a type is registered, so that
 * no poll looks at it again and again. Later objects are installed meanwhile. A rank that leaves
 * sends such an object on as it came. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/control.h"
#include "core/fail.h"
#include "core/membership.h"
#include "core/operation.h"
#include "core/profile.h"
#include "core/work.h"
#include "object/cost.h"
#include "object/delivery.h"
#include "object/ends.h"
#include "object/entry.h"
#include "object/execution.h"
#include "object/migration_frame.h"
#include "object/moves.h"
#include "object/protocol.h"

static void release_block(ferry *f, const void *block)
{
    fy_port *port = fy_port_of(f);
    (void)port->ops->heap.release(port, (void *)(uintptr_t)block);
}

/* Makes an arrival with room for data that are copied. */
static fy_arrival *arrival_create(size_t copied_bytes)
{
    return copied_bytes > SIZE_MAX - sizeof(fy_arrival)
               ? NULL
               : fy_malloc(sizeof(fy_arrival) + copied_bytes);
}

static void arrival_destroy(ferry *f, fy_arrival *arrival)
{
    if (arrival->block)
        release_block(f, arrival->data);
    if (arrival->record != NULL)
        fy_record_destroy(fy_objects_of(f), arrival->record);
    free(arrival);
}

/* Whether an arrival must be tried again. FERRY_ENOTSUP: its type is not registered here. */
static bool has_to_wait(int error)
{
    return error == FERRY_ENOMEM || error == FERRY_EAGAIN || error == FERRY_ENOTSUP;
}

/* Installs a frame without keeping it. False: at least a part of it must be kept, because there is
 * a helper, because earlier arrivals wait, or because one of its objects has to wait. */
static bool install_at_once(ferry *f, fy_arrival *arrival)
{
    fy_objects *objects = fy_objects_of(f);
    if (fy_control_is_shared(f) || objects->arrivals != NULL)
        return false;
    int error = fy_arrival_install(f, arrival);
    objects->installed++;
    return !has_to_wait(error);
}

/* The port will give the frame again, so the parts made of it are freed. */
static fy_verdict arrival_leave(fy_objects *objects, const fy_arrival *arrival)
{
    if (arrival->record != NULL)
        fy_record_destroy(objects, arrival->record);
    return FY_LEAVE;
}

void fy_arrival_add(fy_objects *objects, fy_arrival *arrival)
{
    if (objects->arrivals == NULL)
        objects->arrivals = arrival;
    else
        objects->arrivals_last->next = arrival;
    objects->arrivals_last = arrival;
    /* release: pairs with the acquire in fy_object_layer's progress. */
    atomic_store_explicit(&objects->mail, true, memory_order_release);
    fy_layers_signal(objects->f);
}

static fy_verdict take_frame(ferry *f, int source, const fy_frame *frame)
{
    fy_objects *objects = fy_objects_of(f);
    size_t copied = frame->block ? 0 : frame->size_bytes;
    fy_arrival now = {.source = source, .data = frame->data, .size_bytes = frame->size_bytes};
    fy_arrival *arrival = NULL;
    /* If a frame has several objects, some may be installed when another has to wait. Then the
     * port must not give the frame again. So the memory to keep it is allocated before. */
    if (fy_migration_has_next(frame->data, frame->size_bytes)) {
        arrival = arrival_create(copied);
        if (arrival == NULL)
            return FY_LEAVE;
    }
    if (install_at_once(f, &now)) {
        free(arrival);
        return FY_TAKEN;
    }
    if (arrival == NULL)
        arrival = arrival_create(copied);
    if (arrival == NULL)
        return arrival_leave(objects, &now);
    *arrival = now;
    arrival->block = frame->block;
    if (copied != 0)
        arrival->data = memcpy(arrival + 1, frame->data, copied);
    fy_arrival_add(objects, arrival);
    return frame->block ? FY_KEEP : FY_TAKEN;
}

fy_verdict fy_arrival_frame(ferry *f, int source, const fy_frame *frame)
{
    const fy_object_watch *watch = fy_objects_of(f)->watch;
    uint64_t answered = frame->word_count > 1 ? frame->words[1] : 0; /* objects */
    if (answered != 0 && watch != NULL && !watch->answer(f, source, answered))
        return FY_LEAVE;
    return take_frame(f, source, frame);
}

int fy_entry_due(ferry *f, ferry_object object, uint32_t movement, fy_entry **out)
{
    fy_objects *objects = fy_objects_of(f);
    fy_entry *entry = fy_entry_find(objects, object);
    bool own = fy_object_creator(object) == objects->rank;
    if (own && !fy_names_alive(&objects->names, object))
        return FERRY_EINVAL;
    if (entry == NULL)
        return (int32_t)movement > 0 ? fy_entry_make(objects, object, out) : FERRY_EINVAL;
    fy_object_state state = entry->record == NULL ? FY_AWAITED : fy_record_state(f, entry->record);
    int32_t ahead = (int32_t)(movement - entry->movement);
    /* The object has left, and is back before the application thread has completed its move. If the
     * helper sent it, the object may even be MIGRATING still: the helper marks it DEPARTED later.
     */
    if (ahead > FY_MOVE_STEP && (state == FY_MIGRATING || state == FY_DEPARTED))
        return FERRY_EAGAIN;
    if (entry->dead || state != FY_AWAITED || ahead <= 0)
        return FERRY_EINVAL;
    *out = entry;
    return 0;
}

fy_queued_list fy_record_settle(fy_objects *objects, fy_record *record)
{
    fy_entry *entry = fy_entry_find(objects, record->object); /* unpack may have moved it */
    fy_queued_list held = {0};
    if (entry->record != NULL) {
        held = entry->record->late;
        entry->record->late = (fy_queued_list){0};
        objects->carried -= entry->record->due;
        fy_record_destroy(objects, entry->record);
    }
    entry->record = record;
    entry->guess = objects->rank;
    entry->movement = record->movement;
    entry->hosted = 1;
    fy_entry_seen(objects, entry);
    objects->count++;
    fy_stats(objects->f)->objects_in++;
    return held;
}

/* From here on nothing fails: the object belongs to this rank. */
static void commit(ferry *f, fy_record *record)
{
    fy_objects *objects = fy_objects_of(f);
    fy_queued_list held = fy_record_settle(objects, record);
    fy_held_arrive(f, record);
    record->item.arrived = true;
    if (record->scheduled)
        fy_record_schedule(f, record);
    fy_record_rest(f, record);
    record->item.arrived = false;
    if (objects->protocol.arrived != NULL)
        objects->protocol.arrived(f, record->object, record->movement);
    if (record->early.count != 0)
        fy_gaps_watch(f);
    fy_record_admit(f, record, &held);
}

static const void *next_migration(const fy_arrival *arrival)
{
    return (const unsigned char *)arrival->data + arrival->done_bytes;
}

/* The object's data: carried by the program, handed over, or unpacked. */
static void *data_of(ferry *f, const fy_arrival *arrival, const fy_migration *migration,
                     fy_record *record, const void *packed, size_t data_bytes)
{
    if (arrival->given != NULL)
        return arrival->given;
    if (migration->address != 0)
        return (void *)(uintptr_t)migration->address;
    if (migration->placed)
        return fy_objects_of(f)->take(f, record, packed, data_bytes);
    return record->type->ops.unpack(f, record->object, packed, data_bytes);
}

/* `unpack` has made no data. FERRY_ENOMEM: there may be memory for them later. If it fails for
 * WAITS seconds, the job ends. */
static int await_data(ferry *f, fy_arrival *arrival, const fy_record *record)
{
    enum { WAIT_NS = 1000 * 1000 * 1000, WAITS = 10 };
    uint64_t now = ferry_now(f);
    if (arrival->since_ns == 0)
        arrival->since_ns = now;
    if ((now - arrival->since_ns) / WAIT_NS < WAITS)
        return FERRY_ENOMEM;
    fy_log(f, "%s: unpack of object %016llx has failed for %d s; it is lost, and so is the job",
           record->type->name, (unsigned long long)record->object.word, WAITS);
    abort();
}

/* Makes the data of an object, and counts the work that it brings. If that fails, nothing is
 * counted. */
static int make_data(ferry *f, fy_arrival *arrival, const fy_migration *migration,
                     fy_record *record, const void *packed, size_t data_bytes)
{
    bool worked = arrival->given == NULL;
    uint64_t count = (uint64_t)record->pending.count + record->early.count + worked;
    int error = fy_work_arrives(f, arrival->source, count);
    if (error != 0)
        return error;
    record->data = data_of(f, arrival, migration, record, packed, data_bytes);
    if (record->data == NULL) {
        (void)fy_work_arrives(f, arrival->source, 0 - count);
        return await_data(f, arrival, record);
    }
    fy_data_keep(fy_objects_of(f), record);
    fy_work_finished(f, worked);
    return 0;
}

static int install_fill(ferry *f, fy_arrival *arrival, const fy_migration *migration,
                        const fy_entry *entry, fy_record *record)
{
    fy_objects *objects = fy_objects_of(f);
    const void *data = NULL;
    size_t data_bytes = 0;
    int error = fy_migration_unload(objects, migration, next_migration(arrival), record, &data,
                                    &data_bytes);
    if (error == 0 && entry->record != NULL)
        error = fy_record_reserve(record, &entry->record->late);
    /* With a place in `sources`, this rank will be told of the object's end. */
    if (error == 0 && fy_sources_of(&record->sources, objects->rank) == NULL)
        error = FERRY_ENOMEM;
    if (error == 0 && migration->scheduled)
        error = objects->watch != NULL ? objects->watch->prepare(f) : FERRY_EINVAL;
    if (error != 0)
        return error;
    record->movement = migration->movement;
    if (fy_senders_tell(f, &record->pending, ferry_rank(f), record->movement) != 0 ||
        fy_senders_tell(f, &record->early, ferry_rank(f), record->movement) != 0)
        return FERRY_ENOMEM;
    record->scheduled = migration->scheduled;
    record->load = migration->load;
    record->type_index = (uint16_t)migration->type;
    if (!fy_type_is_known(objects, migration->type)) {
        bool handed = migration->address != 0;
        if (migration->bare || !fy_peer_leaves(f, objects->rank))
            return FERRY_ENOTSUP; /* the arrival waits until it is registered */
        record->data = handed ? (void *)(uintptr_t)migration->address : (void *)(uintptr_t)data;
        return fy_record_pass_on(f, arrival->source, handed, record, data_bytes);
    }
    record->type = &objects->types[migration->type];
    error = make_data(f, arrival, migration, record, data, data_bytes);
    if (error == 0)
        commit(f, record);
    return error;
}

static void count_install(ferry *f, const fy_migration *migration, uint64_t start_ns)
{
    fy_objects *objects = fy_objects_of(f);
    uint64_t passed = fy_cost_now(objects) - start_ns;
    fy_cost *cost = fy_cost_of(objects, (ferry_object){migration->object});
    cost->in++;
    cost->unpack_ns += passed;
    /* The clock of the node that it left may be ahead of the clock here: then the time is 0. */
    uint64_t transit = migration->left_ns < start_ns ? start_ns - migration->left_ns : 0;
    cost->transit_ns += migration->left_ns != 0 ? transit : 0;
    fy_profile_awaited(f, migration->left_ns);
}

/* Installs the next object, and goes to the one after it unless it has to wait. */
static int install(ferry *f, fy_arrival *arrival)
{
    fy_objects *objects = fy_objects_of(f);
    uint64_t start_ns = fy_cost_now(objects);
    size_t left_bytes = arrival->size_bytes - arrival->done_bytes, taken_bytes = left_bytes;
    fy_migration migration;
    fy_entry *entry = NULL;
    int error = FERRY_EINVAL;
    bool announced = false;
    if (fy_migration_read(objects, next_migration(arrival), left_bytes, &migration) &&
        migration.bare == (arrival->given != NULL)) {
        taken_bytes = migration.size_bytes;
        error = fy_entry_due(f, (ferry_object){migration.object}, migration.movement, &entry);
        announced = error == 0 && arrival->given != NULL && entry->record != NULL;
        if (error == 0 && arrival->record == NULL) {
            arrival->record = fy_record_create(objects, (ferry_object){migration.object});
            error = arrival->record != NULL ? 0 : FERRY_ENOMEM;
        }
        if (error == 0)
            error = install_fill(f, arrival, &migration, entry, arrival->record);
    }
    /* Tells the rank that announced it: its main program may wait for credit again. */
    if (error == 0 && announced)
        fy_location_send(f, arrival->source, (ferry_object){migration.object}, objects->rank,
                         migration.movement);
    /* When the source died, the object was not here yet. */
    if (error == 0 && fy_peer_is_gone(f, arrival->source) &&
        (entry = fy_entry_find(objects, (ferry_object){migration.object})) != NULL)
        fy_home_tell(f, entry);
    if (error == 0 && objects->costs != NULL)
        count_install(f, &migration, start_ns);
    if (has_to_wait(error))
        return error;
    if (error != 0 && arrival->record != NULL)
        fy_record_destroy(objects, arrival->record);
    arrival->record = NULL;
    arrival->since_ns = 0;
    if (error != 0 && arrival->given == NULL)
        fy_log(f, "dropped a malformed object of %zu bytes from rank %d", taken_bytes,
               arrival->source);
    if (error == 0 || arrival->given == NULL)
        fy_move_arrives(f, arrival->source);
    arrival->done_bytes += taken_bytes;
    return error;
}

static int install_all(ferry *f, fy_arrival *arrival)
{
    int error = 0;
    while (arrival->done_bytes < arrival->size_bytes && !has_to_wait(error))
        error = install(f, arrival);
    return error;
}

int fy_arrival_install(ferry *f, fy_arrival *arrival)
{
    if (fy_objects_of(f)->costs == NULL)
        return install_all(f, arrival);
    fy_stretch stretch = fy_profile_begin(f);
    int error = install_all(f, arrival);
    fy_profile_copied(f, &stretch, FY_PROFILE_UNPACK, arrival->size_bytes);
    return error;
}

static fy_arrival *arrivals_take(ferry *f)
{
    fy_objects *objects = fy_objects_of(f);
    fy_control_lock(f);
    fy_arrival *first = objects->arrivals;
    objects->arrivals = NULL;
    fy_control_unlock(f);
    return first;
}

/* Puts back the arrivals that could not be installed, before those that have come since. */
static __attribute__((cold)) void arrivals_return(ferry *f, fy_arrival *first)
{
    fy_objects *objects = fy_objects_of(f);
    fy_arrival *last = first;
    while (last->next != NULL)
        last = last->next;
    fy_control_lock(f);
    last->next = objects->arrivals;
    if (objects->arrivals == NULL)
        objects->arrivals_last = last;
    objects->arrivals = first;
    atomic_store_explicit(&objects->mail, true, memory_order_release);
    fy_layers_signal(objects->f);
    fy_control_unlock(f);
}

__attribute__((cold)) void fy_unregistered_retry(ferry *f)
{
    fy_objects *objects = fy_objects_of(f);
    fy_arrival *first = objects->unregistered;
    objects->unregistered = NULL;
    for (const fy_arrival *at = first; at != NULL; at = at->next)
        --fy_objects_of(f)->carried;
    if (first != NULL)
        arrivals_return(f, first);
}

/* The order does not matter: no two have the same object. */
static void set_aside(fy_objects *objects, fy_arrival *arrival)
{
    arrival->next = objects->unregistered;
    objects->unregistered = arrival;
    ++objects->carried;
}

int fy_arrivals_install(ferry *f)
{
    int count = 0;
    fy_arrival *arrival = arrivals_take(f);
    while (arrival != NULL) {
        fy_arrival *next = arrival->next;
        int error = fy_arrival_install(f, arrival);
        if (error == FERRY_ENOMEM || error == FERRY_EAGAIN) {
            arrivals_return(f, arrival);
            break;
        }
        if (error == FERRY_ENOTSUP)
            set_aside(fy_objects_of(f), arrival);
        else
            arrival_destroy(f, arrival);
        arrival = next;
        count++;
    }
    return count;
}

static __attribute__((cold)) bool is_among(const fy_objects *objects, const fy_arrival *first,
                                           ferry_object object)
{
    fy_migration migration;
    bool waits = false;
    for (const fy_arrival *a = first; a != NULL && !waits; a = a->next)
        for (size_t at = a->done_bytes; !waits && at < a->size_bytes; at += migration.size_bytes) {
            if (!fy_migration_read(objects, (const unsigned char *)a->data + at, a->size_bytes - at,
                                   &migration))
                break;
            waits = migration.object == object.word;
        }
    return waits;
}

__attribute__((cold)) bool fy_arrival_waits(ferry *f, ferry_object object)
{
    const fy_objects *objects = fy_objects_of(f);
    fy_control_lock(f);
    bool waits = is_among(objects, objects->arrivals, object);
    fy_control_unlock(f);
    return waits || is_among(objects, objects->unregistered, object);
}

/* Makes the object, because only its type knows what has to be freed, and destroys it. False: none
 * is left. */
static bool end_next(ferry *f, fy_arrival *arrival)
{
    fy_objects *objects = fy_objects_of(f);
    fy_migration migration;
    const void *packed = NULL;
    size_t data_bytes = 0;
    if (!fy_migration_read(objects, next_migration(arrival),
                           arrival->size_bytes - arrival->done_bytes, &migration) ||
        migration.bare || !fy_type_is_known(objects, migration.type))
        return false;
    fy_record *record = arrival->record;
    arrival->record = NULL;
    if (record == NULL)
        record = fy_record_create(objects, (ferry_object){migration.object});
    if (record == NULL)
        return false;
    record->type = &objects->types[migration.type];
    if (fy_migration_unload(objects, &migration, next_migration(arrival), record, &packed,
                            &data_bytes) == 0)
        record->data = data_of(f, arrival, &migration, record, packed, data_bytes);
    if (record->data != NULL)
        record->type->ops.destroy(f, record->data);
    objects->unhandled += record->pending.count + record->early.count;
    fy_record_destroy(objects, record);
    arrival->done_bytes += migration.size_bytes;
    return true;
}

__attribute__((cold)) void fy_arrivals_end(ferry *f)
{
    fy_unregistered_retry(f);
    fy_arrival *arrival = arrivals_take(f);
    while (arrival != NULL) {
        fy_arrival *next = arrival->next;
        while (end_next(f, arrival))
            continue;
        if (arrival->done_bytes < arrival->size_bytes)
            fy_log(f, "dropped %zu bytes of objects from rank %d: this rank has %u types of them",
                   arrival->size_bytes - arrival->done_bytes, arrival->source,
                   fy_objects_of(f)->type_count);
        arrival_destroy(f, arrival);
        arrival = next;
    }
}
