/* Migration, on the rank that the object leaves.
 *
 * Moves by the application and by the scheduler take one path, on either thread:
 * - The thread that decides marks the object MIGRATING and takes it out of every list, with the
 *   lock if it is scheduled.
 * - Without the lock, it is packed with its queued messages and the state of its order, and sent:
 *   as a piggybacked object (piggyback.c) or as a migration frame.
 * - It is put on the list `done`.
 *
 * The application thread empties that list. The directory learns where the object went, its data
 * are destroyed, and queued messages that came meanwhile follow it. If an object could not be sent,
 * it rests again, and nothing is lost. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/control.h"
#include "core/fail.h"
#include "core/membership.h"
#include "core/operation.h"
#include "core/outgoing.h"
#include "core/profile.h"
#include "core/work.h"
#include "object/cost.h"
#include "object/delivery.h"
#include "object/entry.h"
#include "object/execution.h"
#include "object/flat.h"
#include "object/kinds.h"
#include "object/migration_frame.h"
#include "object/moves.h"
#include "object/object.h"

static void *block_get(fy_objects *objects, bool shared, size_t size_bytes)
{
    return shared ? objects->port->ops->heap.alloc(objects->port, size_bytes, -1)
                  : fy_malloc(size_bytes);
}

static void block_release(fy_objects *objects, bool shared, void *block)
{
    if (shared)
        (void)objects->port->ops->heap.release(objects->port, block);
    else
        free(block);
}

/* Gives the block to the target. The application thread must not wait for room, because it may be
 * the thread that makes room for others: FERRY_EAGAIN. */
static int hand_over(ferry *f, fy_thread thread, int rank, const fy_frame *frame)
{
    fy_port *port = fy_port_of(f);
    return thread == FY_APP ? port->ops->heap.send_block(port, thread, FY_CONTROL, rank, frame)
                            : fy_send_control(f, thread, rank, frame, true);
}

/* Objects of this size or more travel alone: a small object gains nothing if it waits in the frame
 * until a large one is packed. */
enum { TOGETHER_BYTES = 16 << 10 };
/* Blocks up to here are packed on the stack, and copied by the port into its ring. */
enum { SMALL_BYTES = 1024 };

/* Bytes of the migration frame; 0 when no size_t holds them. */
static size_t migration_measure(ferry *f, fy_thread thread, fy_record *record, size_t *data_bytes)
{
    record->handed = fy_data_leaves(fy_objects_of(f), thread, record);
    *data_bytes = record->handed ? 0 : fy_packed_bytes(f, record->type, record->data);
    return fy_migration_bytes(record, *data_bytes);
}

/* The parts that are packed into one block. */
typedef struct cargo {
    fy_record *const *records;
    int count;
    size_t size_bytes; /* 0: no size_t holds it */
    struct {
        size_t size_bytes, data_bytes;
    } each[FY_SHIP_MAX];
} cargo;

/* Chooses the records that go together: the first, and small ones after it. */
static inline void cargo_load(ferry *f, fy_thread thread, fy_record *const *records, int count,
                              cargo *c)
{
    c->records = records;
    c->count = 1;
    c->size_bytes = c->each[0].size_bytes =
        migration_measure(f, thread, records[0], &c->each[0].data_bytes);
    while (c->count < count && c->count < FY_SHIP_MAX && c->size_bytes != 0 &&
           c->size_bytes < TOGETHER_BYTES) {
        size_t more =
            migration_measure(f, thread, records[c->count], &c->each[c->count].data_bytes);
        if (more == 0 || more >= TOGETHER_BYTES)
            break;
        c->size_bytes += more;
        c->each[c->count++].size_bytes = more;
    }
}

static inline void cargo_pack(ferry *f, const cargo *c, unsigned char *at)
{
    for (int i = 0; i < c->count; i++) {
        const fy_record *record = c->records[i];
        size_t data_bytes = c->each[i].data_bytes;
        unsigned char *data =
            fy_migration_write(record, c->each[i].size_bytes, data_bytes, false, at);
        if (!record->handed)
            record->type->ops.pack(f, record->data, data, data_bytes);
        at += c->each[i].size_bytes;
    }
}

/* `*answered` becomes the number of objects whose arrival the target will tell this rank: of those
 * that travel, unless their frame is handed over or small. */
