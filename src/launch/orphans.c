/* Processes that a rank started and did not wait for become the launcher's children. So it can end
 * them when the job has ended. Children that the launcher had before are spared. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "launch/job.h"

#define ROUNDS_MAX 200
#define ROUND_NS 1000000u

/* Reads the kernel's list of our children. Gives `*out` and the count. Returns false without memory
 * for all. */
static bool list_children(pid_t **out, size_t *out_count)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    size_t count = 0, room = 0;
    int pid;
    bool whole = true;
    *out = NULL;
    while (file != NULL && fscanf(file, "%d", &pid) == 1) {
        if (count == room) {
            room = room * 2 + 16;
            pid_t *more = realloc(*out, room * sizeof(pid_t));
            if (more == NULL) {
                whole = false;
                break;
            }
            *out = more;
        }
        (*out)[count++] = pid;
    }
    if (file != NULL)
        fclose(file);
    *out_count = count;
    return whole;
}

int fy_job_orphans_begin(job *j)
{
    if (!list_children(&j->others, &j->other_count))
        return fy_error_set(FERRY_ENOMEM, "no memory for the list of this process's children");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return fy_error_set(FERRY_ESYSTEM, "prctl: %s", strerror(errno));
    j->adopts = true;
    return 0;
}

static bool is_other(const job *j, pid_t pid)
{
    for (size_t i = 0; i < j->other_count; i++)
        if (j->others[i] == pid)
            return true;
    return false;
}

/* Kills and reaps all orphans. Returns whether there were any: killing one may bring its own
 * children. */
static bool kill_round(const job *j)
{
    pid_t *children;
    size_t count;
    bool any = !list_children(&children, &count);
    for (size_t i = 0; i < count; i++) {
        if (is_other(j, children[i]))
            continue;
        any = true;
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, WNOHANG);
    }
    free(children);
    return any;
}

void fy_job_orphans_end(job *j)
{
    for (int i = 0; j->adopts && i < ROUNDS_MAX && kill_round(j); i++)
        fy_clock_sleep_until(fy_clock_now_ns() + ROUND_NS);
    if (j->adopts)
        prctl(PR_SET_CHILD_SUBREAPER, 0);
    free(j->others);
}
