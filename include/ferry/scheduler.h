/* Schedulers: what the writer of a scheduling policy needs. Users of a scheduler need balance.h
 * alone.
 *
 * A scheduler is a struct of functions. It sees the loads of objects and the other ranks, never the
 * application's messages. prema.txt 5.4.2.1. */
#ifndef FERRY_SCHEDULER_H
#define FERRY_SCHEDULER_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A scheduled object as its scheduler (balance.h) sees it. */
typedef struct ferry_schedulable {
    struct ferry_schedulable *prev,
        *next; /* the scheduler's own links, between activate and its leaving */
    ferry_object object;
    double load;      /* sum over its pending tasks */
    uint32_t pending; /* number of pending tasks */
    bool queued;      /* the scheduler's own flag */
    double mark;      /* the scheduler's own number */
    bool arrived;     /* in activate: it has just come from another rank */
} ferry_schedulable;

/* The rank as its scheduler sees it. */
typedef struct ferry_scheduling ferry_scheduling;

#define FERRY_SCHEDULER_WORDS 3

/* A scheduling policy. Every function runs under the rank's balancing lock, on the application
 * thread or the helper thread, so it computes and returns; it never waits. prema.txt 5.4.2.1,
 * Table 5.5. */
typedef struct ferry_scheduler {
    size_t size; /* sizeof(ferry_scheduler) */
    const char *name;
    /* Makes the policy's state. 0 or FERRY_E... */
    int (*create)(ferry_scheduling *s, void **state);
    void (*destroy)(ferry_scheduling *s, void *state);
    /* Picks the object whose oldest task runs next, and unlinks it; NULL when there is none. Called
     * by the application thread when it is about to run a task: the place to ask others for work.
     */
    ferry_schedulable *(*next)(ferry_scheduling *s, void *state);
    /* `item` is new here: created, arrived, done with its task, let go by the application, or back
     * because it could not be sent. It may have pending tasks. */
    void (*activate)(ferry_scheduling *s, void *state, ferry_schedulable *item);
    /* A task was added to `item`, which is here and not running. */
    void (*notify)(ferry_scheduling *s, void *state, ferry_schedulable *item);
    /* `item` leaves for a reason of the application (destroyed, moved): unlink it, and keep no
     * pointer to it. When its own handler asked for that, it is the one that runs. */
    void (*remove)(ferry_scheduling *s, void *state, ferry_schedulable *item);
    /* Whether no object here has a pending task that may run. */
    bool (*empty)(ferry_scheduling *s, void *state);
    /* A message from the scheduler of rank `source`, sent by ferry_scheduling_send there. */
    void (*message)(ferry_scheduling *s, void *state, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS]);
    /* Called when the time asked for by ferry_scheduling_wake has come; may be NULL. */
    void (*wake)(ferry_scheduling *s, void *state);
    /* Called when the ranks that take objects have changed (ferry_scheduling_accepts). A rank that
     * has gone will not answer. A rank that has come knows nothing of earlier messages. Each rank
     * learns of the change at a time of its own. May be NULL: then ferry_scheduling_accepts says no
     * after a while, and objects that were sent to a rank that has gone come back. */
    void (*members)(ferry_scheduling *s, void *state);
    /* The item that `next` would give once `after` has been, which has a pending task, or first of
     * all if `after` is NULL; NULL: there is none. A good guess will do: a store (store.h) reads
     * objects from disk in this order. May be NULL: then it reads them when `next` gives them. */
    ferry_schedulable *(*ahead)(ferry_scheduling *s, void *state, const ferry_schedulable *after);
} ferry_scheduler;

#define FERRY_SCHEDULER_DEFAULTS                                                                   \
    {                                                                                              \
        sizeof(ferry_scheduler), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
            NULL                                                                                   \
    }

/* A scheduler may call these, from inside its functions only. [either thread, lock held | never
 * blocks] */

/* This rank's number, how many ranks the job has, and the time of ferry_now. */
FERRY_API int ferry_scheduling_rank(const ferry_scheduling *s);
FERRY_API int ferry_scheduling_ranks(const ferry_scheduling *s);
FERRY_API uint64_t ferry_scheduling_now(const ferry_scheduling *s);

