/* Goal: threads may open jobs of their own at the same time. Method: two threads open and close
 * jobs of one rank. The address of a job is chosen before it is taken, so that two threads often
 * choose the same. A process has room for three jobs, and refuses a fourth with the reason. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

enum { THREADS = 2, OPENINGS = 1500, JOBS = 3 };

static ferry *open_one(void)
{
    ferry *f;
    if (ferry_open(NULL, &f) == 0)
        return f;
    fprintf(stderr, "open: %s\n", ferry_error_message(NULL));
    exit(EXIT_FAILURE);
}

static void close_one(ferry *f)
{
    if (ferry_close(f) == 0)
        return;
    fprintf(stderr, "close: %s\n", ferry_error_message(NULL));
    exit(EXIT_FAILURE);
}

static void *open_and_close(void *unused)
{
    (void)unused;
    for (int i = 0; i < OPENINGS; i++)
        close_one(open_one());
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    ferry *jobs[JOBS], *more = NULL;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, open_and_close, NULL) != 0)
            return EXIT_FAILURE;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < JOBS; i++)
        jobs[i] = open_one();
    int error = ferry_open(NULL, &more);
    bool told = strstr(ferry_error_message(NULL), "any of 3 addresses (each job here has one)") &&
                strstr(ferry_error_message(NULL), "with fewer jobs try");
    for (int i = 0; i < JOBS; i++)
        close_one(jobs[i]);
    return error == FERRY_ESYSTEM && told ? 0 : EXIT_FAILURE;
}
