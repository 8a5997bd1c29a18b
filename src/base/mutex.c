#include "base/mutex.h"

#include <assert.h>

#include <ferry/error.h>

int fy_mutex_init(fy_mutex *mutex)
{
    return pthread_mutex_init(&mutex->lock, NULL) == 0 ? 0 : FERRY_ENOMEM;
}

void fy_mutex_fini(fy_mutex *mutex)
{
    pthread_mutex_destroy(&mutex->lock);
}

void fy_mutex_lock(fy_mutex *mutex)
{
    int error = pthread_mutex_lock(&mutex->lock);
    assert(error == 0);
    (void)error;
}

bool fy_mutex_try(fy_mutex *mutex)
{
    return pthread_mutex_trylock(&mutex->lock) == 0;
}

void fy_mutex_unlock(fy_mutex *mutex)
{
    int error = pthread_mutex_unlock(&mutex->lock);
    assert(error == 0);
    (void)error;
}
