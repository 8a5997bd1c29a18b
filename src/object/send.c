#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "core/handler.h"
#include "core/operation.h"
#include "core/outgoing.h"
#include "core/outlets.h"
#include "core/why.h"
#include "core/work.h"
#include "object/cost.h"
#include "object/delivery.h"
#include "object/entry.h"
#include "object/object.h"
#include "object/pacing.h"
#include "object/wire.h"

enum { SMALL_BYTES = 256 };

/* Says what is wrong with a message that is not valid. */
static __attribute__((cold, noinline)) int message_explain(ferry *f, ferry_object object,
                                                           const ferry_message *message)
{
    if (!fy_object_is_name(fy_objects_of(f), object))
        return fy_fail(f, FERRY_EINVAL, "object_send: %016llx names no object",
                       (unsigned long long)object.word);
    if (message == NULL)
        return fy_fail(f, FERRY_EINVAL, "object_send: no message given");
    if (message->word_count > FERRY_WORDS_MAX)
        return fy_fail(f, FERRY_EINVAL, "object_send: %u words, at most %d", message->word_count,
                       FERRY_WORDS_MAX);
    if (message->data == NULL && message->size_bytes != 0)
        return fy_fail(f, FERRY_EINVAL, "object_send: %zu bytes at NULL", message->size_bytes);
    return fy_handler_refuse(f, "object_send", message->handler.index, "object_");
}

static inline bool is_valid(ferry *f, ferry_object object, const ferry_message *message)
{
    return fy_object_is_name(fy_objects_of(f), object) && message != NULL &&
           message->word_count <= FERRY_WORDS_MAX &&
           (message->data != NULL || message->size_bytes == 0) &&
           fy_handler_find(f, message->handler.index, FY_HANDLER_OBJECT) != NULL;
}

/* Field by field, so that no field is loaded just after it was stored in two parts. */
static inline void envelope_write(ferry *f, fy_envelope *envelope, const fy_entry *entry,
                                  uint32_t movement, uint32_t op)
{
    envelope->object.word = entry->object;
    envelope->movement = movement;
    envelope->sequence = entry->sequence;
    envelope->origin = fy_objects_of(f)->rank;
    envelope->hops = 0;
    envelope->op = op;
}

static inline fy_envelope envelope_of(ferry *f, const fy_entry *entry, uint32_t movement,
                                      uint32_t op)
{
    fy_envelope envelope;
    envelope_write(f, &envelope, entry, movement, op);
    return envelope;
}

static inline int keep(ferry *f, const fy_envelope *envelope, fy_record *record,
                       const ferry_message *message)
{
    fy_objects *objects = fy_objects_of(f);
    int error = fy_message_check(f);
    if (error != 0)
        return error;
    fy_queued_message *queued =
        fy_queued_create(&objects->messages, envelope, message, fy_stamp(f), record->scheduled);
    if (queued == NULL)
        return FERRY_ENOMEM;
    error = fy_record_deposit(f, record, queued);
    if (error != 0)
        fy_queued_destroy(&objects->messages, queued);
    else
        fy_work_created(f, 1);
    return error;
}

static __attribute__((cold, noinline)) int
send_here(ferry *f, const fy_envelope *envelope, fy_record *record, const ferry_message *message)
{
    return keep(f, envelope, record, message);
}

/* The user's words that the frame has no room for stand before the data. */
static __attribute__((noinline)) int post_joined(ferry *f, int rank, bool own, fy_frame *frame,
                                                 const ferry_message *message)
{
    uint64_t small[SMALL_BYTES / sizeof(uint64_t)];
    size_t extra = fy_wire_extra_bytes(message);
    if (message->size_bytes > SIZE_MAX - extra)
        return fy_fail(f, FERRY_EINVAL, "message of %zu bytes is too large", message->size_bytes);
    size_t size_bytes = extra + message->size_bytes;
    void *joined = size_bytes <= sizeof small ? small : fy_malloc(size_bytes);
    if (joined == NULL)
        return fy_fail(f, FERRY_ENOMEM, "no memory for a message of %zu bytes", size_bytes);
    memcpy(joined, message->words + FY_WIRE_WORDS, extra);
    if (message->size_bytes != 0)
        memcpy((unsigned char *)joined + extra, message->data, message->size_bytes);
    frame->data = joined;
    frame->size_bytes = size_bytes;
    int error = fy_message_send(f, rank, own, frame);
    if (joined != small)
        free(joined);
    return error;
}

/* `lends`: the target reads the data in the sender's memory. */
static __attribute__((noinline)) int message_post(ferry *f, int rank, const fy_envelope *envelope,
                                                  const ferry_message *message, bool lends)
{
    fy_frame frame;
    fy_loan loan;
    bool own = envelope->hops == 0;
    fy_wire_write(&frame, envelope, message);
    if (lends)
        fy_lend(f, &frame, &loan);
    return lends || fy_wire_extra_bytes(message) == 0 ? fy_message_send(f, rank, own, &frame)
                                                      : post_joined(f, rank, own, &frame, message);
}

