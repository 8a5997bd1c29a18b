/* Mutex: a lock between the threads of one process. Not recursive. */
#ifndef FY_MUTEX_H
#define FY_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

#include "base/shared.h"

typedef struct fy_mutex {
    pthread_mutex_t lock;
} fy_mutex;

/* Works in place. 0 or FERRY_ENOMEM. */
FY_SHARED int fy_mutex_init(fy_mutex *mutex);
FY_SHARED void fy_mutex_fini(fy_mutex *mutex);

FY_SHARED void fy_mutex_lock(fy_mutex *mutex);
bool fy_mutex_try(fy_mutex *mutex);
FY_SHARED void fy_mutex_unlock(fy_mutex *mutex);

#endif
