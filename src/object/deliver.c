/* Delivery: from a frame to its object, or on to the rank to which the object went.
 *
 * A message carries the movement number m that its route knew: "after move number m the object is
 * at the rank to which this goes". A rank that has the object takes the message. Otherwise it
 * compares m with the number e of its own entry:
 *
 * - e > m: the entry's guess is newer knowledge. The rank forwards the message there, with e.
 * - e < m, or no entry: the object is in flight to this rank in another lane or channel. The rank
 *   keeps the message until the object comes. Only the rank that sent the object, and the ranks
 *   that it told, can know m before.
 * - e = m: there are two places for one movement number. Only a broken sender says so. The message
 *   fails.
 *
 * The home of an object always has an entry while the object lives, after a death once all have
 * told it. So each hop strictly increases m. A sender without knowledge begins at the home with 0.
 * If the next rank has died, the message goes to the home with e - 1, which is no move's number,
 * and the home knows e at least (forward.c). So there are at most two hops for each move, and no
 * loops. Ranks may forget an object once its home knows of its end (ends.c). So a rank that keeps a
 * message for an object to come asks the home whether it still can come. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/control.h"
#include "core/fail.h"
#include "core/handler.h"
#include "core/operation.h"
#include "core/peer.h"
#include "core/why.h"
#include "core/work.h"
#include "object/cost.h"
#include "object/delivery.h"
#include "object/entry.h"
#include "object/execution.h"
#include "object/protocol.h"
#include "object/wire.h"

/* A message has reached its object. If its operation ends on arrival, returns the operation, which
 * the caller ends, and removes it from the envelope, so that it does not end a second time. Returns
 * 0 if the message has no operation, or one that ends after the handler. An operation also ends
 * after the handler if there is no memory for the notice now, or if the handler does not exist. */
static uint32_t take_arrival(ferry *f, fy_envelope *envelope, ferry_handler handler)
{
    uint32_t op = envelope->op;
    if (!(op & FY_OP_ON_ARRIVAL) || !fy_op_end_reserve(f) ||
        fy_handler_find(f, handler.index, FY_HANDLER_OBJECT) == NULL)
        return 0;
    envelope->op = 0;
    return op;
}

static void inform(ferry *f, const fy_record *record, const fy_envelope *envelope)
{
    if (envelope->hops > 0)
        fy_objects_of(f)->protocol.found(f, record->object, record->movement, envelope->origin,
                                         envelope->hops);
}

static inline void add_task(ferry *f, fy_record *record, fy_queued_message *queued)
{
    fy_queued_list_push(&record->pending, queued);
    fy_queued_uncount(&fy_objects_of(f)->messages, queued);
    fy_record_task_added(f, record, queued);
}

static void add_pending(ferry *f, fy_record *record, fy_queued_message *queued)
{
    if (record->scheduled)
        add_task(f, record, queued);
    else
        fy_queued_list_push(&record->pending, queued);
}

void fy_record_add_early(ferry *f, fy_record *record, int origin, uint32_t *expected)
{
    for (fy_queued_message *queued;
         (queued = fy_queued_list_take(&record->early, origin, *expected)) != NULL; ++*expected)
        add_pending(f, record, queued);
}

/* The answer of accept for a queued message whose turn has passed. */
enum { STALE = 1 };

/* Puts a queued message on `pending` if its turn has come, otherwise on `early`. FERRY_ENOMEM,
 * STALE: it still belongs to the caller. `*arrived`: the operation that the caller ends once it
 * holds no lock. */
static int accept(ferry *f, fy_record *record, fy_queued_message *queued, uint32_t *arrived)
{
    int origin = queued->envelope.origin;
    uint32_t *expected = fy_sources_of(&record->sources, origin);
    if (expected == NULL)
        return FERRY_ENOMEM;
    int32_t ahead = (int32_t)(queued->envelope.sequence - *expected);
    if (ahead < 0 && fy_objects_of(f)->after_death)
        return STALE;
    if (ahead < 0 || (ahead > 0 && !fy_queued_list_insert(&record->early, queued))) {
        fy_log(f, "dropped a repeated message %u of rank %d to object %016llx",
               queued->envelope.sequence, origin, (unsigned long long)record->object.word);
        fy_queued_destroy(&fy_objects_of(f)->messages, queued);
    } else if (ahead == 0) {
        *arrived = take_arrival(f, &queued->envelope, queued->message.handler);
        add_pending(f, record, queued);
        ++*expected;
        if (record->early.count != 0)
            fy_record_add_early(f, record, origin, expected);
    } else {
        *arrived = take_arrival(f, &queued->envelope, queued->message.handler);
        fy_gaps_watch(f);
    }
    return 0;
}

/* If accept has answered STALE, a message that was given up has come after all. It fails, because
 * it would run after later messages of its sender. Any other answer is returned as it is. */
