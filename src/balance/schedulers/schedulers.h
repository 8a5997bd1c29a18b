/* Schedulers: the default, which is in every program. All others have their place in bundle/. */
#ifndef FY_SCHEDULERS_H
#define FY_SCHEDULERS_H

#include <ferry/scheduler.h>

extern const ferry_scheduler fy_scheduler_ferry;

/* ferry_scheduling_send. `quietly`: if a task runs there, the words may wait until it has ended, or
 * until something else wakes the helper. */
void fy_scheduling_tell(ferry_scheduling *s, int rank, const uint64_t words[FERRY_SCHEDULER_WORDS],
                        bool quietly);

/* A task may run on this rank: the helper carries out now what the scheduler has ordered, and looks
 * at its timer. Otherwise both wait for the end of the task. */
void fy_scheduling_hurry(ferry_scheduling *s);

/* The time up to now, in ns, that the helper has computed, and that the application thread has
 * taken to send words and objects. The running task may have been delayed by that. */
uint64_t fy_scheduling_taken_ns(const ferry_scheduling *s);

/* The time that it takes to send words to another rank, in ns; 0: none were sent since the first
 * call. */
uint64_t fy_scheduling_word_ns(ferry_scheduling *s);

/* The time from the arrival of one object that was given away to that of the next, in ns, as far as
 * other ranks have told. 0: it is short, or there is no preemption; UINT64_MAX: nothing is known.
 * `*away` becomes the number of objects that have not arrived. While the time is a small part of
 * `task_ns`, few objects that are given away after the call are measured. */
uint64_t fy_scheduling_travel_ns(ferry_scheduling *s, uint64_t task_ns, uint32_t *away);

#endif
