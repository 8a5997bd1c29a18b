#include "balance/balance.h"

/* Picks the next task. Whether the scheduler has left something to do goes to `*decided`. */
static fy_record *pick(ferry_scheduling *s, fy_letter **letter, bool *decided)
{
    fy_record *record = NULL;
    fy_control_lock(s->f);
    fy_balance_wake(s);
    uint64_t entered = fy_scheduler_enter(s, FY_ON_TASK);
    ferry_schedulable *item = s->scheduler->next(s, s->state);
    fy_scheduler_leave(s, entered);
    if (item != NULL) {
        s->load -= item->load;
        record = fy_record_of(item);
        record->state = FY_RUNNING;
        *letter = fy_record_task_take(record);
    }
    *decided = s->note_count != 0 || !fy_list_empty(&s->outbound);
    fy_control_unlock(s->f);
    return record;
}

int fy_task_progress(ferry *f)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    if (s->scheduler == NULL)
        return 0;
    fy_letter *letter = NULL;
    bool decided = false;
    fy_record *record = pick(s, &letter, &decided);
    if (decided)
        fy_balance_flush(s, FY_APP);
    if (record == NULL)
        return 0;
    if (letter == NULL) {
        fy_log(f, "scheduler %s picked an object without tasks", s->scheduler->name);
        fy_record_rest(f, record);
        return 0;
    }
    fy_helper_serve(s);
    fy_letter_run(f, record, FY_DOING_TASK, letter);
    fy_helper_rest(s);
    return 1;
}
