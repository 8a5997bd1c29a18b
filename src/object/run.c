#include "core/run.h"
#include "core/control.h"
#include "core/fail.h"
#include "core/handler.h"
#include "core/operation.h"
#include "object/cost.h"
#include "object/delivery.h"
#include "object/ends.h"
#include "object/entry.h"
#include "object/execution.h"
#include "object/moves.h"
#include "object/store_calls.h"

#include <math.h>

typedef struct handler_call {
    fy_record *record;
    ferry_object_fn *fn;
    int source;
    const ferry_message *message;
} handler_call;

static void call_handler(ferry *f, void *arg)
{
    const handler_call *call = arg;
    call->fn(f, call->record->object, call->record->data, call->source, call->message);
}

/* Makes the scheduler forget the record, which it may keep as the one that runs. Otherwise it would
 * take the next record at the same address for this one. */
static void record_forget(ferry *f, fy_record *record)
{
    if (!record->scheduled)
        return;
    fy_control_lock(f);
    fy_objects_of(f)->watch->forget(f, record);
    fy_control_unlock(f);
}

__attribute__((cold)) void fy_record_apply(ferry *f, fy_record *record)
{
    int target = record->target;
    record_forget(f, record);
    if (record->destroy_pending) {
        fy_record_end(f, record);
        return;
    }
    uint64_t name = record->object.word;
    record->target = -1;
    if (fy_record_move(f, record, target) != 0)
        fy_log(f, "object %016llx stays: it cannot be sent to rank %d", (unsigned long long)name,
               target);
}

bool fy_record_run(ferry *f, fy_record *record, fy_doing what, const fy_envelope *envelope,
                   const ferry_message *message)
{
    uint16_t index = message->handler.index;
    handler_call call = {.record = record,
                         .fn = (ferry_object_fn *)fy_handler_find(f, index, FY_HANDLER_OBJECT),
                         .source = envelope->origin,
                         .message = message};
    fy_objects *objects = fy_objects_of(f);
    void *held = envelope->op == 0 ? NULL : fy_op_end_hold(f);
    int error = record->stored != NULL ? objects->store->fetch(f, record) : 0;
    if (error != 0)
        call.fn = NULL;
    else if (call.fn == NULL)
        error = FERRY_ENOENT;
    objects->running = record;
    if (call.fn != NULL) {
        uint64_t start_ns = fy_cost_now(objects);
        fy_run(f, what, index, call_handler, &call);
        if (objects->costs != NULL)
            fy_cost_handled(objects, envelope, index, start_ns);
        fy_stats(f)->messages_handled++;
    }
    objects->running = NULL;
    if (held != NULL)
        fy_op_end_release(f, held);
    fy_message_end(f, envelope, error);
    if (!record->destroy_pending && record->target < 0)
        return true;
    fy_record_apply(f, record);
    return false;
}

static inline bool run_queued(ferry *f, fy_record *record, fy_doing what, fy_queued_message *queued)
{
    fy_objects *objects = fy_objects_of(f);
    if (objects->costs != NULL)
        objects->costs->trail.load = queued->load;
    bool rests = fy_record_handle(f, record, what, &queued->envelope, &queued->message);
    fy_queued_end(&objects->messages, queued);
    return rests;
}

bool fy_queued_run(ferry *f, fy_record *record, fy_doing what, fy_queued_message *queued)
{
    return run_queued(f, record, what, queued);
}

static int place_of(const void *context, uint64_t object)
{
    const fy_objects *objects = context;
    const ferry_object named = {object};
    if (!fy_object_is_name(objects, named))
        return -1;
    return fy_object_place(objects, named, fy_entry_find(objects, named));
}

/* Looks up where the dependencies of a record are. [application thread] */
static void record_place(const fy_objects *objects, fy_record *record)
{
    if (record->affinity != NULL && record->affinity->dependency_count != 0)
        fy_affinity_place(record->affinity, place_of, objects);
}

void fy_record_activate(ferry *f, fy_record *record)
{
    fy_objects *objects = fy_objects_of(f);
    record_place(objects, record);
    record->state = FY_RESTING;
    objects->watch->activate(f, record);
}

void fy_record_rest(ferry *f, fy_record *record)
{
    fy_objects *objects = fy_objects_of(f);
    if (record->scheduled) {
        fy_control_lock(f);
        fy_record_activate(f, record);
        fy_control_unlock(f);
        return;
    }
    record->state = FY_RESTING;
    if (record->pending.count != 0)
        fy_list_insert(&objects->ready, &record->link);
    fy_layer_due(f, FY_LAYER_OBJECT);
}

