/* Decides what the end of a child means for the job.
 *
 * A rank may end with status 0 after it has left the job, or if no rank has joined. Every other end
 * is a death. The survivors are told of it, and have a while to end by themselves. The job ends
 * with the status of the first death. One line says which rank died, how, and what it was doing.
 *
 * If all living ranks have said that they go on (fy_member_ops.endure), the job goes on and the
 * death does not count. Then a rank that was started later and never joined does not count
 * either. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "launch/job.h"

#define GRACE_NS 500000000u
#define TERMINATE_NS 2000000000u

shm_state fy_job_state(const job *j, int rank)
{
    if (j->controls.base == NULL)
        return SHM_LEFT;
    /* seq_cst, as in fy_controls_mark. The launcher may see it some time later */
    return (shm_state)shm_state_in(atomic_load(&rank_at(j->controls.base, (uint32_t)rank)->state));
}

bool fy_job_anyone_joined(const job *j)
{
    for (int rank = 0; rank < j->ranks; rank++) {
        shm_state state = fy_job_state(j, rank);
        if (state == SHM_JOINED || state == SHM_LEFT)
            return true;
    }
    return false;
}

/* The status with which a rank will end by itself (fy_member_ops.fail); 0: it has not said so. */
static int failing_status(const job *j, int rank)
{
    /* seq_cst: as in shm_fail */
    uint32_t word = atomic_load(&rank_at(j->controls.base, (uint32_t)rank)->fails);
    return word > 1 && word <= 256 ? (int)word - 1 : 0; /* another value: it was overwritten */
}

/* Writes ", last " and what the rank did last; nothing if it never joined. A rank has left the job
 * if its main function has ended, or if it could not open Ferry. */
static void describe_doing(const job *j, int rank, const siginfo_t *info, char *out, size_t size)
{
    out[0] = '\0';
    if (j->controls.base == NULL || fy_job_state(j, rank) == SHM_ABSENT)
        return;
    /* It is on its way out: it leaves soon, if it has not yet. */
    if (info->si_code == CLD_EXITED && info->si_status != 0 &&
        failing_status(j, rank) == info->si_status)
        snprintf(out, size, ", the result of its main function");
    else if (fy_job_state(j, rank) == SHM_LEFT)
        snprintf(out, size, ", after it had left the job");
    else
        fy_doing_describe(rank_at(j->controls.base, (uint32_t)rank), ", last ", out, size);
}

static void say_death(const job *j, int rank, const siginfo_t *info, const char *more)
{
    char doing[128], who[48];
    describe_doing(j, rank, info, doing, sizeof(doing));
    if (j->controls.base != NULL)
        snprintf(who, sizeof(who), "rank %d (process %d)", rank, (int)info->si_pid);
    else
        snprintf(who, sizeof(who), "the program (process %d)", (int)info->si_pid);
    if (j->children[rank].joined)
        job_say("%s, which had joined, has ended%s%s", who, doing, more);
    else if (info->si_code == CLD_EXITED)
        job_say("%s exited with status %d%s%s", who, info->si_status, doing, more);
    else
        job_say("%s was killed by SIG%s (%s)%s%s", who, sigabbrev_np(info->si_status),
                strsignal(info->si_status), doing, more);
}

static void start_grace(job *j)
{
    if (j->stage != JOB_RUNS || j->left == 0)
        return;
    j->stage = JOB_GRACE;
    j->stage_end_ns = fy_clock_now_ns() + GRACE_NS;
}

void fy_job_next_stage(job *j)
{
    bool terminate = j->stage == JOB_GRACE;
    fy_job_signal(j, terminate ? SIGTERM : SIGKILL);
    /* A stopped process would not see SIGTERM. */
    if (terminate)
        fy_job_signal(j, SIGCONT);
    j->stage = terminate ? JOB_TERMINATED : JOB_KILLED;
    j->stage_end_ns = terminate ? fy_clock_now_ns() + TERMINATE_NS : UINT64_MAX;
}

/* Stores how the rank has ended, before the other ranks learn that it has. */
static void note_outcome(const job *j, int rank, const siginfo_t *info)
{
    int status = info->si_code == CLD_EXITED ? info->si_status << 8 : info->si_status;
    if (!j->children[rank].joined)
        /* seq_cst, though any order would do: fy_controls_mark comes after it */
        atomic_store(&rank_at(j->controls.base, (uint32_t)rank)->outcome, (uint32_t)status + 1);
}

/* The status of a rank that has called ferry_abort, whose own line has given the reason; else -1.
 * The rank ends with that status. If the word has another value, it was overwritten. */
static int abort_status(const job *j, int rank, const siginfo_t *info)
{
    if (j->controls.base == NULL || info->si_code != CLD_EXITED)
        return -1;
    /* seq_cst: as in shm_abort */
    uint32_t word = atomic_load(&rank_at(j->controls.base, (uint32_t)rank)->aborts);
    return word == (uint32_t)info->si_status + 1 ? info->si_status : -1;
}

