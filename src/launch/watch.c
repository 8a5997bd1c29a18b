/* The launcher's loop: it handles ends of children, signals, lines of output, and the stages of the
 * job's end. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "launch/job.h"

/* Sends a signal to joined processes, which are in other process groups; with `all` to children
 * too. */
static void send_signal(const job *j, int number, bool all)
{
    for (int rank = 0; rank < j->ranks && j->children != NULL; rank++)
        if (j->children[rank].pidfd >= 0 && (all || j->children[rank].joined))
            syscall(SYS_pidfd_send_signal, j->children[rank].pidfd, number, NULL, 0);
}

void fy_job_signal(job *j, int number)
{
    send_signal(j, number, true);
}

static bool ends_programs(int number)
{
    return number != SIGUSR1 && number != SIGUSR2;
}

/* Whether a child has a handler for the signal. Without one the signal would end it. */
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

/* Asks the ranks what they do, and prints it. Returns false if no rank has begun. */
static bool ask_why(const job *j)
{
    fy_controls own = j->controls;
    if (own.base == NULL) { /* the ranks are threads of a child, and that has made the segment */
        int fd = fy_segment_of_process(getpid(), false);
        bool found = fd >= 0 && fy_controls_map(fd, &own) == 0;
        if (fd >= 0)
            close(fd);
        if (!found)
            return false;
    }
    fy_why_query(&own);
    fy_why_print(&own, STDERR_FILENO);
    if (own.base != j->controls.base)
        fy_controls_unmap(&own);
    return true;
}

/* Passes a signal on, unless it came from the terminal: then the ranks, in our process group, have
 * it already. */