int fy_message_post(ferry *f, int rank, const fy_envelope *envelope, const ferry_message *message)
{
    return message_post(f, rank, envelope, message, false);
}

static __attribute__((noinline)) int start_op(ferry *f, ferry_object object, int rank,
                                              const ferry_message *message,
                                              const ferry_track *track, uint32_t *op)
{
    int error = fy_op_start(f, track, rank, message->tag, message->size_bytes, op);
    const fy_op_about about = {.handler = message->handler,
                               .object = object,
                               .local_address = (void *)(uintptr_t)message->data};
    if (error != 0 || *op == 0)
        return error;
    fy_op_describe(f, *op, &about);
    return 0;
}

static inline void count_sent(ferry *f, fy_entry *entry)
{
    entry->sequence++;
    fy_stats(f)->messages_sent++;
}

static __attribute__((cold)) int not_sent(ferry *f, uint32_t op, size_t size_bytes, int error)
{
    if (op != 0)
        fy_op_drop(f, op);
    return error == FERRY_ENOMEM
               ? fy_fail(f, error, "object_send: no memory for %zu bytes", size_bytes)
               : error;
}

static __attribute__((cold, noinline)) int
send_by(ferry *f, fy_entry *entry, int rank, const ferry_message *message, const ferry_track *track)
{
    /* A message that follows others goes where they go, even if this rank knows another place of
     * the object by now. */
    const fy_route *route = fy_message_route(f, entry->object);
    uint32_t op = 0, movement = entry->movement;
    fy_entry_expect(fy_objects_of(f), entry);
    if (route != NULL) {
        rank = route->rank;
        movement = route->movement;
    }
    int error =
        track == NULL ? 0 : start_op(f, (ferry_object){entry->object}, rank, message, track, &op);
    if (error != 0)
        return error;
    const fy_envelope envelope = envelope_of(f, entry, movement, op);
    bool here = entry->record != NULL && route == NULL;
    bool lends = op != 0 && !here && route == NULL && fy_wire_extra_bytes(message) == 0 &&
                 fy_may_lend(f, rank, message->data, message->size_bytes, op);
    if (op != 0 && !lends)
        fy_op_submitted(f, op); /* first: the send may end the operation of an object here */
    error = here ? send_here(f, &envelope, entry->record, message)
                 : message_post(f, rank, &envelope, message, lends);
    if (error != 0)
        return not_sent(f, op, message->size_bytes, error);
    count_sent(f, entry);
    if (__builtin_expect(fy_objects_of(f)->costs != NULL, 0))
        fy_trail_sent(fy_objects_of(f), &envelope, message);
    return 0;
}

/* If this rank stands in for the home of the object, and knows nothing, the object may have ended,
 * or be lost. */
static __attribute__((cold)) int no_object(ferry *f, ferry_object object, const fy_entry *entry)
{
    bool lost = entry == NULL && !fy_object_is_ours(fy_objects_of(f), object);
    return fy_fail(f, lost ? FERRY_EPEER : FERRY_ENOENT, "object_send: object %016llx %s",
                   (unsigned long long)object.word, lost ? "is lost" : "does not exist");
}

/* The entry of an object to which this rank sends for the first time; NULL without memory. */
static __attribute__((noinline)) fy_entry *first_entry(ferry *f, ferry_object object)
{
    fy_entry *entry = NULL;
    if (fy_entry_make(fy_objects_of(f), object, &entry) != 0)
        (void)fy_fail(f, FERRY_ENOMEM, "object_send: no memory for the directory");
    return entry;
}

/* The rank to which the object was last known to go is gone. Sends the message to the object's
 * home, as a rank that knows nothing does: the object may have gone on before, and its home may
 * know. */
static __attribute__((cold, noinline)) int
send_home(ferry *f, fy_entry *entry, const ferry_message *message, const ferry_track *track)
{
    const fy_objects *objects = fy_objects_of(f);
    int home = fy_object_home(objects, (ferry_object){entry->object});
    if (home == objects->rank || entry->record != NULL)
        return FERRY_EPEER;
    fy_entry unknown = *entry;
    unknown.guess = home;
    unknown.movement = 0;
    int error = send_by(f, &unknown, home, message, track);
    entry->sequence = unknown.sequence;
    return error;
}

/* Outside handlers: waits until the message has room. Returns whether it has polled, which may have
 * moved the object. */
static bool pace(ferry *f, ferry_object object, int rank)
{
    if (fy_objects_of(f)->messages.unsettled) {
        fy_held_settle(f, false);
        fy_layer_due(f, FY_LAYER_OBJECT);
    }
    return rank >= 0 && fy_message_pace(f, object.word, rank);
}

