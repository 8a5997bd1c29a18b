/* Thread: a thread of this process. */
#ifndef FY_THREAD_H
#define FY_THREAD_H

#include <pthread.h>
#include <signal.h>

/* As pthread_create and pthread_join, with the usual attributes. */
int fy_thread_start(pthread_t *thread, void *(*entry)(void *arg), void *arg);
void fy_thread_join(pthread_t thread);

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
