#include "base/crew.h"

#include <ferry/error.h>

#include "base/thread.h"

int fy_crew_open(fy_crew *crew)
{
    crew->count = 0;
    crew->stop = false;
    if (pthread_mutex_init(&crew->lock, NULL) != 0)
        return FERRY_ENOMEM;
    if (pthread_cond_init(&crew->more, NULL) == 0) {
        if (pthread_cond_init(&crew->done, NULL) == 0)
            return 0;
        (void)pthread_cond_destroy(&crew->more);
    }
    (void)pthread_mutex_destroy(&crew->lock);
    return FERRY_ENOMEM;
}

bool fy_crew_add(fy_crew *crew, void *(*entry)(void *arg), void *arg)
{
    bool added =
        crew->count < FY_CREW_MAX && fy_thread_create(&crew->threads[crew->count], entry, arg) == 0;
    crew->count += added;
    return added;
}

void fy_crew_end(fy_crew *crew)
{
    fy_crew_lock(crew);
    crew->stop = true;
    (void)pthread_cond_broadcast(&crew->more);
    fy_crew_unlock(crew);
    for (int i = 0; i < crew->count; i++)
        (void)pthread_join(crew->threads[i], NULL);
    crew->count = 0;
}

void fy_crew_close(fy_crew *crew)
{
    (void)pthread_cond_destroy(&crew->done);
    (void)pthread_cond_destroy(&crew->more);
    (void)pthread_mutex_destroy(&crew->lock);
}

void fy_crew_lock(fy_crew *crew)
{
    (void)pthread_mutex_lock(&crew->lock);
}

void fy_crew_unlock(fy_crew *crew)
{
    (void)pthread_mutex_unlock(&crew->lock);
}

void fy_crew_await_work(fy_crew *crew)
{
    (void)pthread_cond_wait(&crew->more, &crew->lock);
}

void fy_crew_bring_work(fy_crew *crew)
{
    (void)pthread_cond_signal(&crew->more);
}

void fy_crew_await_end(fy_crew *crew)
{
    (void)pthread_cond_wait(&crew->done, &crew->lock);
}

void fy_crew_tell_end(fy_crew *crew)
{
    (void)pthread_cond_broadcast(&crew->done);
}