static int pack_and_send(ferry *f, fy_thread thread, const cargo *c, int *answered)
{
    fy_objects *objects = fy_objects_of(f);
    uint64_t small[SMALL_BYTES / sizeof(uint64_t)];
    if (c->size_bytes == 0) /* no size_t holds it, or a store cannot read the object */
        return c->records[0]->out ? FERRY_ESYSTEM : FERRY_ENOMEM;
    bool shared = objects->info.shares_memory && c->size_bytes > objects->info.inline_bytes;
    void *block = !shared && c->size_bytes <= sizeof small
                      ? small
                      : block_get(objects, shared, c->size_bytes);
    if (block == NULL)
        return FERRY_ENOMEM;
    cargo_pack(f, c, block);
    int target = c->records[0]->target;
    int travelling = 0;
    for (int i = 0; i < c->count; i++)
        travelling += c->records[i]->travels;
    fy_frame frame;
    fy_frame_begin(&frame, FY_KIND_ARRIVAL, 0, 1);
    frame.words[0] = c->records[0]->object.word;
    frame.words[1] = (unsigned)travelling;
    frame.data = block;
    frame.size_bytes = c->size_bytes;
    int error = FERRY_EAGAIN;
    if (shared)
        error = hand_over(f, thread, target, &frame);
    *answered = error != 0 && block != small ? travelling : 0;
    if (error == 0)
        return 0;
    frame.word_count = *answered != 0 ? 2 : 1;
    /* This way the port or the backlog copies the data, so the block is free afterwards. */
    if (error == FERRY_EAGAIN)
        error = thread == FY_APP ? fy_send(f, FY_CONTROL, target, &frame)
                                 : fy_send_control(f, thread, target, &frame, false);
    if (block != small)
        block_release(objects, shared, block);
    return error;
}

void fy_record_set_down(ferry *f, fy_record *record, fy_object_state state)
{
    fy_objects *objects = fy_objects_of(f);
    record->state = state;
    fy_list_insert(&objects->done, &record->link);
    /* release: pairs with the acquire in fy_object_layer's progress. */
    atomic_store_explicit(&objects->mail, true, memory_order_release);
    fy_layers_signal(f);
}

static __attribute__((cold)) void set_down(ferry *f, fy_record *const *records, int count,
                                           int error)
{
    fy_control_lock(f);
    for (int i = 0; i < count; i++)
        fy_record_set_down(f, records[i], error == 0 ? FY_DEPARTED : FY_RETURNED);
    fy_control_unlock(f);
}

/* Sends the first of `records` and those that share its frame. Returns the number of these, also if
 * `*error` says that they could not be sent. `answered`: as for pack_and_send. */
static int ship_some(ferry *f, fy_thread thread, fy_record *const *records, int count, int *error,
                     int *answered)
{
    fy_objects *objects = fy_objects_of(f);
    fy_stretch stretch = {0};
    cargo c;
    if (objects->costs == NULL) {
        cargo_load(f, thread, records, count, &c);
        *error = pack_and_send(f, thread, &c, answered);
        return c.count;
    }
    if (thread == FY_APP)
        stretch = fy_profile_begin(f);
    uint64_t left_ns = fy_cost_now(objects);
    for (int i = 0; i < count; i++)
        records[i]->left_ns = left_ns;
    cargo_load(f, thread, records, count, &c);
    *error = pack_and_send(f, thread, &c, answered);
    uint64_t passed_ns = fy_cost_now(objects) - left_ns;
    for (int i = 0; i < c.count; i++)
        records[i]->pack_ns = passed_ns / (unsigned)c.count;
    if (thread == FY_APP)
        fy_profile_copied(f, &stretch, FY_PROFILE_PACK, 0);
    return c.count;
}

int fy_records_ship(ferry *f, fy_thread thread, fy_record *const *records, int count, int *answered)
{
    int result = 0;
    *answered = 0;
    fy_work_shipped(f, (uint64_t)count);
    for (int i = 0; i < count; i++)
        records[i]->worked = true;
    for (int first = 0, taken; first < count; first += taken) {
        int error = 0;
        int told = 0;
        taken = ship_some(f, thread, records + first, count - first, &error, &told);
        *answered += error == 0 ? told : 0;
        set_down(f, records + first, taken, error);
        result = error != 0 ? error : result;
    }
    return result;
}

/* Forwards the queued messages that came while the object was leaving to the rank to which it went.
 * FERRY_ENOMEM: some are not forwarded yet. */
static int send_late(ferry *f, fy_record *record)
{
    fy_objects *objects = fy_objects_of(f);
    while (record->late.head != NULL) {
        fy_queued_message *queued = record->late.head;
        int error = fy_message_forward(f, &queued->envelope, &queued->message, record->target,
                                       record->movement + FY_MOVE_STEP);
        if (error != 0)
            return error;
        fy_queued_destroy(&objects->messages, fy_queued_list_pop(&record->late));
    }
    return 0;
}

static int drain_departed(ferry *f, fy_record *record)
{
    fy_objects *objects = fy_objects_of(f);
    fy_entry *entry = fy_entry_find(objects, record->object);
    if (entry != NULL && entry->record == record) {
        if (fy_senders_tell(f, &record->pending, record->target, record->movement + FY_MOVE_STEP) !=
                0 ||
            fy_senders_tell(f, &record->early, record->target, record->movement + FY_MOVE_STEP) !=
                0 ||
            fy_move_leaves(f, record->target,
                           record->pending.count + record->early.count + record->worked) != 0)
            return FERRY_ENOMEM;
        if (objects->messages.tokens != 0)
            fy_held_leave(f, record);
        entry->record = NULL;
        entry->guess = record->target;
        entry->movement = record->movement + FY_MOVE_STEP;
        entry->left = record->worked ? FY_LEFT : FY_CARRIED;
        if (record->pending.count + record->early.count + record->late.count != 0)
            fy_entry_expect(objects, entry);
        objects->count--;
        fy_stats(f)->objects_out++;
        if (objects->costs != NULL) {
            fy_cost_of(objects, record->object)->out++;
            fy_cost_of(objects, record->object)->pack_ns += record->pack_ns;
        }
        if (!record->handed)
            record->type->ops.destroy(f, record->data);
        record->data = NULL;
    }
    int error = send_late(f, record);
    if (error == 0)
        fy_record_destroy(objects, record);
    return error;
}

