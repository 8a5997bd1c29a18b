/* Delivery: messages to objects arrive, wait for their turn, go on to another rank, or fail. */
#ifndef FY_OBJECT_DELIVERY_H
#define FY_OBJECT_DELIVERY_H

#include "core/work.h"
#include "object/entry.h"
#include "object/object.h"

fy_verdict fy_message_frame(ferry *f, int source, const fy_frame *frame);

/* Called before a poll for another tag keeps a message. */
fy_hold_fn fy_message_hold;

/* As fy_message_frame, while costs are counted. */
fy_verdict fy_message_frame_counted(ferry *f, int source, const fy_frame *frame);

/* Gives a queued message to the object of `record`, in its turn. FERRY_ENOMEM: it still belongs to
 * the caller. */
int fy_record_deposit(ferry *f, fy_record *record, fy_queued_message *queued);

/* Whether the object is here, it is the message's turn, and nobody needs a notice about the
 * message. If so, the next message of its origin is expected from now on. */
static inline bool fy_record_takes_turn(fy_record *record, const fy_envelope *envelope)
{
    if (!fy_record_is_here(record) || envelope->hops != 0 || envelope->op != 0 ||
        record->early.count != 0)
        return false;
    uint32_t *expected = fy_sources_of(&record->sources, envelope->origin);
    if (expected == NULL || *expected != envelope->sequence)
        return false;
    ++*expected;
    return true;
}

/* Makes an object that is not scheduled run in the next poll if it has a message to run. */
static inline void fy_record_make_ready(fy_objects *objects, fy_record *record)
{
    if (record->state == FY_RESTING && record->pending.count != 0 && fy_list_empty(&record->link))
        fy_list_insert(&objects->ready, &record->link);
}

/* Whether `keep` of the keeper has taken the message. */
static inline bool fy_message_keep(ferry *f, fy_record *record, const fy_envelope *envelope,
                                   const ferry_message *message)
{
    const fy_keeper *keeper = &fy_objects_of(f)->keeper;
    return message->handler.index == keeper->handler && keeper->keep(f, record, envelope, message);
}

/* fy_record_deposit, inline for an object that is not scheduled and a message in its turn. */
static inline int fy_record_deposit_plain(ferry *f, fy_record *record, fy_queued_message *queued)
{
    if (record->scheduled || !fy_record_takes_turn(record, &queued->envelope))
        return fy_record_deposit(f, record, queued);
    fy_layer_due(f, FY_LAYER_OBJECT);
    fy_queued_list_push(&record->pending, queued);
    fy_record_make_ready(fy_objects_of(f), record);
    return 0;
}

/* Makes the early messages of `origin` pending whose turn has come. `expected`: the next one. */
void fy_record_add_early(ferry *f, fy_record *record, int origin, uint32_t *expected);

/* Reserves all memory that fy_record_admit of `messages` needs. FERRY_ENOMEM. */
int fy_record_reserve(fy_record *record, const fy_queued_list *messages);

/* Adds `messages`, for which places were reserved. */
void fy_record_admit(ferry *f, fy_record *record, fy_queued_list *messages);

/* Sends a message on to where the directory says its object went. FERRY_ENOMEM: nothing happened.
 * Any other failure ends the message. */
int fy_message_forward(ferry *f, fy_envelope *envelope, const ferry_message *message, int rank,
                       uint32_t movement);

/* Puts a message on the wire. [never blocks] */
int fy_message_post(ferry *f, int rank, const fy_envelope *envelope, const ferry_message *message);

/* The message has been handled (0) or has failed: ends its operation and its share of the work. */
void fy_message_end_op(ferry *f, int origin, uint32_t op, int error);
static inline void fy_message_end(ferry *f, const fy_envelope *envelope, int error)
{
    if (envelope->op != 0)
        fy_message_end_op(f, envelope->origin, envelope->op, error);
    fy_work_finished(f, 1);
}

/* A message from `source` to an object that is not here: it waits for the object, goes on, or
 * fails. `entry`: the object's, or NULL. */
fy_verdict fy_message_miss(ferry *f, int source, fy_entry *entry, fy_envelope *envelope,
                           const ferry_message *message);

/* Fails a message to a destroyed object, and tells its sender to forget the object. */
void fy_message_bounce(ferry *f, const fy_envelope *envelope, ferry_handler handler);

/* Fails and frees queued messages (FERRY_ENOENT: as fy_message_bounce), as far as there is memory
 * to tell their senders. fy_failed_tell does the rest later, and returns how many. */
void fy_queued_list_fail(ferry *f, fy_queued_list *messages, int error);
int fy_failed_tell(ferry *f);

/* Bytes held by origin, held.c. */

/* Sends tokens to ranks of which this rank holds too much. With `give`, also takes back tokens from
 * ranks of which it does not hold too much any more. */
void fy_held_settle(ferry *f, bool give);

/* A message of `origin` was forwarded to `rank`. If too many bytes wait for room there, `origin`
 * will get a token. */
void fy_held_passed_on(ferry *f, int origin, int rank);

/* The object of `record` is about to leave: chooses the queued messages that take tokens along.
 * Called only while there are tokens. */
void fy_held_mark(ferry *f, const fy_record *record);

/* The object has left, and its queued messages will be freed: their tokens do not count here any
 * more. Called only while there are tokens. */
void fy_held_leave(ferry *f, const fy_record *record);

/* The object has not left after all: its queued messages take no tokens along. */
void fy_held_stay(ferry *f, const fy_record *record);

/* The object has arrived: the tokens of its queued messages count here. */
void fy_held_arrive(ferry *f, const fy_record *record);

/* Gaps, gaps.c. */

/* A rank has died. */
void fy_gaps_rank_died(ferry *f);

/* A queued message waits before its turn. After a death it may wait in vain. */
void fy_gaps_watch(ferry *f);

/* If `gap_ns` has passed, makes the messages that have waited in vain for long pending. Returns 1
 * if it has looked, 0 if it is too early. */
int fy_gaps_close(ferry *f);

#endif