static int refuse_stale(ferry *f, int accepted, fy_queued_message *queued)
{
    if (accepted != STALE)
        return accepted;
    fy_message_end(f, &queued->envelope, FERRY_EPEER);
    fy_queued_destroy(&fy_objects_of(f)->messages, queued);
    return 0;
}

int fy_record_reserve(fy_record *record, const fy_queued_list *messages)
{
    for (const fy_queued_message *queued = messages->head; queued != NULL; queued = queued->next)
        if (fy_sources_of(&record->sources, queued->envelope.origin) == NULL)
            return FERRY_ENOMEM;
    return 0;
}

static __attribute__((noinline)) int deposit_unscheduled(ferry *f, fy_record *record,
                                                         fy_queued_message *queued)
{
    if (!fy_record_is_here(record)) {
        fy_queued_list_push(&record->late, queued);
        fy_gaps_watch(f);
        return 0;
    }
    inform(f, record, &queued->envelope);
    uint32_t arrived = 0;
    int origin = queued->envelope.origin;
    int error = accept(f, record, queued, &arrived);
    if (error == 0)
        fy_record_make_ready(fy_objects_of(f), record);
    if (arrived != 0)
        fy_message_end_op(f, origin, arrived, 0);
    return error == 0 ? 0 : refuse_stale(f, error, queued);
}

/* The rest of deposit_scheduled. Unless the object is `running`, the caller holds the lock and this
 * function releases it. */
static __attribute__((noinline)) int deposit_task(ferry *f, fy_record *record,
                                                  fy_queued_message *queued, bool running)
{
    fy_envelope envelope = queued->envelope;
    uint32_t arrived = 0;
    int error = 0;
    bool here = fy_record_is_here(record);
    if (here)
        error = accept(f, record, queued, &arrived);
    if (!running)
        fy_control_unlock(f);
    if (!here)
        fy_queued_list_push(&record->late, queued);
    else if (error == 0)
        inform(f, record, &envelope);
    if (arrived != 0)
        fy_message_end_op(f, envelope.origin, arrived, 0);
    return refuse_stale(f, error, queued);
}

static int deposit_scheduled(ferry *f, fy_record *record, fy_queued_message *queued)
{
    queued->load = fy_record_load(f, record, &queued->message);
    /* The helper leaves a running object alone. */
    bool running = fy_objects_of(f)->running == record;
    if (!running)
        fy_control_lock(f);
    if (!fy_record_takes_turn(record, &queued->envelope))
        return deposit_task(f, record, queued, running);
    add_task(f, record, queued);
    if (!running)
        fy_control_unlock(f);
    return 0;
}

int fy_record_deposit(ferry *f, fy_record *record, fy_queued_message *queued)
{
    fy_layer_due(f, FY_LAYER_OBJECT);
    if (record->scheduled)
        return deposit_scheduled(f, record, queued);
    return deposit_unscheduled(f, record, queued);
}

void fy_record_admit(ferry *f, fy_record *record, fy_queued_list *messages)
{
    for (fy_queued_message *queued; (queued = fy_queued_list_pop(messages)) != NULL;) {
        int error = fy_record_deposit(f, record, queued);
        assert(error == 0);
        (void)error;
    }
}

/* Does what inform does, but after the handler. A rank that waits for an answer of the handler
 * would otherwise be woken by this less important notice first. */
static __attribute__((noinline)) void inform_late(ferry *f, uint32_t movement,
                                                  const fy_envelope *envelope)
{
    const fy_entry *entry = fy_entry_find(fy_objects_of(f), envelope->object);
    if (entry != NULL && !entry->dead)
        fy_objects_of(f)->protocol.found(f, envelope->object, movement, envelope->origin,
                                         envelope->hops);
}

static __attribute__((noinline)) void end_on_arrival(ferry *f, fy_envelope *envelope,
                                                     ferry_handler handler)
{
    uint32_t op = take_arrival(f, envelope, handler);
    if (op != 0)
        fy_message_end_op(f, envelope->origin, op, 0);
}

/* Runs a message in its turn directly from its frame. Afterwards the object may be gone. */
static void run_at_once(ferry *f, fy_record *record, uint32_t *expected, fy_envelope *envelope,
                        const ferry_message *message)
{
    uint32_t movement = record->movement;
    if (envelope->op != 0)
        end_on_arrival(f, envelope, message->handler);
    ++*expected;
    if (record->early.count != 0)
        fy_record_add_early(f, record, envelope->origin, expected);
    else
        fy_frame_done(f);
    record->state = FY_RUNNING;
    if (fy_record_handle(f, record, FY_DOING_HANDLER, envelope, message))
        fy_record_rest_inline(f, record);
    if (envelope->hops > 0)
        inform_late(f, movement, envelope);
}