static void pass_signal(job *j)
{
    struct signalfd_siginfo info;
    if (read(j->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    int number = (int)info.ssi_signo;
    if (ends_programs(number)) {
        if (j->passed_signal == 0)
            job_say("SIG%s: the ranks were told", sigabbrev_np(number));
        j->passed_signal = number;
    }
    if (number == SIGUSR1 && ask_why(j)) {
        signal_catchers(j, number);
        return;
    }
    if (number == SIGINT && ++j->interrupts > 1) {
        j->stage = JOB_TERMINATED;
        fy_job_next_stage(j);
        return;
    }
    send_signal(j, number, info.ssi_code != SI_KERNEL);
}

static void reap_child(job *j, int rank)
{
    job_child *child = &j->children[rank];
    siginfo_t info = {0};
    if (child->joined) {
        fy_joiner_gone(j, rank, true);
        return;
    }
    if (waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
        return;
    close(child->pidfd);
    child->pidfd = -1;
    j->left--;
    /* The child's own output comes before our line about it. */
    for (int i = 0; i < 2; i++)
        while (fy_stream_read(j, &child->streams[i], rank)) {
        }
    fy_job_child_gone(j, rank, &info);
}

static int until_ms(uint64_t end_ns)
{
    uint64_t now = end_ns == UINT64_MAX ? 0 : fy_clock_now_ns();
    if (end_ns == UINT64_MAX)
        return -1;
    return now >= end_ns ? 0 : (int)((end_ns - now) / 1000000 + 1);
}

static uint64_t stage_end_ns(const job *j)
{
    return j->stage == JOB_RUNS || j->stage == JOB_KILLED ? UINT64_MAX : j->stage_end_ns;
}

int fy_job_poll(struct pollfd *set, nfds_t count, int timeout_ms)
{
    struct pollfd *used = set + count;
    nfds_t uses = 0;
    for (nfds_t i = 0; i < count; i++)
        if (set[i].fd >= 0)
            used[uses++] = set[i];
    int ready = poll(used, uses, timeout_ms);
    for (nfds_t i = count; i-- > 0;)
        if (set[i].fd >= 0)
            set[i].revents = used[--uses].revents;
    return ready;
}

/* Fills the set: signals, spawn requests, the join socket, joining processes, then three entries
 * for each child. */
enum { PLACE_JOINERS = 3, PLACE_CHILDREN = PLACE_JOINERS + JOB_JOINERS };

/* The entry of a stream: its target if lines wait to be written, else the pipe if it is read
 * now. */
static struct pollfd stream_place(const job *j, const job_stream *stream)
{
    if (!fy_stream_pending(stream))
        return (struct pollfd){.fd = stream->fd, .events = POLLIN};
    const job_stream *writing = j->writing[stream->target_fd - STDOUT_FILENO];
    bool turn = writing == NULL || writing == stream;
    return (struct pollfd){.fd = turn ? stream->target_fd : -1, .events = POLLOUT};
}

static void fill_set(const job *j, struct pollfd *set)
{
    set[0] = (struct pollfd){.fd = j->signal_fd, .events = POLLIN};
    set[1] = (struct pollfd){.fd = j->spawn_requests, .events = POLLIN};
    set[2] =
        (struct pollfd){.fd = fy_joiners_full(j) ? -1 : j->join_socket.listener, .events = POLLIN};
    for (int i = 0; i < JOB_JOINERS; i++)
        set[PLACE_JOINERS + i] =
            (struct pollfd){.fd = j->join_socket.joiners[i].fd, .events = POLLIN};
    for (int rank = 0; rank < j->ranks; rank++) {
        const job_child *child = &j->children[rank];
        struct pollfd *of = &set[PLACE_CHILDREN + 3 * rank];
        of[0] = (struct pollfd){.fd = child->pidfd, .events = POLLIN};
        of[1] = stream_place(j, &child->streams[0]);
        of[2] = stream_place(j, &child->streams[1]);
        if (child->joined)
            of[1] = (struct pollfd){.fd = child->link, .events = POLLIN};
    }
}

static void serve_set(job *j, const struct pollfd *set)
{
    if (set[0].revents)
        pass_signal(j);
    if (set[1].revents)
        (void)fy_job_spawn_ranks(j, j->spawn_requests);
    for (int i = 0; i < JOB_JOINERS; i++)
        if (set[PLACE_JOINERS + i].revents)
            fy_joiner_hear(j, i);
    if (set[2].revents)
        fy_joiner_accept(j);
    for (int rank = 0; rank < j->ranks; rank++) {
        const struct pollfd *of = &set[PLACE_CHILDREN + 3 * rank];
        if (j->children[rank].joined && of[1].revents &&
            !fy_job_spawn_ranks(j, j->children[rank].link))
            fy_joiner_gone(j, rank, false);
        for (int i = 0; i < 2 && !j->children[rank].joined; i++)
            if (of[1 + i].revents)
                fy_stream_read(j, &j->children[rank].streams[i], rank);
        if (of[0].revents && j->children[rank].pidfd >= 0)
            reap_child(j, rank);
    }
}

/* The argument of sched_setattr, which not every libc declares. */
typedef struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
} scheduling;

/* Asks the kernel for short turns: a thread that needs a processor for a short time then gets one
 * sooner (Linux 6.12). All ranks may wait for what this process has to say. Older kernels ignore
 * it. */
static void ask_for_short_turns(void)
{
    scheduling s = {.size = sizeof(s)};
    if (syscall(SYS_sched_getattr, 0, &s, sizeof(s), 0) != 0 || s.policy != SCHED_OTHER)
        return;
    s.runtime_ns = 100 * 1000;
    (void)syscall(SYS_sched_setattr, 0, &s, 0);
}

void fy_job_watch(job *j)
{
    ask_for_short_turns();
    nfds_t count = PLACE_CHILDREN + 3 * (nfds_t)j->ranks;
    struct pollfd *set = calloc(2 * count, sizeof(*set));
    if (set == NULL) {
        job_say("no memory to watch the job; it ends");
        j->status = 1;
        fy_job_signal(j, SIGKILL);
        return;
    }
    while (j->left > 0) {
        fill_set(j, set);
        uint64_t stage_ns = stage_end_ns(j), joiners_ns = fy_joiners_deadline_ns(j);
        int timeout_ms = until_ms(stage_ns < joiners_ns ? stage_ns : joiners_ns);
        if (fy_job_poll(set, count, timeout_ms) > 0)
            serve_set(j, set);
        fy_joiners_expire(j);
        if (until_ms(stage_end_ns(j)) == 0)
            fy_job_next_stage(j);
    }
    free(set);
}