/* Whether `rank` takes objects, and how many ranks do: all but this one that are in the job and
 * stay. A scheduler asks these in a job whose ranks come and go (member.h). An object that it sends
 * to another rank comes back to it. */
FERRY_API bool ferry_scheduling_accepts(const ferry_scheduling *s, int rank);
FERRY_API int ferry_scheduling_acceptor_count(const ferry_scheduling *s);

/* A rank that takes objects, by its distance. The ranks form a ring in the order of their numbers:
 * distance 1 is the next rank after this one, ferry_scheduling_acceptor_count the rank before it.
 * -1: there is none. The answers change only before a call of `members`, if that is not NULL. */
FERRY_API int ferry_scheduling_acceptor(const ferry_scheduling *s, int distance);

/* Whether migration is on (ferry_balance_enable). */
FERRY_API bool ferry_scheduling_is_on(const ferry_scheduling *s);

/* Whether the helper thread calls schedulers while a task runs. If not, a rank answers after the
 * end of its task, so a late answer is no sign that the message was lost. */
FERRY_API bool ferry_scheduling_preempts(const ferry_scheduling *s);

/* Pseudo-random numbers, the same for the same seed and rank. */
FERRY_API uint64_t ferry_scheduling_random(ferry_scheduling *s);

/* A parameter of the scheduler: FERRY_SCHEDULER_<NAME> of the environment, a number from `low` to
 * `high`, or `otherwise`. Ask for all in `create`. If one is no such number, the call that makes
 * the scheduler fails with FERRY_EINVAL and says so. Rank 0 warns of parameters in the environment
 * that `create` has not asked for. After `create` a wrong value gives `otherwise`. */
FERRY_API double ferry_scheduling_parameter(ferry_scheduling *s, const char *name, double otherwise,
                                            double low, double high);

/* As ferry_scheduling_parameter, for a whole number: a count, or a switch from 0 to 1. A fraction
 * is refused like a value outside the range. */
FERRY_API int ferry_scheduling_count(ferry_scheduling *s, const char *name, int otherwise, int low,
                                     int high);

/* Sends words to the scheduler of `rank`, another one, on the control lane. Nothing is promised
 * about the order of words and objects: two threads send them. A rank that sends 16384 words in a
 * second, and has run no task since 16384 words before, logs once that its scheduler asks without
 * a pause. */
FERRY_API void ferry_scheduling_send(ferry_scheduling *s, int rank,
                                     const uint64_t words[FERRY_SCHEDULER_WORDS]);

/* How much `item`, which is at rest here, wants to be on `rank`. It is the answer of its type's
 * priority callback, else its static priority there. Else it is its load, once more for each of its
 * dependencies that is there. */
FERRY_API double ferry_scheduling_priority(ferry_scheduling *s, const ferry_schedulable *item,
                                           int rank);

/* How hard `item`, which is at rest here, is to move: of its type's callback, or as it was added.
 */
FERRY_API double ferry_scheduling_granularity(ferry_scheduling *s, const ferry_schedulable *item);

/* Sends `item`, unlinked, to `rank`, with its tasks; it is gone for this scheduler. When migration
 * is off or it cannot be sent, it comes back by `activate`. To this rank itself it is moved in
 * place: packed, unpacked, and back. */
FERRY_API void ferry_scheduling_migrate(ferry_scheduling *s, ferry_schedulable *item, int rank);

/* Asks for `wake` to be called at `time_ns` of ferry_scheduling_now; 0 cancels that. */
FERRY_API void ferry_scheduling_wake(ferry_scheduling *s, uint64_t time_ns);

/* A shared object named by FERRY_SCHEDULER or ferry_balance_choose defines a `const
 * ferry_scheduler` under this name. */
#define FERRY_SCHEDULER_SYMBOL "ferry_scheduler_plugin"

/* Makes a scheduler known by its name, for FERRY_SCHEDULER and ferry_options, on this rank. Call it
 * on every rank before the first ferry_balance_add. Lends `scheduler` until ferry_close.
 * FERRY_EINVAL: a function is missing in it, or there is one of that name. [app thread | never
 * blocks] */
FERRY_API FERRY_MUST_USE int ferry_scheduler_register(ferry *f, const ferry_scheduler *scheduler);

#ifdef __cplusplus
}
#endif
#endif
