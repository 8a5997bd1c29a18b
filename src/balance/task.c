#include "balance/balance.h"
#include "core/control.h"
#include "core/fail.h"
#include "core/operation.h"
#include "core/run.h"
#include "object/execution.h"

/* A task that was picked, and what the scheduler has left to do besides. */
typedef struct choice {
    fy_record *record; /* NULL: there is none */
    fy_queued_message *queued;
    bool decided; /* words to send or objects to ship */
    bool timer;   /* the helper does not know of it */
} choice;

/* The scheduler has picked an object that it does not have. Returns the object if it has not begun
 * to leave, else NULL. [lock held] */
static __attribute__((cold)) fy_record *take_back(ferry_scheduling *s, fy_record *record)
{
    fy_scheduler_misuse(s, FY_MISUSE_STRANGER, record->object.word, s->rank);
    if (record->state != FY_MIGRATING || fy_list_empty(&record->link))
        return NULL;
    fy_list_remove(&record->link);
    fy_travel_end(s, record->travels);
    record->travels = false;
    record->target = -1;
    return record;
}

/* The scheduler has picked an object without tasks. Makes it forget the object, or it might pick
 * it forever. [lock held] */
static __attribute__((cold)) void forget_idle(ferry_scheduling *s, fy_record *record)
{
    fy_scheduler_misuse(s, FY_MISUSE_IDLE, record->object.word, s->rank);
    record->item.pending = 0;
    s->scheduler->remove(s, s->state, &record->item);
}

/* Lets `done` rest, if there is one, and picks the next task, under one lock. `now_ns`: a reading
 * of the clock; 0: none. */
static choice pick(ferry_scheduling *s, fy_record *done, uint64_t now_ns)
{
    choice c = {0};
    fy_control_lock(s->f);
    if (done != NULL)
        fy_record_activate(s->f, done);
    fy_balance_wake(s, now_ns);
    uint64_t entered = fy_scheduler_enter(s, FY_ON_TASK);
    fy_nowait_begin(s->f);
    ferry_schedulable *item = s->scheduler->next(s, s->state);
    fy_nowait_end(s->f);
    fy_scheduler_leave(s, entered);
    if (item == NULL) {
        c.record = (fy_record *)(void *)fy_list_pop(&s->refused);
    } else if (fy_record_of(item)->state == FY_RESTING) {
        s->load -= item->load;
        s->tasks -= item->pending;
        c.record = fy_record_of(item);
    } else {
        c.record = take_back(s, fy_record_of(item));
    }
    if (c.record != NULL) {
        s->restless = 0;
        c.record->state = FY_RUNNING;
        c.queued = fy_record_task_take(c.record);
        if (c.queued == NULL)
            forget_idle(s, c.record);
    } else if (s->calm && s->tasks == 0) {
        /* relaxed: as in fy_scheduler_rouse */
        atomic_store_explicit(&s->rests_until_ns, s->wake_ns != 0 ? s->wake_ns : UINT64_MAX,
                              memory_order_relaxed);
    }
    c.decided = s->note_count != 0 || !fy_list_empty(&s->outbound);
    c.timer = fy_helper_oversleeps(s);
    fy_control_unlock(s->f);
    if (c.decided)
        fy_balance_flush(s, FY_APP);
    return c;
}

/* Whether anything but tasks has come. Messages for the scheduler count too. The helper takes them,
 * but it may have to wait for this very processor, and a rank that asks for work must not wait for
 * the end of the batch. */
static bool is_disturbed(const ferry_scheduling *s, int count)
{
    enum { LOOK_EVERY = 16 };
    const fy_port_ops *ops = s->port->ops;
    /* relaxed: a frame that is missed now is found after the batch. */
    return atomic_load_explicit(&s->objects->mail, memory_order_relaxed) ||
           (count % LOOK_EVERY == 0 && (ops->transport.pending(s->port, FY_DATA) ||
                                        ops->transport.pending(s->port, FY_CONTROL)));
}

/* Whether the scheduler would have no task, and nothing else to do. Sets `*now_ns` if it had to
 * read the clock, else to 0. */
static inline bool rests(const ferry_scheduling *s, uint64_t *now_ns)
{
    /* relaxed: as in fy_scheduler_rouse */
    uint64_t until_ns = atomic_load_explicit(&s->rests_until_ns, memory_order_relaxed);
    *now_ns = until_ns == 0 || until_ns == UINT64_MAX ? 0 : s->port->ops->host.now(s->port);
    return *now_ns < until_ns;
}

int fy_task_progress(ferry *f)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    fy_record *done = NULL;
    int count = 0;
    if (s->scheduler == NULL) {
        fy_layer_rest(f, FY_LAYER_BALANCE);
        return 0;
    }
    uint64_t now_ns;
    if (rests(s, &now_ns))
        return 0;
    /* The sender of a task may have to learn of its end. */
    if (!fy_op_end_reserve(f))
        return 0;
    do {
        choice c = pick(s, done, now_ns);
        done = NULL;
        now_ns = 0;
        if (c.record == NULL)
            break;
        if (c.queued == NULL) {
            done = c.record;
            break;
        }
        if (count == 0)
            fy_helper_serve(s);
        else if (c.timer)
            s->port->ops->transport.wake(s->port, FY_HELPER);
        if (fy_queued_run(f, c.record, FY_DOING_TASK, c.queued)) {
            done = c.record;
            fy_record_worked(f, done);
        }
        count++;
    } while (fy_batch_is_open(f) && !is_disturbed(s, count) && fy_op_end_reserve(f));
    fy_batch_end(f);
    if (count != 0)
        fy_helper_rest(s);
    if (done != NULL)
        fy_record_rest(f, done);
    return count;
}
