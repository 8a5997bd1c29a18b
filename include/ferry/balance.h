/* Balance: objects whose pending messages are tasks, moved between ranks while other tasks run.
 *
 * The messages of a scheduled object wait until the scheduler picks the object. Object and messages
 * migrate together. A scheduler is a struct of functions. It sees loads and ranks, never the
 * messages of the program. While a task runs, a helper thread answers the schedulers of other
 * ranks, so the task need not call Ferry. prema.txt 5. */
#ifndef FERRY_BALANCE_H
#define FERRY_BALANCE_H

#include <ferry/object.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The scheduler may ask for these values of an object. Zero is the default of each field. */
typedef struct ferry_balance_options {
    size_t size;        /* sizeof(ferry_balance_options) */
    double load;        /* of each pending task, if the type has no load callback; 0 means 1 */
    double granularity; /* how hard it is to move, if the type has no granularity callback */
    const double *priorities; /* how much it should be on each rank: one number per rank, or NULL */
    const ferry_object
        *dependencies; /* objects that it should be near; one of all zero does not count */
    size_t dependency_count;
} ferry_balance_options;

#define FERRY_BALANCE_OPTIONS_DEFAULTS                                                             \
    {                                                                                              \
        sizeof(ferry_balance_options), 0, 0, NULL, NULL, 0                                         \
    }

/* Makes an object on this rank a scheduled object: its messages become tasks. Call it
 * before its first message, since earlier ones run on arrival. Deviation: the paper's plain message
 * is not offered: it would overtake tasks, and messages of one rank to one object run in the order
 * sent. Borrows `options` (NULL: defaults) and what it points to. FERRY_ENOENT: not here.
 * FERRY_ESTATE: scheduled already. FERRY_EINVAL: a number is negative or not finite, a dependency
 * names no object, not even an ended one, or as ferry_balance_choose. [app thread, handlers | never
 * blocks] prema.txt 5.2.1. */
FERRY_API FERRY_MUST_USE int ferry_balance_add(ferry *f, ferry_object object,
                                               const ferry_balance_options *options);

/* Turns migration by the scheduler on or off. Off at the start; tasks run either way. Collective.
 * If it is on, a rank that joins balances from its first ferry_quiesce on. FERRY_EINVAL: ranks pass
 * different values of `on`, have different schedulers, or make different collectives; the message
 * names two of them. Names of schedulers are compared up to 12 characters. [app thread, not in
 * handlers | polls | may block] prema.txt 5.2.1 (ilb_phase_set). */
FERRY_API int ferry_balance_enable(ferry *f, bool on);

/* Chooses the scheduler by its name, or by the path, with a '/', of a shared object. Every rank
 * chooses the same, before its first ferry_balance_add and before a scheduled object arrives.
 * FERRY_SCHEDULER in the environment overrides `name`. Deviation of `multilist` from prema.txt
 * 5.4.2.4: a rank runs its own best object while it fetches a better one, so as not to wait.
 * FERRY_EINVAL: no scheduler has that name (the message lists the names), or the shared object
 * cannot be opened or contains no scheduler. FERRY_ESTATE: a scheduler runs already. [app thread |
 * never blocks] */
FERRY_API FERRY_MUST_USE int ferry_balance_choose(ferry *f, const char *name);

/* Name of the scheduler in use; with FERRY_STEER, of the one with which the job began. Lends until
 * ferry_close. [app thread | never blocks] */
FERRY_API const char *ferry_balance_scheduler(const ferry *f);

#ifdef __cplusplus
}
#endif
#endif
