/* Starts the ranks of a job as children of this process, watches them, and leaves nothing behind.
 *
 * The launcher is the parent: it has one thread and never joins the job. Each child finds its place
 * in the environment (FERRY_JOB_FD, FERRY_RANK, FERRY_RANKS) and dies with the launcher. */
#ifndef FY_LAUNCH_H
#define FY_LAUNCH_H

#include "port/shm/shm.h"

/* Descriptor of the job's segment; stays open across exec; in ranks only. */
#define FY_ENV_JOB_FD "FERRY_JOB_FD"
#define FY_ENV_RANK "FERRY_RANK" /* number of the rank, from 0 */
/* With FY_ENV_JOB_FD: how many places the job has; alone: how many ranks to start. */
#define FY_ENV_RANKS "FERRY_RANKS"
#define FY_ENV_RANKS_MAX "FERRY_RANKS_MAX"   /* how many ranks there may be, with those that join */
#define FY_ENV_RANKS_JOIN "FERRY_RANKS_JOIN" /* a folder to make, by which processes join */
#define FY_ENV_JOIN "FERRY_JOIN"             /* the folder of the job to join */
/* Descriptor by which ranks send spawn requests; in ranks only. */
#define FY_ENV_JOB_SOCKET "FERRY_JOB_SOCKET"
/* The process that took this place, in ten digits; 2^31 - 1 before that. A job of one rank has
 * none. The process opens no other rank, which would be a job of its own. Its children may. */
#define FY_ENV_JOB_PROCESS "FERRY_JOB_PROCESS"
#define FY_ENV_THREADS "FERRY_THREADS" /* "1": ranks are threads; with FY_ENV_RANKS alone */

/* Says on one line why `program` could not be executed: the error and, if the program is in this
 * folder and not in PATH, the name to write. */
enum { FY_LAUNCH_REASON_BYTES = 512 };
void fy_launch_reason(const char *program, int error, char out[FY_LAUNCH_REASON_BYTES]);

/* The least stack of launcher and ranks; less would crash. */
#define FY_STACK_MIN_BYTES (64 * 1024)

/* Runs once in a new child, with its environment set. Returns the child's exit status. The child
 * has nothing of the launcher: its signals are as the launcher found them. */
typedef int fy_launch_child(void *arg, int rank);

typedef struct fy_launch_plan {
    const char *program; /* the program to execute with `argv`; looked up in PATH */
    char *const *argv;   /* its arguments; NULL: children run `child` instead */
    char **environment;  /* its environment; NULL: that of this process */
    int threads;         /* how many ranks the program starts as threads; without `shm` */
    int threads_max;     /* the same, with ranks that it may start later; 0: no more */
    /* The segment to make; NULL: one child, without segment and number. */
    const fy_shm_options *shm;
    bool label; /* begin each line of output with "[rank] " */
    /* The folder by which processes may join, if there are free numbers; NULL: none. */
    const char *join;
    bool bindings; /* print which processors each rank may use */
    fy_launch_child *child;
    /* Called in a child before anything else. It may call only functions that are safe after a fork
     * in a process with threads. NULL: nothing to do. */
    void (*prepare)(void *arg);
    void *arg;
} fy_launch_plan;

/* Starts the children and returns when all have ended: the job's exit status as ferry_launch
 * (include/ferry/launch.h) says, or FERRY_EINVAL or FERRY_ESYSTEM with fy_error_set when nothing
 * was started. In a child it does not return. [main thread, no other thread exists] */
int fy_launch(const fy_launch_plan *plan);

/* A job whose ranks are threads of this process. */
typedef struct fy_threads_plan {
    fy_segment *segment;    /* the segment of the job, which the ranks join */
    int ranks, places;      /* how many ranks to start; how many places the segment has */
    fy_launch_child *child; /* runs once in each thread. A result other than 0 ends the process */
    void *arg;
} fy_threads_plan;

/* Starts the threads. Returns 0 when all have ended, also those that ranks have started.
 * FERRY_ELAUNCH or FERRY_ENOMEM with fy_error_set: nothing was started. [main thread] */
int fy_launch_threads(const fy_threads_plan *plan);

/* Takes a place in the running job that can be joined by `folder`, and maps the job's segment,
 * which then is the caller's. Until the segment is unmapped the process dies with the job's
 * launcher. FERRY_ELAUNCH: no job answers there, it refuses, or its launcher has died.
 * FERRY_ENOMEM: it has no number left. With fy_error_set. [main thread] */
int fy_launch_join(const char *folder, fy_segment **segment, int *rank);

/* Opens descriptors 0 to 2 if they are closed, so that reading and writing still fail. Otherwise a
 * file of the job could get one of these numbers, and with it what the program prints. */
void fy_streams_reserve(void);

/* Called when this process has mapped the segment and taken the place that the environment gave it.
 * Closes `fd`. Hides `socket` (-1: none) and the place from programs that it starts, so that they
 * are not taken for ranks. Arranges to die with the parent process. [main thread] */
void fy_launch_settle(int fd, int socket);

/* Takes `socket`, by which ranks of `segment` send spawn requests to the launcher. Unmapping the
 * segment closes it. */
FY_SHARED void fy_launch_link(fy_segment *segment, int socket);

#endif
