#include "object/object.h"

static int check(ferry *f, ferry_object object, const ferry_message *message)
{
    if ((uint32_t)object.word == 0 || fy_object_creator(object) >= fy_objects_of(f)->ranks)
        return fy_fail(f, FERRY_EINVAL, "object_send: %016llx names no object",
                       (unsigned long long)object.word);
    if (message == NULL)
        return fy_fail(f, FERRY_EINVAL, "object_send: no message given");
    if (message->word_count > FERRY_WORDS_MAX)
        return fy_fail(f, FERRY_EINVAL, "object_send: %u words, at most %d", message->word_count,
                       FERRY_WORDS_MAX);
    if (message->data == NULL && message->size_bytes != 0)
        return fy_fail(f, FERRY_EINVAL, "object_send: %zu bytes at NULL", message->size_bytes);
    if (fy_handler_find(f, message->handler.index, FY_HANDLER_OBJECT) == NULL)
        return fy_fail(f, FERRY_EINVAL, "object_send: handler %u is not one of objects",
                       message->handler.index);
    return 0;
}

/* Where a message to `object` goes, whose entry is `entry`; -1: there is no such object. */
static int way_to(const fy_objects *objects, ferry_object object, const fy_entry *entry)
{
    if (entry == NULL) {
        int home = fy_object_home(objects, object);
        return home == objects->rank ? -1 : home;
    }
    if (entry->record != NULL)
        return objects->rank;
    return entry->dead ? -1 : fy_entry_route(objects, entry);
}

/* Outside handlers: waits until the message has room. Whether it has looked what there is, which
 * may have moved the object. */
static bool pace(ferry *f, int rank, size_t size_bytes)
{
    if (fy_objects_of(f)->letters.unsettled)
        fy_holdings_settle(f, false);
    return rank >= 0 && fy_message_pace(f, rank, size_bytes);
}

static int send_here(ferry *f, fy_record *record, const fy_envelope *envelope,
                     const ferry_message *message)
{
    fy_objects *objects = fy_objects_of(f);
    int error = fy_check_room(f, "object_send");
    if (error != 0)
        return error;
    fy_letter *letter = fy_letter_create(&objects->letters, envelope, message, fy_stamp(f));
    if (letter == NULL)
        return FERRY_ENOMEM;
    error = fy_record_deposit(f, record, letter);
    if (error != 0)
        fy_letter_destroy(&objects->letters, letter);
    return error;
}

/* Names the operation in the envelope. */
static __attribute__((noinline)) int start_op(ferry *f, int rank, const ferry_message *message,
                                              const ferry_track *track, fy_envelope *envelope)
{
    int error = fy_op_start(f, track, rank, message->tag, message->size_bytes, &envelope->op);
    const fy_op_about about = {.handler = message->handler,
                               .object = envelope->object,
                               .local_address = (void *)(uintptr_t)message->data};
    if (error == 0 && envelope->op != 0)
        fy_op_describe(f, envelope->op, &about);
    return error;
}

static int send_by(ferry *f, fy_entry *entry, int rank, const ferry_message *message,
                   const ferry_track *track)
{
    fy_objects *objects = fy_objects_of(f);
    fy_envelope envelope = {.object = {entry->object},
                            .origin = objects->rank,
                            .sequence = entry->sequence,
                            .movement = entry->movement};
    int error = track == NULL ? 0 : start_op(f, rank, message, track, &envelope);
    if (error != 0)
        return error;
    if (envelope.op != 0)
        fy_op_submitted(f, envelope.op); /* a message to an object here may end at once */
    fy_work_created(f, 1);
    error = entry->record != NULL ? send_here(f, entry->record, &envelope, message)
                                  : fy_message_post(f, rank, &envelope, message);
    if (error != 0) {
        fy_work_finished(f, 1);
        if (envelope.op != 0)
            fy_op_drop(f, envelope.op);
        return error == FERRY_ENOMEM
                   ? fy_fail(f, error, "object_send: no memory for %zu bytes", message->size_bytes)
                   : error;
    }
    entry->sequence++;
    fy_stats(f)->messages_sent++;
    return 0;
}

int ferry_object_send(ferry *f, ferry_object object, const ferry_message *message,
                      const ferry_track *track)
{
    fy_objects *objects = fy_objects_of(f);
    int error = check(f, object, message);
    if (error != 0)
        return error;
    fy_entry *entry = fy_entry_find(objects, object);
    int rank = way_to(objects, object, entry);
    if (!fy_in_handler(f) && pace(f, rank, message->size_bytes)) {
        entry = fy_entry_find(objects, object);
        rank = way_to(objects, object, entry);
    }
    if (rank < 0)
        return fy_fail(f, FERRY_ENOENT, "object_send: object %016llx does not exist",
                       (unsigned long long)object.word);
    if (entry == NULL) {
        error = fy_entry_make(objects, object, &entry);
        if (error != 0)
            return fy_fail(f, error, "object_send: no memory for the directory");
    }
    return send_by(f, entry, rank, message, track);
}
