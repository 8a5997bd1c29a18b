/* Schedulers: what the writer of a scheduling policy needs. Users of a scheduler need balance.h
 * alone.
 *
 * A scheduler is a struct of functions. It sees the loads of objects and the other ranks, never the
 * messages of the program. prema.txt 5.4.2.1. */
#ifndef FERRY_SCHEDULER_H
#define FERRY_SCHEDULER_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A scheduled object as its scheduler (balance.h) sees it. */
typedef struct ferry_schedulable {
    struct ferry_schedulable *prev,
        *next; /* links of the scheduler, from `activate` until the object leaves */
    ferry_object object;
    double load;      /* sum over its pending tasks */
    uint32_t pending; /* number of pending tasks */
    bool queued;      /* whether it is in a list of the scheduler, which sets this; it must be
                         false when the object moves */
    uint8_t place;    /* a small number of the scheduler */
    double mark;      /* a number of the scheduler */
    bool arrived;     /* in activate: it has just come from another rank */
} ferry_schedulable;

/* The rank as its scheduler sees it. */
typedef struct ferry_scheduling ferry_scheduling;

#define FERRY_SCHEDULER_WORDS 3

/* A scheduling policy. Every function runs under the rank's balancing lock, on the application
 * thread or the helper thread, so it only computes. It never waits, and it calls none of Ferry's
 * functions but those of this header. In `activate`, `notify` and `next`, calls that wait return
 * FERRY_ESTATE. prema.txt 5.4.2.1, Table 5.5. */
typedef struct ferry_scheduler {
    size_t size; /* sizeof(ferry_scheduler) */
    const char *name;
    /* Makes the policy's state. Returns 0 or FERRY_E...; another number counts as an error. */
    int (*create)(ferry_scheduling *s, void **state);
    void (*destroy)(ferry_scheduling *s, void *state);
    /* Picks the object whose oldest task runs next, and unlinks it; NULL: there is none. The
     * application thread calls it when it is about to run a task. This is the place to ask other
     * ranks for work. */
    ferry_schedulable *(*next)(ferry_scheduling *s, void *state);
    /* `item` is new here: it was created, has arrived, has ended its task, is given back by the
     * program (ferry_object_data), or could not be sent. It may have pending tasks. */
    void (*activate)(ferry_scheduling *s, void *state, ferry_schedulable *item);
    /* A task was added to `item`, which is here and not running. */
    void (*notify)(ferry_scheduling *s, void *state, ferry_schedulable *item);
    /* The program destroys or moves `item`: unlink it, and keep no pointer to it. If its own
     * handler does so, `item` is the running one. */
    void (*remove)(ferry_scheduling *s, void *state, ferry_schedulable *item);
    /* Whether no object here has a pending task that may run. */
    bool (*empty)(ferry_scheduling *s, void *state);
    /* A message from the scheduler of rank `source`, sent by ferry_scheduling_send there. */
    void (*message)(ferry_scheduling *s, void *state, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS]);
    /* Called at the time given to ferry_scheduling_wake. May be NULL. */
    void (*wake)(ferry_scheduling *s, void *state);
    /* Called when the ranks that take objects have changed (ferry_scheduling_accepts). A rank that
     * has gone will not answer. A rank that has come knows nothing of earlier messages. Each rank
     * learns of the change at a time of its own. May be NULL: then objects sent to a rank that has
     * gone come back, and ferry_scheduling_accepts returns false for it after a while. */
    void (*members)(ferry_scheduling *s, void *state);
    /* The item with a pending task that `next` would return after `after`, or first if `after` is
     * NULL. NULL: there is none. A good guess is enough: a store (store.h) reads objects from disk
     * in this order. May be NULL: then a store reads objects when `next` returns them. */
    ferry_schedulable *(*ahead)(ferry_scheduling *s, void *state, const ferry_schedulable *after);
} ferry_scheduler;

#define FERRY_SCHEDULER_DEFAULTS                                                                   \
    {                                                                                              \
        sizeof(ferry_scheduler), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
            NULL                                                                                   \
    }

/* A scheduler may call these, only from inside its functions. [either thread, lock held | never
 * blocks] */

/* Returns this rank's number, ferry_scheduling_ranks what ferry_ranks does, and
 * ferry_scheduling_now the time of ferry_now. */
FERRY_API int ferry_scheduling_rank(const ferry_scheduling *s);
FERRY_API int ferry_scheduling_ranks(const ferry_scheduling *s);
FERRY_API uint64_t ferry_scheduling_now(const ferry_scheduling *s);

/* Whether `rank` accepts objects, and how many ranks do: all ranks but this one that are in the job
 * and do not leave. Use these if ranks join and leave (member.h). An object sent to a rank that
 * does not accept it comes back. */
