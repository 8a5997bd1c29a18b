/* Waiting: the objects of a rank that have tasks and do not run, in the order in which they got
 * their tasks, and the sum of their loads. With `ordered` the heaviest object is known too: a heap
 * beside the queue holds the objects by load. So adding and removing take time in proportion to the
 * logarithm of their number.
 *
 * Invariants: an item is in the queue exactly if its `queued` is true. Without `ordered` its `mark`
 * is then the load with which it is counted. With `ordered` its `mark` is its index in the heap,
 * whose entry has that load. */
#ifndef FY_WAITING_H
#define FY_WAITING_H

#include <ferry/scheduler.h>

/* An item in the heap. */
typedef struct fy_weighed {
    double load;
    uint64_t turn; /* among equal loads the greatest turn comes first */
    ferry_schedulable *item;
} fy_weighed;

typedef struct fy_waiting_queue {
    ferry_schedulable *first, *last;
    uint32_t count;
    ferry_schedulable *running; /* its task runs, as the policy says; not in the queue */
    double load;                /* sum of the loads in the queue */
    bool ordered;     /* set it while the queue is empty; false again if memory is short */
    fy_weighed *heap; /* `count` entries, the heaviest first */
    uint32_t capacity;
    uint64_t turn;
} fy_waiting_queue;

/* Appends `item` if it has tasks and is not in the queue. If it is in the queue, its present load
 * counts from now on. Returns whether it was appended. */
bool fy_waiting_add(fy_waiting_queue *waiting, ferry_schedulable *item);

/* Removes `item`, if it is in the queue. */
void fy_waiting_remove(fy_waiting_queue *waiting, ferry_schedulable *item);

/* Removes and returns the first item. NULL: the queue is empty. */
ferry_schedulable *fy_waiting_pop(fy_waiting_queue *waiting);

/* The heaviest item, of equal ones the one added last; NULL: the queue is empty. Without `ordered`
 * it looks at every item. */
ferry_schedulable *fy_waiting_heaviest(const fy_waiting_queue *waiting);

/* Sum of the loads of all items; with `skip`, of all but the first. */
double fy_waiting_load(const fy_waiting_queue *waiting, bool skip);

/* Frees the heap. */
void fy_waiting_fini(fy_waiting_queue *waiting);

#endif