/* Moves an object in place: packs its data and unpacks them again. Without memory it stays as it
 * is. */
static void repack(ferry *f, fy_record *record)
{
    const ferry_object_ops *ops = &record->type->ops;
    size_t size_bytes = fy_packed_bytes(f, record->type, record->data);
    void *buffer = fy_calloc(1, size_bytes != 0 ? size_bytes : 1);
    if (buffer == NULL)
        return;
    ops->pack(f, record->data, buffer, size_bytes);
    void *data = ops->unpack(f, record->object, buffer, size_bytes);
    free(buffer);
    if (data == NULL) {
        fy_log(f, "%s: unpack of object %016llx failed; it stays as it was", record->type->name,
               (unsigned long long)record->object.word);
        return;
    }
    ops->destroy(f, record->data);
    record->data = data;
}

static __attribute__((cold)) int drain_returned(ferry *f, fy_record *record)
{
    fy_objects *objects = fy_objects_of(f);
    if (record->target == objects->rank && !record->out)
        repack(f, record);
    record->handed = false;
    record->travels = false;
    record->target = -1;
    fy_work_finished(f, record->worked);
    record->worked = false;
    fy_held_stay(f, record);
    if (fy_record_reserve(record, &record->late) != 0)
        return FERRY_ENOMEM;
    fy_queued_list late = record->late;
    record->late = (fy_queued_list){0};
    record->returned = record->scheduled;
    fy_record_rest(f, record);
    fy_record_admit(f, record, &late);
    return 0;
}

static fy_record *done_pop(ferry *f)
{
    fy_control_lock(f);
    fy_record *record = (fy_record *)(void *)fy_list_pop(&fy_objects_of(f)->done);
    fy_control_unlock(f);
    return record;
}

/* Completes the move of an object that is DEPARTED or RETURNED. False: there is no memory, so it
 * waits. */
static bool migrate_finish(ferry *f, fy_record *record)
{
    bool departed = record->state == FY_DEPARTED;
    if ((departed ? drain_departed(f, record) : drain_returned(f, record)) == 0)
        return true;
    set_down(f, &record, 1, departed ? 0 : FERRY_ENOMEM);
    return false;
}

int fy_done_drain(ferry *f)
{
    int count = 0;
    for (fy_record *record; (record = done_pop(f)) != NULL; count++)
        if (!migrate_finish(f, record))
            break;
    return count;
}

static void set_state(ferry *f, fy_record *record, fy_object_state state)
{
    if (record->scheduled)
        fy_control_lock(f);
    record->state = state;
    if (record->scheduled)
        fy_control_unlock(f);
}

int fy_record_send(ferry *f, fy_record *record)
{
    int error = 0;
    int answered = 0;
    (void)ship_some(f, FY_APP, &record, 1, &error, &answered);
    return error;
}

int fy_record_move(ferry *f, fy_record *record, int rank)
{
    int error = 0;
    fy_work_created(f, 1);
    record->worked = true;
    record->target = rank;
    set_state(f, record, FY_MIGRATING);
    if (fy_objects_of(f)->messages.tokens != 0)
        fy_held_mark(f, record);
    if (!fy_piggyback_send(f, record, &error))
        error = fy_record_send(f, record);
    set_state(f, record, error == 0 ? FY_DEPARTED : FY_RETURNED);
    (void)migrate_finish(f, record);
    return error;
}

int ferry_object_move(ferry *f, ferry_object object, int rank)
{
    fy_objects *objects = fy_objects_of(f);
    if (rank < 0 || rank >= objects->ranks)
        return fy_fail(f, FERRY_EINVAL, "object_move: there is no rank %d of %d", rank,
                       objects->ranks);
    fy_record *record = fy_record_here(f, object);
    if (record == NULL || record->destroy_pending)
        return fy_fail_absent(f, "object_move", object, record);
    if (rank != objects->rank && !fy_peer_takes(f, rank))
        return fy_fail(f, FERRY_EPEER, "object_move: rank %d is not there, or takes no objects",
                       rank);
    if (objects->running == record) {
        record->target = rank == objects->rank ? -1 : rank;
        return 0;
    }
    if (rank == objects->rank)
        return 0;
    if (!fy_record_unlink(f, record))
        return fy_fail_absent(f, "object_move", object, record);
    int error = fy_record_move(f, record, rank);
    return error == 0 ? 0
                      : fy_fail(f, error, "object_move: object %016llx cannot go to rank %d: %s",
                                (unsigned long long)object.word, rank, ferry_strerror(error));
}
