/* Execution: handlers run on the objects that are here. Messages to scheduled objects are tasks. */
#ifndef FY_OBJECT_EXECUTION_H
#define FY_OBJECT_EXECUTION_H

#include "core/handler.h"
#include "core/run.h"
#include "core/work.h"
#include "object/object.h"

/* Runs a message on its object, which is RUNNING. True: it is still RUNNING, and the caller lets it
 * rest. False: the handler has moved or destroyed it, and the record may be gone. */
bool fy_record_run(ferry *f, fy_record *record, fy_doing what, const fy_envelope *envelope,
                   const ferry_message *message);

/* Carries out what the handler has asked for: destroys or moves its object. */
void fy_record_apply(ferry *f, fy_record *record);

/* As fy_record_run, inline if no rank waits for the handler's end and nothing is counted. */
static inline bool fy_record_handle(ferry *f, fy_record *record, fy_doing what,
                                    const fy_envelope *envelope, const ferry_message *message)
{
    fy_objects *objects = fy_objects_of(f);
    uint16_t index = message->handler.index;
    fy_any_fn *fn = fy_handler_find(f, index, FY_HANDLER_OBJECT);
    if (fn == NULL || envelope->op != 0 || objects->watched || !fy_run_begin(f, what, index))
        return fy_record_run(f, record, what, envelope, message);
    objects->running = record;
    ((ferry_object_fn *)fn)(f, record->object, record->data, envelope->origin, message);
    objects->running = NULL;
    fy_run_end(f, what);
    fy_stats(f)->messages_handled++;
    fy_work_finished(f, 1);
    if (!record->destroy_pending && record->target < 0)
        return true;
    fy_record_apply(f, record);
    return false;
}

/* As fy_record_run for a queued message, which it frees. */
bool fy_queued_run(ferry *f, fy_record *record, fy_doing what, fy_queued_message *queued);

/* Makes an object of this thread RESTING: activates it, or makes it ready. */
void fy_record_rest(ferry *f, fy_record *record);

/* fy_record_rest, inline for an object without waiting messages. */
static inline void fy_record_rest_inline(ferry *f, fy_record *record)
{
    if (record->scheduled || record->pending.count != 0)
        fy_record_rest(f, record);
    else
        record->state = FY_RESTING;
}

/* fy_record_rest of a scheduled object. [lock held] */
void fy_record_activate(ferry *f, fy_record *record);

/* Ends an object, which is in no list: fails its queued messages, destroys its data, and reports
 * its end. */
void fy_record_end(ferry *f, fy_record *record);

/* Runs the oldest message of each ready object. Returns how many. */
int fy_ready_run(ferry *f);

/* Unpins the pinned objects. Returns how many. */
int fy_pins_drop(ferry *f);

/* Adds a task's load to the account of a scheduled record and tells the watch. [lock held] */
void fy_record_task_added(ferry *f, fy_record *record, const fy_queued_message *queued);

/* The load of a queued message as a task of `record`, whose data is here. [application thread] */
double fy_record_load(ferry *f, const fy_record *record, const ferry_message *message);

/* The queued messages of `record` are tasks from now on. [application thread] */
void fy_record_schedule(ferry *f, fy_record *record);

/* Counts the tasks of a scheduled record that no scheduler has, and asks their loads. [application
 * thread] */
void fy_record_weigh(ferry *f, fy_record *record);

/* A task of `record` has run, and may have changed the loads of the tasks that wait. The type is
 * asked for them again: after each task if they are few, otherwise so seldom that each task takes
 * FY_LOADS_PER_TASK calls. [application thread] */
enum { FY_LOADS_PER_TASK = 16 };
static inline void fy_record_worked(ferry *f, fy_record *record)
{
    if (record->type->ops.load != NULL && record->item.pending != 0 &&
        ++record->unasked * FY_LOADS_PER_TASK >= record->item.pending)
        fy_record_weigh(f, record);
}

/* Takes the oldest task of a scheduled record out of its account. [lock held] */
fy_queued_message *fy_record_task_take(fy_record *record);

#endif
