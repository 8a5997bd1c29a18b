/* Waiting: the objects of a rank that have tasks and rest, in the order in which they got them.
 *
 * Invariant: an item is in the queue exactly when its `queued` is true. */
#ifndef FY_WAITING_H
#define FY_WAITING_H

#include <ferry/balance.h>

typedef struct fy_waiting {
    ferry_schedulable *first, *last;
    uint32_t count;
    ferry_schedulable *running; /* whose task runs, as the policy notes it; not in the queue */
} fy_waiting;

/* Appends `item` when it has tasks and is not in the queue. Returns whether it did. */
bool fy_waiting_add(fy_waiting *waiting, ferry_schedulable *item);

/* Takes `item` out when it is in the queue. */
void fy_waiting_remove(fy_waiting *waiting, ferry_schedulable *item);

/* Takes the first out; NULL when there is none. */
ferry_schedulable *fy_waiting_pop(fy_waiting *waiting);

/* The heaviest of those that came last, the latest among equals; NULL when there is none. Looks at
 * a bounded number. */
ferry_schedulable *fy_waiting_heaviest(const fy_waiting *waiting);

/* Sum of the loads of all but the first `skip`. An estimate when there are many. */
double fy_waiting_load(const fy_waiting *waiting, uint32_t skip);

#endif
