#include "base/thread.h"

#include <string.h>

#include <ferry/error.h>

#include "base/error.h"

int fy_thread_start(fy_thread_handle *handle, void *(*entry)(void *arg), void *arg)
{
    int error = pthread_create(&handle->thread, NULL, entry, arg);
    if (error != 0)
        return fy_error_set(FERRY_ESYSTEM, "cannot start a thread: %s", strerror(error));
    return 0;
}

void fy_thread_join(fy_thread_handle *handle)
{
    pthread_join(handle->thread, NULL);
}