static __attribute__((noinline)) fy_verdict
keep(ferry *f, fy_record *record, const fy_envelope *envelope, const ferry_message *message)
{
    fy_objects *objects = fy_objects_of(f);
    fy_queued_message *queued =
        fy_queued_create(&objects->messages, envelope, message, fy_stamp(f), record->scheduled);
    if (queued == NULL)
        return FY_LEAVE;
    if (fy_record_deposit(f, record, queued) != 0) {
        fy_queued_destroy(&objects->messages, queued);
        return FY_LEAVE;
    }
    return FY_TAKEN;
}

static inline fy_verdict deliver_take(ferry *f, fy_record *record, fy_envelope *envelope,
                                      const ferry_message *message)
{
    if (record->scheduled && fy_message_keep(f, record, envelope, message)) {
        fy_objects_of(f)->keeper.kept(f, record);
        fy_message_end(f, envelope, 0);
        return FY_TAKEN;
    }
    if (record->scheduled || record->out || record->state != FY_RESTING ||
        record->pending.count != 0)
        return keep(f, record, envelope, message);
    uint32_t *expected = fy_sources_of(&record->sources, envelope->origin);
    if (expected == NULL)
        return FY_LEAVE;
    if (*expected != envelope->sequence)
        return keep(f, record, envelope, message);
    run_at_once(f, record, expected, envelope, message);
    return FY_TAKEN;
}

static inline fy_verdict message_deliver(ferry *f, int source, fy_envelope *envelope,
                                         const ferry_message *message)
{
    fy_entry *entry = fy_entry_find(fy_objects_of(f), envelope->object);
    return entry != NULL && entry->record != NULL
               ? deliver_take(f, entry->record, envelope, message)
               : fy_message_miss(f, source, entry, envelope, message);
}

static __attribute__((cold)) fy_verdict drop(ferry *f, int source)
{
    fy_log(f, "dropped a malformed message to an object from rank %d", source);
    return FY_TAKEN;
}

/* Reserves memory for the notice of the operation's end. If the message was forwarded, tells its
 * origin that this rank has it now. False: there is no memory. */
static __attribute__((noinline)) bool admit_op(ferry *f, const fy_envelope *envelope)
{
    if (!fy_op_end_reserve(f))
        return false;
    if (envelope->hops > 0)
        fy_op_moved_remote(f, envelope->origin, envelope->op, ferry_rank(f), envelope->movement);
    return true;
}

fy_verdict fy_message_frame(ferry *f, int source, const fy_frame *frame)
{
    const fy_objects *objects = fy_objects_of(f);
    fy_envelope envelope;
    ferry_message message;
    if (!fy_wire_read(frame, objects->ranks, &envelope, &message))
        return drop(f, source);
    fy_peer *peer = fy_peer_of(f, source);
    if (peer == NULL || (envelope.op != 0 && !admit_op(f, &envelope)))
        return FY_LEAVE;
    peer->work_received++;
    fy_work_created(f, 1);
    fy_verdict verdict = message_deliver(f, source, &envelope, &message);
    if (objects->messages.unsettled) {
        fy_held_settle(f, false);
        fy_layer_due(f, FY_LAYER_OBJECT);
    }
    if (verdict == FY_LEAVE)
        (void)fy_work_arrives(f, source, UINT64_MAX); /* the frame comes again and counts then */
    return verdict;
}

/* A poll for another tag keeps the message. If its object is here, the message has arrived, so an
 * operation that ends on arrival ends now. Otherwise the message is treated as usual, because that
 * runs no handler: it is forwarded, kept for its object, or fails. */
__attribute__((cold)) bool fy_message_hold(ferry *f, int source, fy_frame *frame)
{
    const fy_objects *objects = fy_objects_of(f);
    fy_envelope envelope;
    ferry_message message;
    if (!fy_wire_read(frame, objects->ranks, &envelope, &message))
        return true; /* fy_message_frame reports it later */
    const fy_entry *entry = fy_entry_find(objects, envelope.object);
    fy_control_lock(f);
    bool here = entry != NULL && entry->record != NULL && fy_record_is_here(entry->record);
    fy_control_unlock(f);
    if (!here)
        return fy_message_frame(f, source, frame) == FY_LEAVE;
    if (frame->op != 0)
        end_on_arrival(f, &envelope, message.handler);
    frame->op = envelope.op;
    return true;
}

fy_verdict fy_message_frame_counted(ferry *f, int source, const fy_frame *frame)
{
    fy_objects *objects = fy_objects_of(f);
    const fy_moment before = fy_cost_moment(objects);
    const ferry_object object = {frame->words[0]};
    uint64_t forwarded = fy_stats(f)->messages_forwarded;
    fy_verdict verdict = fy_message_frame(f, source, frame);
    if (object.word != 0)
        fy_cost_message(objects, object, &before, fy_stats(f)->messages_forwarded != forwarded);
    return verdict;
}
