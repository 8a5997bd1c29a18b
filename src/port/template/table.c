/* How FERRY_PORT=template runs a program of ferry_main: each rank is a thread of its process, on
 * one of two nodes. A port whose launcher starts processes has `open` in place of `run`. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/shared.h"
#include "port/template/template.h"

#define RANKS_MAX 1024

typedef struct run_state {
    fy_template_job *job;
    fy_port_main *rank_main;
    void *arg;
    pthread_mutex_t start; /* held until every thread exists */
    bool cancelled;        /* one could not be started: the others end at once */
} run_state;

typedef struct rank_thread {
    run_state *run;
    pthread_t id;
    int rank;
} rank_thread;

static void *run_thread(void *arg)
{
    const rank_thread *t = arg;
    fy_port *port;
    pthread_mutex_lock(&t->run->start);
    bool cancelled = t->run->cancelled;
    pthread_mutex_unlock(&t->run->start);
    if (cancelled)
        return NULL;
    int status = EXIT_FAILURE;
    if (fy_template_join(t->run->job, t->rank, &port) == 0)
        status = t->run->rank_main(t->run->arg, port);
    else
        fy_log_line(t->rank, "port template: %s", fy_error_text());
    /* The other ranks may wait for this one forever: its status ends the job. */
    if (status != 0) {
        fflush(NULL);
        _exit(status);
    }
    return NULL;
}

/* Starts the threads and waits for their end. */
static int run_threads(const fy_port_settings *settings, run_state *run, rank_thread *threads)
{
    int started = 0, ranks = settings->ranks;
    pthread_mutex_lock(&run->start);
    for (; started < ranks; started++) {
        threads[started] = (rank_thread){.run = run, .rank = started};
        if (pthread_create(&threads[started].id, NULL, run_thread, &threads[started]) != 0)
            break;
    }
    run->cancelled = started < ranks;
    pthread_mutex_unlock(&run->start);
    for (int rank = 0; rank < started; rank++)
        pthread_join(threads[rank].id, NULL);
    return started == ranks
               ? 0
               : settings->error_set(FERRY_ESYSTEM,
                                     "port template: %d of %d threads could be started", started,
                                     ranks);
}

static int run(const fy_port_settings *settings, fy_port_main *rank_main, void *arg)
{
    int ranks = settings->ranks, error;
    run_state state = {.job = fy_template_job_create(ranks, ranks > 1 ? 2 : 1),
                       .rank_main = rank_main,
                       .arg = arg};
    rank_thread *threads = calloc((size_t)ranks, sizeof(*threads));
    pthread_mutex_init(&state.start, NULL);
    if (state.job == NULL || threads == NULL)
        error = settings->error_set(FERRY_ENOMEM, "port template: no memory for %d ranks", ranks);
    else
        error = run_threads(settings, &state, threads);
    pthread_mutex_destroy(&state.start);
    free(threads);
    if (state.job != NULL)
        fy_template_job_destroy(state.job);
    return error;
}

FY_SHARED const fy_port_entry fy_port_table = {
    .version = FY_PORT_VERSION, .ranks_max = RANKS_MAX, .run = run};
