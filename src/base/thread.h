/* Thread: a thread of this process that returns a number. */
#ifndef FY_THREAD_H
#define FY_THREAD_H

#include <pthread.h>
#include <signal.h>

typedef struct fy_thread_handle {
    pthread_t thread;
} fy_thread_handle;

/* Starts `entry(arg)`. FERRY_ESYSTEM with fy_error_set. */
int fy_thread_start(fy_thread_handle *handle, void *(*entry)(void *arg), void *arg);

/* Waits for its return. */
void fy_thread_join(fy_thread_handle *handle);

/* As pthread_create, for a thread of Ferry's own: it blocks all signals, which are for the
 * program's threads. */
static inline int fy_thread_create(pthread_t *thread, void *(*entry)(void *arg), void *arg)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, entry, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

#endif
