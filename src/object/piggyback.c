/* Piggybacked object: a small object that travels in the frame of the message that waits for it.
 *
 * An object that moves itself usually takes one message along: its next step. Then the frame is the
 * frame of the message (wire.h), with the object's movement, and the object is its payload: a head,
 * the sequence numbers expected per source, and the packed data or their address. That is half of a
 * migration frame. Where it arrives, no queued message is made: the message runs directly from its
 * frame.
 *
 * It travels as messages do, in the data lane, and is handled where handlers may run. An object
 * that is on disk, scheduled, tracked or counted, or that has more to take along, goes as a
 * migration frame (migrate.c). So a piggybacked object belongs to the application thread alone on
 * both sides. If an object cannot be installed now, it waits as a migration frame would. The reason
 * is that its type is not registered yet, or that there is no memory for its data. */
#include <string.h>

#include "base/alloc.h"
#include "core/control.h"
#include "core/fail.h"
#include "core/outgoing.h"
#include "core/peer.h"
#include "core/why.h"
#include "core/work.h"
#include "object/delivery.h"
#include "object/execution.h"
#include "object/flat.h"
#include "object/migration_frame.h"
#include "object/moves.h"
#include "object/protocol.h"
#include "object/wire.h"

enum { PIGGYBACK_BYTES_MAX = 2048, HANDED = 1 };

typedef struct piggyback_head {
    uint16_t type;
    uint16_t source_count;
    uint32_t flags;
} piggyback_head;

_Static_assert(sizeof(piggyback_head) == 8, "it has no holes");

/* The words of the frame. */
typedef struct piggyback {
    fy_envelope envelope;
    ferry_message message;
    piggyback_head head;
    const unsigned char *sources;
    const void *data; /* borrows from the frame */
    size_t data_bytes;
    uint64_t address; /* with HANDED */
} piggyback;

static bool piggyback_fits(const fy_objects *objects, const fy_record *record)
{
    const fy_queued_message *queued = record->pending.head;
    return record->pending.count == 1 && !record->out && record->early.count == 0 &&
           !record->scheduled && record->affinity == NULL && record->load == 0 &&
           record->sources.many == NULL && objects->costs == NULL && queued->envelope.op == 0 &&
           !queued->token && queued->message.size_bytes == 0 &&
           queued->message.word_count <= FY_WIRE_WORDS;
}

bool fy_piggyback_send(ferry *f, fy_record *record, int *error)
{
    fy_objects *objects = fy_objects_of(f);
    uint64_t block[PIGGYBACK_BYTES_MAX / sizeof(uint64_t)];
    if (!piggyback_fits(objects, record))
        return false;
    record->handed = fy_data_leaves(objects, FY_APP, record);
    const piggyback_head head = {.type = record->type_index,
                                 .source_count = (uint16_t)record->sources.count,
                                 .flags = record->handed ? HANDED : 0};
    size_t head_bytes = sizeof head + head.source_count * sizeof(fy_source);
    size_t data_bytes =
        record->handed ? sizeof(uint64_t) : fy_packed_bytes(f, record->type, record->data);
    if (data_bytes > sizeof block - head_bytes)
        return false;
    memcpy(block, &head, sizeof head);
    fy_sources_copy(&record->sources, (fy_source *)(void *)(block + 1));
    uint64_t *data = block + 1 + head.source_count;
    if (record->handed)
        *data = (uint64_t)(uintptr_t)record->data;
    else
        record->type->ops.pack(f, record->data, data, data_bytes);
    const fy_queued_message *queued = record->pending.head;
    const fy_envelope envelope = {.object = record->object,
                                  .movement = record->movement + FY_MOVE_STEP,
                                  .sequence = queued->envelope.sequence,
                                  .origin = queued->envelope.origin,
                                  .hops = queued->envelope.hops};
    fy_frame frame;
    fy_wire_write(&frame, &envelope, &queued->message);
    frame.kind = FY_KIND_PIGGYBACK;
    frame.data = block;
    frame.size_bytes = head_bytes + data_bytes;
    *error = fy_send(f, FY_DATA, record->target, &frame);
    return true;
}

static bool read(const fy_objects *objects, const fy_frame *frame, piggyback *out)
{
    if (!fy_wire_read(frame, objects->ranks, &out->envelope, &out->message) ||
        out->message.word_count > FY_WIRE_WORDS || frame->size_bytes < sizeof out->head)
        return false;
    out->message.data = NULL;
    out->message.size_bytes = 0;
    memcpy(&out->head, frame->data, sizeof out->head);
    size_t head_bytes = sizeof out->head + out->head.source_count * sizeof(fy_source);
    if (out->head.source_count > FY_SOURCES_INLINE || out->head.type >= FY_TYPES_MAX ||
        head_bytes > frame->size_bytes)
        return false;
    out->sources = (const unsigned char *)frame->data + sizeof out->head;
    out->data = (const unsigned char *)frame->data + head_bytes;
    out->data_bytes = frame->size_bytes - head_bytes;
    out->address = 0;
    if (out->head.flags == 0)
        return true;
    if (out->head.flags != HANDED || out->data_bytes != sizeof out->address)
        return false;
    memcpy(&out->address, out->data, sizeof out->address);
    out->data_bytes = 0;
    return fy_address_shared(objects, FY_APP, (const void *)(uintptr_t)out->address);
}

