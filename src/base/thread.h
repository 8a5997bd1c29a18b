/* Thread: a thread of this process that returns a number. */
#ifndef FY_THREAD_H
#define FY_THREAD_H

#include <pthread.h>

typedef struct fy_thread_handle {
    pthread_t thread;
} fy_thread_handle;

/* Starts `entry(arg)`. FERRY_ESYSTEM with fy_error_set. */
int fy_thread_start(fy_thread_handle *handle, void *(*entry)(void *arg), void *arg);

/* Waits for its return. */
void fy_thread_join(fy_thread_handle *handle);

#endif
