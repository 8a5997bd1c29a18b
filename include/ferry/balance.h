/* Balance: objects whose pending messages are tasks, moved between ranks while other tasks run.
 *
 * A scheduled object keeps its messages until the scheduler picks it; object and messages migrate
 * together. A scheduler is a struct of functions; it sees loads and peers, never the application's
 * messages. While a task runs, a helper thread answers other ranks' schedulers, without the task's
 * help. prema.txt 5. */
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
    const double *priorities; /* how much it wants to be on each rank: one per rank, or NULL */
    const ferry_object *dependencies; /* objects that it wants to be near to; one of all zero is
                                         nowhere */
    size_t dependency_count;
} ferry_balance_options;

#define FERRY_BALANCE_OPTIONS_DEFAULTS                                                             \
    {                                                                                              \
        sizeof(ferry_balance_options), 0, 0, NULL, NULL, 0                                         \
    }

/* Makes an object on this rank schedulable: all its messages become tasks. Call it before its first
 * message. Messages of one rank to one object run in the order sent; a message that shall run on
 * arrival goes to another object, which is not schedulable. Borrows `options` (NULL: defaults) and
 * what it points to; the values stay with the object. FERRY_ENOENT: not here. FERRY_ESTATE:
 * schedulable already. FERRY_EINVAL: a number is negative or not finite, a dependency names no
 * object, or as ferry_balance_choose. [app thread, handlers | never blocks] prema.txt 5.2.1
 * (ilb_register_mobile_obj). */
FERRY_API FERRY_MUST_USE int ferry_balance_add(ferry *f, ferry_object object,
                                               const ferry_balance_options *options);

/* Turns migration by the scheduler on or off. Off at the start; tasks run either way. Collective.
 * If it is on, a rank that joins balances as soon as it calls ferry_quiesce. FERRY_EINVAL: another
 * rank has another scheduler, turns migration the other way, or makes another collective; the
 * message names both ranks. Names of schedulers are compared up to 12 characters. [app thread, not
 * in handlers | polls | may block] prema.txt 5.2.1 (ilb_phase_set). */
FERRY_API int ferry_balance_enable(ferry *f, bool on);

/* Chooses the scheduler by its name, or by the path of a shared object, which contains a '/'. Every
 * rank chooses the same, before its first ferry_balance_add and before any object that balances
 * arrives. FERRY_SCHEDULER of the environment goes first: then `name` is not looked at.
 * FERRY_EINVAL: there is none of that name, and the message lists those there are; or the shared
 * object cannot be opened or has no scheduler in it. FERRY_ESTATE: a scheduler is at work already.
 * [app thread | never blocks] prema.txt 5.2.1 (ilb_register_scheduler). */
FERRY_API FERRY_MUST_USE int ferry_balance_choose(ferry *f, const char *name);

/* Name of the scheduler in use. Lends until ferry_close. [app thread | never blocks] */
FERRY_API const char *ferry_balance_scheduler(const ferry *f);

#ifdef __cplusplus
}
#endif
#endif
