/* A rank and the launcher that started it: how the rank takes its place. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "launch/launcher.h"
#include "port/shm/layout.h"

void fy_launch_settle(int fd, int socket)
{
    char *process = getenv(FY_ENV_JOB_PROCESS);
    if (process != NULL) /* in place: the library has no room for setenv */
        snprintf(process, 11, "%d", (int)getpid());
    close(fd);
    (void)fcntl(socket, F_SETFD, FD_CLOEXEC); /* -1: there is none */
    unsetenv(FY_ENV_JOB_FD);
    unsetenv(FY_ENV_RANK);
    unsetenv(FY_ENV_RANKS);
    unsetenv(FY_ENV_JOB_SOCKET);
    /* A rank may have been started by a script, which is the launcher's child. The script dies with
     * the launcher, and the rank with the script. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* A fy_spawner. */
static int spawn_ranks(void *arg, int first, int count, char *const argv[])
{
    const fy_launcher *launcher;
    int error = fy_launcher_find(&launcher);
    return error == 0 ? launcher->ask(arg, first, count, argv) : error;
}

void fy_launch_link(fy_segment *segment, int socket)
{
    segment->link = socket;
    fy_segment_spawner_set(segment, spawn_ranks, (void *)(intptr_t)socket);
}
