/* The end of a rank's thread inside its program, by pthread_exit or pthread_cancel: the other
 * threads of the process would wait forever. */
#ifndef FY_THREAD_END_H
#define FY_THREAD_END_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

/* For pthread_cleanup_push. `arg` is the address of the rank, an int. */
static inline void fy_thread_end_early(void *arg)
{
    fy_log_line(*(const int *)arg, "its thread was ended before the job; the job ends");
    fflush(NULL);
    _exit(EXIT_FAILURE);
}

#endif