/* Keeps the object as a migration frame, to be installed as soon as possible. */
static fy_verdict piggyback_keep(ferry *f, int source, const piggyback *e, fy_record *record)
{
    fy_objects *objects = fy_objects_of(f);
    fy_queued_message *queued =
        fy_queued_create(&objects->messages, &e->envelope, &e->message, fy_stamp(f), false);
    fy_arrival *arrival = NULL;
    if (queued != NULL) {
        record->movement = e->envelope.movement - FY_MOVE_STEP;
        record->type_index = e->head.type;
        record->handed = e->address != 0;
        record->data = (void *)(uintptr_t)e->address;
        fy_queued_list_push(&record->pending, queued);
        size_t size_bytes = fy_migration_bytes(record, e->data_bytes);
        arrival = fy_malloc(sizeof *arrival + size_bytes);
        if (arrival != NULL) {
            *arrival =
                (fy_arrival){.source = source, .data = arrival + 1, .size_bytes = size_bytes};
            void *data = fy_migration_write(record, size_bytes, e->data_bytes, false, arrival + 1);
            if (e->data_bytes != 0)
                memcpy(data, e->data, e->data_bytes);
        }
    }
    fy_record_destroy(objects, record);
    if (arrival == NULL)
        return FY_LEAVE;
    fy_control_lock(f);
    fy_arrival_add(objects, arrival);
    fy_control_unlock(f);
    return FY_TAKEN;
}

/* Runs the message. Lets the object rest unless the handler has moved it. The message runs before
 * those that this rank kept for the object, because their senders sent them after it. */
static void piggyback_run(ferry *f, piggyback *e, fy_record *record)
{
    fy_objects *objects = fy_objects_of(f);
    fy_queued_list held = fy_record_settle(objects, record);
    record->state = FY_RUNNING;
    if (objects->protocol.arrived != NULL)
        objects->protocol.arrived(f, record->object, record->movement);
    if (held.count == 0)
        fy_frame_done(f);
    else
        fy_record_admit(f, record, &held);
    if (fy_record_handle(f, record, FY_DOING_HANDLER, &e->envelope, &e->message))
        fy_record_rest_inline(f, record);
}

/* Makes the object of `record`, whose entry is `entry`. FERRY_ENOMEM: nothing has happened. */
static int piggyback_make(ferry *f, int source, const piggyback *e, const fy_entry *entry,
                          fy_record *record)
{
    fy_objects *objects = fy_objects_of(f);
    int error = entry->record == NULL ? 0 : fy_record_reserve(record, &entry->record->late);
    /* With a place in `sources`, this rank will be told of the object's end. */
    if (error == 0 && fy_sources_of(&record->sources, objects->rank) == NULL)
        error = FERRY_ENOMEM;
    fy_peer *peer = fy_peer_of(f, source);
    if (error != 0 || peer == NULL)
        return FERRY_ENOMEM;
    record->movement = e->envelope.movement;
    record->type_index = e->head.type;
    record->type = &objects->types[e->head.type];
    record->data = e->address != 0
                       ? (void *)(uintptr_t)e->address
                       : record->type->ops.unpack(f, e->envelope.object, e->data, e->data_bytes);
    if (record->data == NULL)
        return FERRY_ENOMEM;
    fy_data_keep(objects, record);
    /* Counts two units of work: the message and the move. The move is complete, so it ends here. */
    peer->work_received += 2;
    peer->moved_in++;
    fy_work_created(f, 2);
    fy_work_finished(f, 1);
    return 0;
}

/* Prefetches the lines of an object together. Each line comes from another processor. If each were
 * read only when it is needed, the waits would add up. */
static inline void ask_for(const fy_frame *frame)
{
    enum { LINE_BYTES = 64, AT_ONCE_BYTES = 256 };
    for (size_t at = 0; at < frame->size_bytes && at < AT_ONCE_BYTES; at += LINE_BYTES)
        __builtin_prefetch((const char *)frame->data + at);
}

fy_verdict fy_piggyback_frame(ferry *f, int source, const fy_frame *frame)
{
    fy_objects *objects = fy_objects_of(f);
    piggyback e;
    fy_entry *entry = NULL;
    fy_record *record = NULL;
    int error = FERRY_EINVAL;
    ask_for(frame);
    if (read(objects, frame, &e)) {
        record = fy_record_create(objects, e.envelope.object);
        if (record == NULL)
            return FY_LEAVE;
        error = fy_sources_read(&record->sources, e.sources, e.head.source_count, objects->ranks);
        if (error == 0 && !fy_type_is_known(objects, e.head.type))
            error = FERRY_EAGAIN;
        if (error == 0)
            error = fy_entry_due(f, e.envelope.object, e.envelope.movement, &entry);
        if (error == 0)
            error = piggyback_make(f, source, &e, entry, record);
    }
    if (error == FERRY_ENOMEM || error == FERRY_EAGAIN)
        return piggyback_keep(f, source, &e, record);
    if (error == 0) {
        piggyback_run(f, &e, record);
        return FY_TAKEN;
    }
    if (record != NULL)
        fy_record_destroy(objects, record);
    fy_log(f, "dropped a malformed object of %zu bytes from rank %d", frame->size_bytes, source);
    fy_move_arrives(f, source);
    return FY_TAKEN;
}
