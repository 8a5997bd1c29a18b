/* Crew: threads that share a lock, wait for work, and tell when they have done some.
 *
 * The crew does not know the work. Its threads and its users handle that with the lock held. Part
 * of the data library. */
#ifndef FY_CREW_H
#define FY_CREW_H

#include <pthread.h>
#include <stdbool.h>

enum { FY_CREW_MAX = 4 };

typedef struct fy_crew {
    pthread_mutex_t lock;
    pthread_cond_t more, done;
    pthread_t threads[FY_CREW_MAX];
    int count; /* number of threads; only the thread that starts and ends them reads it */
    bool stop; /* the threads must return; with the lock held */
} fy_crew;

/* A crew without threads. FERRY_ENOMEM. */
int fy_crew_open(fy_crew *crew);

/* Adds a thread that runs `entry(arg)` and takes no signals of the program. Returns whether it
 * could. */
bool fy_crew_add(fy_crew *crew, void *(*entry)(void *arg), void *arg);

/* Tells all threads to return, and waits until they have. [lock not held] */
void fy_crew_end(fy_crew *crew);

/* Frees the crew, after fy_crew_end. */
void fy_crew_close(fy_crew *crew);

void fy_crew_lock(fy_crew *crew);
void fy_crew_unlock(fy_crew *crew);

/* Waits for work; wakes one thread that waits. Both with the lock held, which waiting gives back
 * meanwhile. */
void fy_crew_await_work(fy_crew *crew);
void fy_crew_bring_work(fy_crew *crew);

/* Waits until some work is done; wakes all that wait. Both with the lock held, as above. */
void fy_crew_await_end(fy_crew *crew);
void fy_crew_tell_end(fy_crew *crew);

#endif