static __attribute__((cold, noinline)) fy_entry *look_up(ferry *f, ferry_object object, int *rank)
{
    const fy_objects *objects = fy_objects_of(f);
    fy_entry *entry = fy_entry_find(objects, object);
    *rank = fy_object_place(objects, object, entry);
    return entry;
}

static __attribute__((noinline)) int
send_any(ferry *f, ferry_object object, const ferry_message *message, const ferry_track *track)
{
    int rank;
    fy_entry *entry = look_up(f, object, &rank);
    if (!fy_in_handler(f) && pace(f, object, rank))
        entry = look_up(f, object, &rank);
    if (rank < 0)
        return no_object(f, object, entry);
    if (entry == NULL)
        entry = first_entry(f, object);
    if (entry == NULL)
        return FERRY_ENOMEM;
    int error = send_by(f, entry, rank, message, track);
    return error == FERRY_EPEER ? send_home(f, entry, message, track) : error;
}

/* Whether no message of this rank has to wait, and it need not look for a reason either. */
static inline bool flows(const ferry *f, const fy_objects *objects)
{
    const fy_head *head = fy_head_of(f);
    return head->slow_lanes == 0 && !objects->messages.unsettled && fy_credit_is_plenty(f) &&
           (fy_in_handler(f) || !fy_pace_is_due(f));
}

/* As keep_plain, for messages of the keeper and whatever needs more than a place in the pool. */
static __attribute__((noinline)) int keep_any(ferry *f, fy_entry *entry,
                                              const ferry_message *message)
{
    fy_record *record = entry->record;
    const fy_envelope envelope = envelope_of(f, entry, entry->movement, 0);
    bool kept = fy_message_keep(f, record, &envelope, message);
    if (!kept && keep(f, &envelope, record, message) != 0)
        return send_any(f, envelope.object, message, NULL);
    count_sent(f, entry);
    if (kept)
        fy_objects_of(f)->keeper.kept(f, record);
    return 0;
}

/* The fast path of send_any, for an object that is here. */
static __attribute__((noinline)) int keep_plain(ferry *f, fy_entry *entry,
                                                const ferry_message *message)
{
    fy_objects *objects = fy_objects_of(f);
    fy_message_store *store = &objects->messages;
    fy_record *record = entry->record;
    bool task = record->scheduled;
    fy_queued_message *queued;
    if (message->handler.index == objects->keeper.handler || fy_message_check(f) != 0 ||
        (queued = fy_queued_make_plain(store, objects->rank, message, fy_stamp(f), task)) == NULL)
        return keep_any(f, entry, message);
    envelope_write(f, &queued->envelope, entry, entry->movement, 0);
    if (fy_record_deposit_plain(f, record, queued) != 0) {
        fy_queued_destroy(store, queued);
        return keep_any(f, entry, message);
    }
    fy_work_created(f, 1);
    count_sent(f, entry);
    return 0;
}

/* Sends by a frame what does not go by an outlet. */
static __attribute__((noinline)) int post_framed(ferry *f, int rank, fy_entry *entry,
                                                 const ferry_message *message)
{
    const fy_envelope envelope = envelope_of(f, entry, entry->movement, 0);
    if (message_post(f, rank, &envelope, message, false) != 0)
        return send_any(f, envelope.object, message, NULL);
    count_sent(f, entry);
    return 0;
}

/* The fast path of send_any, for an object that is elsewhere. */
static __attribute__((noinline)) int post_plain(ferry *f, fy_entry *entry,
                                                const ferry_message *message)
{
    const fy_objects *objects = fy_objects_of(f);
    const ferry_object object = {entry->object};
    fy_peer *peer;
    fy_outlet *outlet;
    int rank = fy_entry_route(objects, entry);
    if (entry->dead || entry->left == FY_CARRIED)
        return send_any(f, object, message, NULL);
    if (message->size_bytes != 0 || message->word_count > FY_WIRE_WORDS ||
        (outlet = fy_outlet_of(f, rank, &peer)) == NULL)
        return post_framed(f, rank, entry, message);
    const fy_envelope envelope = envelope_of(f, entry, entry->movement, 0);
    fy_ring_slot *slot = fy_outlet_next(outlet);
    fy_wire_fill(slot, &envelope, message);
    peer->work_sent++;
    fy_unseen_count(f, 0);
    count_sent(f, entry);
    return fy_outlet_publish(outlet, slot) ? fy_outlet_follow(f, outlet) : 0;
}

int ferry_object_send(ferry *f, ferry_object object, const ferry_message *message,
                      const ferry_track *track)
{
    const fy_objects *objects = fy_objects_of(f);
    if (!is_valid(f, object, message))
        return message_explain(f, object, message);
    fy_entry *entry = fy_entry_find(objects, object);
    /* While costs are counted, the trail must be written, and only the slow path does that. */
    if (track != NULL || entry == NULL || objects->costs != NULL || !flows(f, objects))
        return send_any(f, object, message, track);
    return entry->record != NULL ? keep_plain(f, entry, message) : post_plain(f, entry, message);
}
