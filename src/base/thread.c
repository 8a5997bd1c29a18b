#include "base/thread.h"

int fy_thread_start(pthread_t *thread, void *(*entry)(void *arg), void *arg)
{
    return pthread_create(thread, NULL, entry, arg);
}

void fy_thread_join(pthread_t thread)
{
    (void)pthread_join(thread, NULL);
}
