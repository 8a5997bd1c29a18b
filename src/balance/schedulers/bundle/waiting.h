/* Waiting: the objects of a rank that have tasks and rest, in the order in which they got them, and
 * the sum of their loads. With `ordered` the heaviest object is known too. A heap beside the queue
 * holds the objects by load, so adding and removing take time in proportion to the logarithm of
 * their number.
 *
 * Invariants: an item is in the queue exactly if its `queued` is true. Its `mark` is then the load
 * that counts for it. With `ordered` its `mark` is its place in the heap, which has that load. */
#ifndef FY_WAITING_H
#define FY_WAITING_H

#include <ferry/scheduler.h>

/* An item in the heap. */
typedef struct fy_weighed {
    double load;
    uint64_t turn; /* of equal ones the latest goes first */
    ferry_schedulable *item;
} fy_weighed;

typedef struct fy_waiting {
    ferry_schedulable *first, *last;
    uint32_t count;
    ferry_schedulable *running; /* whose task runs, as the policy notes it; not in the queue */
    double load;                /* of those in the queue */
    bool ordered;               /* set while the queue is empty; false again without memory */
    fy_weighed *heap;           /* `count` of them, the heaviest first */
    uint32_t capacity;
    uint64_t turn;
} fy_waiting;

/* Appends `item` if it has tasks and is not in the queue. If it is in the queue, its present load
 * counts from now on. Returns whether it was appended. */
bool fy_waiting_add(fy_waiting *waiting, ferry_schedulable *item);

/* Takes `item` out when it is in the queue. */
void fy_waiting_remove(fy_waiting *waiting, ferry_schedulable *item);

/* Takes the first out; NULL when there is none. */
ferry_schedulable *fy_waiting_pop(fy_waiting *waiting);

/* The heaviest, the latest among equals; NULL when there is none. Without `ordered` it looks at
 * each. */
ferry_schedulable *fy_waiting_heaviest(const fy_waiting *waiting);

/* Sum of the loads of all or, with `skip`, of all but the first. */
double fy_waiting_load(const fy_waiting *waiting, bool skip);

/* Frees the heap. */
void fy_waiting_fini(fy_waiting *waiting);

#endif
