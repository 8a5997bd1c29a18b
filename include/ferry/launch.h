/* Launch: starts the ranks of a job on this machine, watches them, and leaves nothing behind.
 *
 * It does for programs what `ferry run` does. The launcher is one process that waits; the ranks are
 * its children. They share a memfd segment, which has no name in the file system. If a rank dies,
 * the whole job ends, unless all other ranks have called ferry_peer_watch. */
#ifndef FERRY_LAUNCH_H
#define FERRY_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#include <ferry/error.h>
#include <ferry/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a program is launched: how many ranks, and how they run. */
typedef struct ferry_launch_options {
    size_t size;   /* sizeof(ferry_launch_options) */
    int ranks;     /* 1 to 1,024; 1 by default */
    bool label;    /* each line of output begins with its rank; not with `threads` */
    bool threads;  /* ranks are threads of one process: the program's ferry_main starts them */
    bool bindings; /* prints which processors each rank may use */
    int ranks_max; /* how many ranks there may be, with those that join during the run (member.h),
                      up to 1,024; 0: FERRY_RANKS_MAX, or `ranks` */
    const char *join; /* a folder by which other processes of this user may join (they set
                         FERRY_JOIN to it): a new one, or one of mode 700 that belongs to this user.
                         It is removed when the launcher ends, if nothing else is in it. NULL:
                         nobody may join. Borrowed */
} ferry_launch_options;

#define FERRY_LAUNCH_OPTIONS_DEFAULTS                                                              \
    {                                                                                              \
        sizeof(ferry_launch_options), 1, false, false, false, 0, NULL                              \
    }

/* Runs `argv` (ended by NULL; `argv[0]` is looked up in PATH) as a job. Returns its exit status: 0,
 * the status of the first rank that failed, or 128 + the signal that ended it; 1 if output of
 * `label` is lost. Says on standard error which rank died, how, and what it did last. Passes
 * SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGUSR2 on to every rank, SIGUSR1 to those that catch it.
 * SIGUSR1 also prints what each rank does. Rank 0 has the launcher's standard input. FERRY_EINVAL,
 * FERRY_ESYSTEM: nothing was started; see ferry_error_message(NULL). [main thread | blocks until
 * the job has ended] */
FERRY_API FERRY_MUST_USE int ferry_launch(const ferry_launch_options *options, char *const argv[]);

#ifdef __cplusplus
}
#endif
#endif