__attribute__((cold)) int fy_failed_tell(ferry *f)
{
    fy_objects *objects = fy_objects_of(f);
    int count = 0;
    for (; objects->failed.head != NULL && fy_op_end_reserve(f); count++) {
        fy_queued_message *queued = fy_queued_list_pop(&objects->failed);
        if (queued->error == FERRY_ENOENT)
            fy_message_bounce(f, &queued->envelope, queued->message.handler);
        else
            fy_message_end(f, &queued->envelope, queued->error);
        fy_queued_destroy(&objects->messages, queued);
    }
    return count;
}

__attribute__((cold)) void fy_queued_list_fail(ferry *f, fy_queued_list *messages, int error)
{
    fy_layer_due(f, FY_LAYER_OBJECT);
    for (fy_queued_message *queued; (queued = fy_queued_list_pop(messages)) != NULL;) {
        queued->error = (int16_t)error;
        fy_queued_list_push(&fy_objects_of(f)->failed, queued);
    }
    (void)fy_failed_tell(f);
}

/* The creator learns of the end before any message that bounces here can reach it: both travel in
 * the data lane. */
__attribute__((cold)) void fy_record_end(ferry *f, fy_record *record)
{
    fy_objects *objects = fy_objects_of(f);
    fy_object_bury(f, fy_entry_find(objects, record->object), record);
    objects->count--;
    fy_queued_list_fail(f, &record->pending, FERRY_ENOENT);
    fy_queued_list_fail(f, &record->early, FERRY_ENOENT);
    record->type->ops.destroy(f, record->data);
    fy_record_destroy(objects, record);
}

/* Runs some of the messages that wait for an object. Returns how many. QUEUED_MAX is more than one
 * look at the port takes in. Otherwise the queue would grow as long as messages come. */
static int run_some(ferry *f, fy_record *record)
{
    enum { QUEUED_MAX = 128 };
    int count = 0;
    bool rests = true;
    while (rests && record->pending.count != 0 && count < QUEUED_MAX) {
        /* The reserve is for the notice to the sender that its message has been handled. */
        if (record->pending.head->envelope.op != 0 && !fy_op_end_reserve(f))
            break;
        fy_queued_message *queued = fy_queued_list_pop(&record->pending);
        record->state = FY_RUNNING;
        rests = run_queued(f, record, FY_DOING_HANDLER, queued);
        count++;
    }
    if (rests)
        fy_record_rest(f, record);
    return count;
}

int fy_ready_run(ferry *f)
{
    fy_objects *objects = fy_objects_of(f);
    fy_list_move(&objects->round, &objects->ready);
    int count = 0;
    for (fy_link *link; (link = fy_list_pop(&objects->round)) != NULL;)
        count += run_some(f, (fy_record *)(void *)link);
    return count;
}

__attribute__((cold)) int fy_pins_drop(ferry *f)
{
    fy_objects *objects = fy_objects_of(f);
    int count = 0;
    for (fy_link *link; (link = fy_list_pop(&objects->pinned)) != NULL; count++)
        fy_record_rest(f, (fy_record *)(void *)link);
    return count;
}

double fy_record_load(ferry *f, const fy_record *record, const ferry_message *message)
{
    if (record->data == NULL || record->type->ops.load == NULL)
        return record->load;
    double load = record->type->ops.load(f, record->data, message);
    return load >= 0 && isfinite(load) ? load : 0;
}

__attribute__((cold)) void fy_record_weigh(ferry *f, fy_record *record)
{
    record->unasked = 0;
    record->item.pending = record->pending.count;
    record->item.load = 0;
    for (fy_queued_message *queued = record->pending.head; queued != NULL; queued = queued->next) {
        queued->load = fy_record_load(f, record, &queued->message);
        record->item.load += queued->load;
    }
}

__attribute__((cold)) void fy_record_schedule(ferry *f, fy_record *record)
{
    for (fy_queued_message *queued = record->pending.head; queued != NULL; queued = queued->next)
        fy_queued_uncount(&fy_objects_of(f)->messages, queued);
    fy_record_weigh(f, record);
}

void fy_record_task_added(ferry *f, fy_record *record, const fy_queued_message *queued)
{
    record->item.pending++;
    record->item.load += queued->load;
    if (record->state == FY_RESTING)
        fy_objects_of(f)->watch->notify(f, record);
}

fy_queued_message *fy_record_task_take(fy_record *record)
{
    fy_queued_message *queued = fy_queued_list_pop(&record->pending);
    if (queued == NULL)
        return NULL;
    record->item.pending--;
    record->item.load -= queued->load;
    /* Rounding errors keep a sum of fractions from coming back to zero. */
    if (record->item.pending == 0 || record->item.load < 0)
        record->item.load = 0;
    return queued;
}
