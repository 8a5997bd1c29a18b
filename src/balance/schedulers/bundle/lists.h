/* Lists: functions that several schedulers of the bundle share. */
#ifndef FY_LISTS_H
#define FY_LISTS_H

#include "balance/schedulers/bundle/waiting.h"
#include "balance/schedulers/policy.h"

/* Four functions of a ferry_scheduler, for policies whose state comes from malloc and begins with a
 * fy_waiting_queue. */
void fy_policy_destroy(ferry_scheduling *s, void *state);
void fy_policy_remove(ferry_scheduling *s, void *state, ferry_schedulable *item);
bool fy_policy_empty(ferry_scheduling *s, void *state);
ferry_schedulable *fy_policy_ahead(ferry_scheduling *s, void *state,
                                   const ferry_schedulable *after);

/* Sends three words to the scheduler of `rank`. The other two convert a number to a word and
 * back. */
void fy_policy_tell(ferry_scheduling *s, int rank, uint64_t what, uint64_t a, uint64_t b);
uint64_t fy_word_of(double number);
double fy_number_of(uint64_t word);

#endif
