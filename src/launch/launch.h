/* Starts the ranks of a job as children of this process, watches them, and leaves nothing behind.
 *
 * The launcher is the parent: it has one thread and never joins the job. Each child finds its place
 * in the environment (FERRY_JOB_FD, FERRY_RANK, FERRY_RANKS) and dies with the launcher. */
#ifndef FY_LAUNCH_H
#define FY_LAUNCH_H

#include "port/shm/shm.h"

#define FY_ENV_JOB_FD "FERRY_JOB_FD" /* the job's segment; open across exec, in ranks only */
#define FY_ENV_RANK "FERRY_RANK"     /* from 0 */
#define FY_ENV_RANKS "FERRY_RANKS"   /* with FY_ENV_JOB_FD: places of the job; alone: wanted */
#define FY_ENV_RANKS_MAX "FERRY_RANKS_MAX"   /* how many there may be when some join later */
#define FY_ENV_RANKS_JOIN "FERRY_RANKS_JOIN" /* a folder to make, by which others may join */
#define FY_ENV_JOB_SOCKET "FERRY_JOB_SOCKET" /* where ranks ask the launcher for more; likewise */
#define FY_ENV_THREADS "FERRY_THREADS"       /* "1": ranks are threads; with FY_ENV_RANKS alone */

#define FY_STACK_MIN_BYTES (64 * 1024) /* of the launcher and of ranks; less would crash */

/* Runs in a new child, once, with the environment set. Its result is the child's exit status. In
 * the child nothing of the launcher is left: signals are as the launcher found them. */
typedef int fy_launch_child(void *arg, int rank);

typedef struct fy_launch_plan {
    const char *program;       /* to execute with `argv`, looked up in PATH */
    char *const *argv;         /* NULL: children run `child` instead */
    char **environment;        /* of `argv`; NULL: this process's */
    int threads;               /* ranks that the program starts as threads; without `shm` */
    int threads_max;           /* with those that it may start later; 0: the same */
    const fy_shm_options *shm; /* the segment to make; NULL: one child, without segment and place */
    bool label;                /* lines of output begin with "[rank] " */
    const char *join;          /* the folder by which processes may join, where there is room for
                                  more ranks; NULL: none */
    bool bindings;             /* prints which processors each rank may use */
    fy_launch_child *child;
    void (*prepare)(void *arg); /* in a child, before it runs anything: calls only what is safe
                                   after a fork among threads. NULL: nothing to do */
    void *arg;
} fy_launch_plan;

/* Starts the children and returns when all have ended: the job's exit status as ferry_launch
 * (include/ferry/launch.h) says, or FERRY_EINVAL or FERRY_ESYSTEM with fy_error_set when nothing
 * was started. In a child it does not return. [main thread, no other thread exists] */
int fy_launch(const fy_launch_plan *plan);

/* A job whose ranks are threads of this process. */
typedef struct fy_threads_plan {
    fy_segment *segment;    /* of the job; the ranks join it */
    int ranks, places;      /* that are started; that the segment has */
    fy_launch_child *child; /* runs once in each thread; its result other than 0 ends the process */
    void *arg;
} fy_threads_plan;

/* Starts the threads, and returns when all have ended, those too that ranks have started: 0, or
 * FERRY_ELAUNCH or FERRY_ENOMEM with fy_error_set when nothing was started. [main thread] */
int fy_launch_threads(const fy_threads_plan *plan);

/* Opens what is closed of descriptors 0 to 2, so that reading and writing still fail: else a file
 * of the job's gets one of these numbers, and what the program prints. */
void fy_streams_reserve(void);

/* Called when this process has taken the place that the environment gave it and mapped the segment.
 * Closes `fd`. Hides `socket` (-1: none) and the place from programs that it starts, so that they
 * are not taken for ranks. Asks to die with the parent process. [main thread] */
void fy_launch_settle(int fd, int socket);

/* Takes `socket`, which leads to the launcher: ranks of `segment` ask the launcher through it for
 * more ranks. Unmapping the segment closes it. */
FY_SHARED void fy_launch_link(fy_segment *segment, int socket);

#endif