FERRY_API bool ferry_scheduling_accepts(const ferry_scheduling *s, int rank);
FERRY_API int ferry_scheduling_acceptor_count(const ferry_scheduling *s);

/* A rank that accepts objects, by its distance. The ranks form a ring in the order of their
 * numbers: distance 1 is the next rank after this one, ferry_scheduling_acceptor_count the rank
 * before it. -1: there is none. The answers change only before a call of `members`, if that is not
 * NULL. */
FERRY_API int ferry_scheduling_acceptor(const ferry_scheduling *s, int distance);

/* Whether migration is on (ferry_balance_enable). */
FERRY_API bool ferry_scheduling_is_on(const ferry_scheduling *s);

/* Whether the helper thread calls schedulers while a task runs. If not, a rank answers after the
 * end of its task, so a late answer is no sign that the message was lost. */
FERRY_API bool ferry_scheduling_preempts(const ferry_scheduling *s);

/* Pseudo-random numbers, the same for the same seed and rank. */
FERRY_API uint64_t ferry_scheduling_random(ferry_scheduling *s);

/* A parameter of the scheduler: the number in the variable FERRY_SCHEDULER_<NAME>, from `low` to
 * `high`; `otherwise` if it is not set. Ask for all parameters in `create`. If a value is wrong,
 * the call that creates the scheduler fails with FERRY_EINVAL and names it. Rank 0 warns of such
 * variables that `create` has not asked for. After `create` a wrong value gives `otherwise`. */
FERRY_API double ferry_scheduling_parameter(ferry_scheduling *s, const char *name, double otherwise,
                                            double low, double high);

/* Returns a parameter as ferry_scheduling_parameter, for a whole number: a count, or a switch from
 * 0 to 1. A fraction is refused like a value outside the range. */
FERRY_API int ferry_scheduling_count(ferry_scheduling *s, const char *name, int otherwise, int low,
                                     int high);

/* Sends a message of FERRY_SCHEDULER_WORDS words to the scheduler of another rank, `rank`. Messages
 * and objects arrive in any order, because two threads send them. If a rank has called this 16,384
 * times since its last task, and does so 16,384 times more within a second, it logs once that its
 * scheduler asks without a pause. */
FERRY_API void ferry_scheduling_send(ferry_scheduling *s, int rank,
                                     const uint64_t words[FERRY_SCHEDULER_WORDS]);

/* How much `item`, which is at rest here, should be on `rank`; greater is better. The type's
 * `priority` gives it, else the priority given to ferry_balance_add, else load * (1 + the number of
 * its dependencies on `rank`). */
FERRY_API double ferry_scheduling_priority(ferry_scheduling *s, const ferry_schedulable *item,
                                           int rank);

/* How hard `item`, which is at rest here, is to move: what its type's `granularity` returns, else
 * the value given to ferry_balance_add. */
FERRY_API double ferry_scheduling_granularity(ferry_scheduling *s, const ferry_schedulable *item);

/* Sends `item`, which must be unlinked, to `rank`, with its tasks. It then no longer belongs to
 * this scheduler. If migration is off, or it cannot be sent, `activate` gives it back. If that call
 * of `activate` moves it again, and it again cannot be sent, one of its tasks runs before the next
 * `activate`. If `rank` is this rank, it is packed and unpacked in place, and given back. An item
 * that is not with this scheduler, or whose `queued` is true, stays where it is. The first fault of
 * each kind is logged. */
FERRY_API void ferry_scheduling_migrate(ferry_scheduling *s, ferry_schedulable *item, int rank);

/* How long this rank has recently taken to pack and send an object, in ns. 0: it has sent none. A
 * move of a large object may take longer than the tasks that it brings. */
FERRY_API uint64_t ferry_scheduling_move_ns(const ferry_scheduling *s);

/* Asks for `wake` to be called at `time_ns` of ferry_scheduling_now; 0 cancels that. */
FERRY_API void ferry_scheduling_wake(ferry_scheduling *s, uint64_t time_ns);

/* A shared object named by FERRY_SCHEDULER or ferry_balance_choose defines a `const
 * ferry_scheduler` under this name. */
#define FERRY_SCHEDULER_SYMBOL "ferry_scheduler_plugin"

/* Registers a scheduler on this rank by its name, for FERRY_SCHEDULER and ferry_options. Call it on
 * every rank before the first ferry_balance_add. Keeps `scheduler` until ferry_close. FERRY_EINVAL:
 * a function is missing, the name is empty or has a '/' in it, or a scheduler of that name exists.
 * FERRY_ENOMEM: 32 schedulers are registered, Ferry's own among them. [app thread | never blocks]
 */
FERRY_API FERRY_MUST_USE int ferry_scheduler_register(ferry *f, const ferry_scheduler *scheduler);

#ifdef __cplusplus
}
#endif
#endif
