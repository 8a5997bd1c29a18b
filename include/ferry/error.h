/* Error codes of every Ferry function.
 *
 * A function that can fail returns `int`: 0 (or a count) on success, one of these on failure. Codes
 * are grouped by what is lost: the call, one operation, a peer, the job. */
#ifndef FERRY_ERROR_H
#define FERRY_ERROR_H

#include <ferry/export.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ferry ferry;

enum ferry_error {
    FERRY_OK = 0,

    /* The call did nothing. */
    FERRY_EINVAL = -1,  /* an argument is outside what the function takes */
    FERRY_ENOMEM = -2,  /* no memory, or the shared heap is at its limit */
    FERRY_EAGAIN = -3,  /* cannot be done now without waiting; nothing was started */
    FERRY_ESTATE = -4,  /* not allowed now: the wrong phase, or inside a handler */
    FERRY_ENOTSUP = -5, /* this port or build cannot do it */
    FERRY_ESYSTEM = -6, /* the operating system refused; the message has its reason */

    /* One operation failed. */
    FERRY_ENOENT = -20,    /* no such handler, object or registration at the target */
    FERRY_ERANGE = -21,    /* memory outside every known region of the target */
    FERRY_ECANCELED = -22, /* cancelled by its owner, or its rank was closed */
    FERRY_ETIMEDOUT = -23, /* no end came within its timeout */
    FERRY_ETOOLONG = -24,  /* the message is longer than the receive it met */

    /* A peer is lost. */
    FERRY_EPEER = -40, /* the rank named is dead, has left, or has not joined yet */

    /* The job is lost. */
    FERRY_ELAUNCH = -60, /* ranks could not be started, or cannot reach each other */
    FERRY_ELOST = -61,   /* a message was dropped: the job's work cannot be complete any more */
};

/* The name of an error code, such as "FERRY_EINVAL"; "FERRY_E(?)" if the number is no error code.
 * Lends forever. [any thread | never blocks] */
FERRY_API const char *ferry_strerror(int error);

/* Says what was wrong, with the values, in the last call on `f` that failed. If `f` is NULL, or
 * no call on it has failed: in the last call of this thread that failed and has no rank, such as
 * ferry_open or ferry_plan_copy. If a call that only tries, such as ferry_op_test or one with a
 * timeout of 0, returns FERRY_EAGAIN, the earlier message stays. Never NULL; lends until the next
 * failing call. [app thread, handlers | never blocks] */
FERRY_API const char *ferry_error_message(const ferry *f);

#ifdef __cplusplus
}
#endif
#endif
