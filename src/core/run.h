/* Run: handlers, callbacks and tasks run as application code. The account of the rank and the port
 * learn of it. */
#ifndef FY_RUN_H
#define FY_RUN_H

#include "base/shared.h"
#include "core/head.h"

/* Runs `call` as application code: sets depth, activity, stats and what the rank is doing. */
typedef void fy_call(ferry *f, void *arg);
FY_SHARED void fy_run(ferry *f, fy_doing what, uint16_t handler, fy_call *call, void *arg);

/* Tells the port what the rank is doing, and since when (0: not known). */
void fy_doing_tell(ferry *f, fy_doing doing, uint16_t handler, uint64_t since_ns);

/* The rank is doing so from now on. Nothing changes in a batch of messages for one handler. */
void fy_doing_set(ferry *f, fy_doing doing, uint16_t handler);

/* fy_doing_set, where each message needs it. */
static inline void fy_doing_change(ferry *f, fy_doing doing, uint16_t handler)
{
    fy_head *head = (fy_head *)(void *)f;
    if (head->account.doing == doing && head->account.told == handler + 1u)
        return;
    head->account.doing = doing;
    head->account.told = handler + 1u;
    if (head->note != NULL)
        fy_doing_note_write(head->note, doing, handler, 0);
    else
        fy_doing_tell(f, doing, handler, 0);
}

/* The steps of fy_run before and after a task. */
void fy_task_begin(ferry *f, uint16_t handler);
void fy_task_end(ferry *f);

/* fy_run inline, while neither the time of handlers nor a profile of tasks is taken. The caller
 * makes the call between the two functions. False: the caller must use fy_run. */
static inline bool fy_run_begin(ferry *f, fy_doing what, uint16_t handler)
{
    fy_head *head = (fy_head *)(void *)f;
    if (what == FY_DOING_TASK ? head->profile != NULL : head->account.timed)
        return false;
    if (what == FY_DOING_TASK) {
        fy_task_begin(f, handler);
        return true;
    }
    head->depth++;
    head->done++;
    fy_doing_change(f, what, handler);
    return true;
}

static inline void fy_run_end(ferry *f, fy_doing what)
{
    if (what == FY_DOING_TASK)
        fy_task_end(f);
    else
        ((fy_head *)(void *)f)->depth--;
}

/* Between these two the runtime itself sends as a handler does: no call waits. The account of the
 * time, and what the rank is doing, stay as they are. */
static inline void fy_nowait_begin(ferry *f)
{
    ((fy_head *)(void *)f)->depth++;
}

static inline void fy_nowait_end(ferry *f)
{
    ((fy_head *)(void *)f)->depth--;
}

/* fy_run of a task opens a batch unless one is open, and closes it when enough time has passed.
 * While a batch is open, the next task costs less, if it runs immediately. Otherwise fy_batch_end
 * is called before anything else is done. */
static inline bool fy_batch_is_open(const ferry *f)
{
    return fy_head_of(f)->account.batch_tasks != 0;
}

void fy_batch_end(ferry *f);

#endif
