/* Ranks that are threads of one process. A rank that is started later was started by a rank with a
 * lower number, before that one ended. So the threads are waited for in the order of their
 * numbers. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread_end.h"
#include "launch/job.h"

typedef struct rank_thread {
    struct job_threads *all;
    pthread_t thread;
    int rank;
    bool started;
} rank_thread;

typedef struct job_threads {
    const fy_threads_plan *plan;
    rank_thread *ranks; /* by number */
    atomic_flag ending; /* a thread has failed and ends the process */
} job_threads;

static void *run_thread(void *arg)
{
    rank_thread *t = arg;
    int status;
    pthread_cleanup_push(fy_thread_end_early, &t->rank);
    status = t->all->plan->child(t->all->plan->arg, t->rank);
    pthread_cleanup_pop(0);
    if (status == 0)
        return NULL;
    /* The others may wait for this rank forever. As with processes, the job ends, and the first
     * failing rank says so. relaxed: the flag guards nothing */
    if (atomic_flag_test_and_set_explicit(&t->all->ending, memory_order_relaxed))
        return NULL;
    fy_log_line(t->rank, "ended with status %d; the job ends", status);
    fflush(NULL);
    _exit(status);
}

/* If a thread cannot be started, the ranks before it would wait for it: the process ends. */
static void start_threads(job_threads *all, int first, int count)
{
    for (int rank = first; rank < first + count; rank++) {
        rank_thread *t = &all->ranks[rank];
        *t = (rank_thread){.all = all, .rank = rank};
        int error = pthread_create(&t->thread, NULL, run_thread, t);
        t->started = error == 0;
        if (error == 0)
            continue;
        fy_log_line(rank, "cannot start a thread: %s", strerror(error));
        fflush(NULL);
        _exit(EXIT_FAILURE);
    }
}

/* A fy_spawner. */
static int spawn_ranks(void *arg, int first, int count, char *const argv[])
{
    if (argv != NULL)
        return fy_error_set(FERRY_ENOTSUP,
                            "ranks that are threads of one process run no program but their own");
    start_threads(arg, first, count);
    return 0;
}

int fy_threads_run(const fy_threads_plan *plan)
{
    job_threads all = {.plan = plan, .ending = ATOMIC_FLAG_INIT};
    all.ranks = fy_calloc((size_t)plan->places, sizeof(*all.ranks));
    if (all.ranks == NULL)
        return fy_error_set(FERRY_ENOMEM, "no memory for %d threads", plan->places);
    if (plan->places > plan->ranks)
        fy_segment_spawner_set(plan->segment, spawn_ranks, &all);
    plan->segment->opened = fy_env_say_opened();
    start_threads(&all, 0, plan->ranks);
    for (int rank = 0; rank < plan->places; rank++)
        if (all.ranks[rank].started)
            pthread_join(all.ranks[rank].thread, NULL);
    fy_env_say_ended(plan->segment->opened);
    close(plan->segment->opened);
    free(all.ranks);
    return 0;
}
