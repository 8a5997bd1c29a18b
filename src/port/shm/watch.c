/* The launcher's loop: ends of children, signals, lines of output, stages of the end. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "port/shm/job.h"

void fy_job_signal(job *j, int number)
{
    for (int rank = 0; rank < j->ranks && j->children != NULL; rank++)
        if (j->children[rank].pidfd >= 0)
            syscall(SYS_pidfd_send_signal, j->children[rank].pidfd, number, NULL, 0);
}

static bool ends_programs(int number)
{
    return number != SIGUSR1 && number != SIGUSR2;
}

/* Whether a child has a handler for the signal, which would end it otherwise. */
static bool catches(pid_t pid, int number)
{
    char path[64], line[128];
    unsigned long long caught = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "SigCgt: %llx", &caught) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return caught >> (number - 1) & 1;
}

static void signal_catchers(const job *j, int number)
{
    for (int rank = 0; rank < j->ranks; rank++)
        if (j->children[rank].pidfd >= 0 && catches(j->children[rank].pid, number))
            syscall(SYS_pidfd_send_signal, j->children[rank].pidfd, number, NULL, 0);
}

/* A signal of the terminal has reached the ranks already, which are in our process group. */
static void pass_signal(job *j)
{
    struct signalfd_siginfo info;
    if (read(j->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    int number = (int)info.ssi_signo;
    if (ends_programs(number)) {
        if (j->passed_signal == 0)
            fy_log_line(-1, "SIG%s: the ranks were told", sigabbrev_np(number));
        j->passed_signal = number;
    }
    if (number == SIGUSR1 && j->controls.base != NULL) {
        fy_why_question(&j->controls);
        fy_why_print(&j->controls, STDERR_FILENO);
        signal_catchers(j, number);
        return;
    }
    if (number == SIGINT && ++j->interrupts > 1) {
        j->stage = JOB_TERMINATED;
        fy_job_next_stage(j);
        return;
    }
    if (info.ssi_code != SI_KERNEL)
        fy_job_signal(j, number);
}

static void reap(job *j, int rank)
{
    job_child *child = &j->children[rank];
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
        return;
    close(child->pidfd);
    child->pidfd = -1;
    j->left--;
    /* What it wrote comes before what we say about it. */
    for (int i = 0; i < 2; i++)
        while (fy_stream_read(&child->streams[i], rank)) {
        }
    fy_job_child_gone(j, rank, &info);
}

static int timeout_ms(const job *j)
{
    if (j->stage == JOB_RUNS || j->stage == JOB_KILLED)
        return -1;
    uint64_t now = fy_clock_now_ns();
    return now >= j->stage_end_ns ? 0 : (int)((j->stage_end_ns - now) / 1000000 + 1);
}

/* Fills the set: the signals and requests for ranks, then three places per child. Negative
 * descriptors are skipped by poll. */
static void fill_set(const job *j, struct pollfd *set)
{
    set[0] = (struct pollfd){.fd = j->signal_fd, .events = POLLIN};
    set[1] = (struct pollfd){.fd = j->recruits, .events = POLLIN};
    for (int rank = 0; rank < j->ranks; rank++) {
        const job_child *child = &j->children[rank];
        struct pollfd *of = &set[2 + 3 * rank];
        of[0] = (struct pollfd){.fd = child->pidfd, .events = POLLIN};
        of[1] = (struct pollfd){.fd = child->streams[0].fd, .events = POLLIN};
        of[2] = (struct pollfd){.fd = child->streams[1].fd, .events = POLLIN};
    }
}

static void serve_set(job *j, const struct pollfd *set)
{
    if (set[0].revents)
        pass_signal(j);
    if (set[1].revents)
        fy_job_recruit(j);
    for (int rank = 0; rank < j->ranks; rank++) {
        const struct pollfd *of = &set[2 + 3 * rank];
        for (int i = 0; i < 2; i++)
            if (of[1 + i].revents)
                fy_stream_read(&j->children[rank].streams[i], rank);
        if (of[0].revents)
            reap(j, rank);
    }
}

void fy_job_watch(job *j)
{
    nfds_t count = 2 + 3 * (nfds_t)j->ranks;
    struct pollfd *set = calloc(count, sizeof(*set));
    if (set == NULL) {
        fy_log_line(-1, "no memory to watch the job; it ends");
        j->status = 1;
        fy_job_signal(j, SIGKILL);
        return;
    }
    while (j->left > 0) {
        fill_set(j, set);
        if (poll(set, count, timeout_ms(j)) > 0)
            serve_set(j, set);
        if (timeout_ms(j) == 0)
            fy_job_next_stage(j);
    }
    free(set);
}