static void end_at_once(job *j, int status)
{
    j->status = status;
    j->aborted = true;
    if (j->stage == JOB_KILLED)
        return;
    j->stage = JOB_TERMINATED;
    fy_job_next_stage(j);
}

void fy_launch_reason(const char *program, int error, char out[FY_LAUNCH_REASON_BYTES])
{
    bool beside = error == ENOENT && strchr(program, '/') == NULL && access(program, F_OK) == 0;
    (void)snprintf(out, FY_LAUNCH_REASON_BYTES, "%s%s%s%s", strerror(error),
                   beside ? "; expected ./" : "", beside ? program : "",
                   beside ? ", which is in this folder" : "");
}

/* Whether the child could not execute the program. One line says so for all children. */
static bool report_start(job *j, const siginfo_t *info)
{
    job_failure failure;
    char reason[FY_LAUNCH_REASON_BYTES];
    if (info->si_code != CLD_EXITED || (info->si_status != 126 && info->si_status != 127) ||
        read(j->start_pipe[0], &failure, sizeof(failure)) != (ssize_t)sizeof(failure))
        return false;
    fy_launch_reason(failure.program, failure.error, reason);
    if (!j->start_failed)
        job_say("cannot run %s: %s", failure.program, reason);
    j->start_failed = true;
    return true;
}

/* Whether this end only follows from an earlier death, or from a signal that was passed on. */
static bool is_consequence(const job *j, int rank, const siginfo_t *info)
{
    if (j->children[rank].joined && j->passed_signal != 0)
        return true;
    if (info->si_code != CLD_EXITED && info->si_status == j->passed_signal)
        return true;
    if (j->stage == JOB_RUNS)
        return false;
    return info->si_code == CLD_EXITED || info->si_status == SIGTERM || info->si_status == SIGKILL;
}

/* Whether ranks have joined and live, and all of them go on without `rank`. A rank that the job
 * began with and that has not joined yet counts as one that does not. */
static bool others_endure(const job *j, int rank)
{
    int living = 0;
    for (int other = 0; other < j->ranks && j->controls.base != NULL; other++) {
        shm_state state = fy_job_state(j, other);
        if (other == rank || state >= SHM_LEFT || (state == SHM_ABSENT && other >= j->starting))
            continue; /* it has gone, or has not come */
        /* seq_cst: as in shm_endure */
        if (!atomic_load(&rank_at(j->controls.base, (uint32_t)other)->endures))
            return false;
        living++;
    }
    return living > 0;
}

/* `rank` has exited. If it may have failed because another rank did, whose process has not ended
 * yet, that one is reported, and its status is the job's. */
static void count_earlier(job *j, int rank)
{
    if (j->controls.base == NULL || j->stage != JOB_RUNS || failing_status(j, rank) != 0)
        return;
    for (int other = 0; other < j->ranks; other++) {
        siginfo_t end = {.si_code = CLD_EXITED};
        end.si_pid = j->children[other].pid;
        end.si_status = failing_status(j, other);
        if (j->children[other].pidfd < 0 || end.si_status == 0 || others_endure(j, other))
            continue;
        say_death(j, other, &end, "; the job ends");
        j->status = end.si_status;
        start_grace(j);
        return;
    }
}

void fy_job_child_gone(job *j, int rank, const siginfo_t *info)
{
    bool signaled = info->si_code != CLD_EXITED;
    shm_state state = fy_job_state(j, rank);
    int status = signaled ? 128 + info->si_status : info->si_status;
    int aborts = abort_status(j, rank, info);
    bool clean = status == 0 && aborts < 0 &&
                 (state == SHM_LEFT || (state == SHM_ABSENT && !fy_job_anyone_joined(j)));
    bool expected = state == SHM_JOINED || (state == SHM_ABSENT && rank >= j->starting);
    bool endured = !clean && aborts < 0 && j->stage == JOB_RUNS && !j->start_failed &&
                   j->passed_signal == 0 && expected && others_endure(j, rank);
    if (!clean && !endured && aborts < 0 && !signaled)
        count_earlier(j, rank);
    if (j->status == 0 && !endured && !j->aborted)
        j->status = status;
    if (endured) {
        if (state == SHM_JOINED || !report_start(j, info))
            say_death(j, rank, info, "; the others go on");
        j->start_failed = false;
    } else if (!clean && aborts < 0 && !report_start(j, info) && !j->start_failed &&
               !is_consequence(j, rank, info)) {
        const char *more = j->left == 0 ? "" : "; the job ends";
        if (status == 0)
            more = state == SHM_JOINED ? " without ferry_close; the job ends"
                                       : " and never opened Ferry, others did; the job ends";
        say_death(j, rank, info, more);
    }
    if (aborts >= 0)
        end_at_once(j, aborts);
    if (j->controls.base != NULL && state != SHM_LEFT) {
        note_outcome(j, rank, info);
        fy_controls_mark(j->controls.base, j->controls.ranks, (uint32_t)rank, SHM_DEAD);
    }
    if (clean || endured)
        return;
    if (j->status == 0 && !j->aborted)
        j->status = 1;
    start_grace(j);
}
