#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/thread_end.h"
#include "launch/job.h"

static const int passed_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

/* A variable of a child; if `value` is negative, the child does not have it. */
typedef struct own_variable {
    const char *name;
    int value;
} own_variable;

enum { OWN_MAX = 7, OWN_BYTES = 32 };

static bool is_own(const char *entry, const own_variable own[OWN_MAX])
{
    for (int i = 0; i < OWN_MAX; i++) {
        size_t length = own[i].name == NULL ? 0 : strlen(own[i].name);
        if (length > 0 && strncmp(entry, own[i].name, length) == 0 && entry[length] == '=')
            return true;
    }
    return false;
}

/* Makes the environment of a child before the fork: the child of a process with several threads
 * must not allocate. NULL: no memory. */
static char **make_environment(const job *j, int rank)
{
    const fy_launch_plan *plan = j->plan;
    const own_variable places[OWN_MAX] = {{FY_ENV_JOB_FD, j->segment_fd},
                                          {FY_ENV_JOB_SOCKET, j->spawn_requests_theirs},
                                          {FY_ENV_JOB_PROCESS, j->ranks > 1 ? INT32_MAX : -1},
                                          {FY_ENV_RANK, rank},
                                          {FY_ENV_RANKS, j->ranks},
                                          {FY_ENV_RANKS_MAX, -1},
                                          {FY_ENV_RANKS_JOIN, -1}};
    const own_variable threads[OWN_MAX] = {
        {FY_ENV_THREADS, 1},
        {FY_ENV_RANKS, plan->threads},
        {FY_ENV_RANKS_MAX, plan->threads_max > 0 ? plan->threads_max : -1}};
    const own_variable *own = j->controls.base != NULL ? places : threads;
    char **from = plan->environment != NULL ? plan->environment : environ;
    size_t count = 0, used = 0;
    while (from != NULL && from[count] != NULL)
        count++;
    char **out = malloc((count + OWN_MAX + 1) * sizeof(*out) + OWN_MAX * OWN_BYTES);
    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (!is_own(from[i], own))
            out[used++] = from[i];
    char *text = (char *)(out + count + OWN_MAX + 1);
    for (int i = 0; i < OWN_MAX; i++, text += OWN_BYTES)
        if (own[i].name != NULL && own[i].value >= 0) {
            snprintf(text, OWN_BYTES, "%s=%d", own[i].name, own[i].value);
            out[used++] = text;
        }
    out[used] = NULL;
    return out;
}

/* In the child from here. If the process has several threads, the child calls only functions that
 * are safe after a fork. */

/* Rank 0 reads the launcher's input. Closes descriptors of the launcher that the child has
 * inherited. */
static void arrange_files(const job *j, int rank, const int write_fd[2])
{
    for (int i = 0; i < 2; i++)
        if (write_fd[i] >= 0) {
            dup2(write_fd[i], STDOUT_FILENO + i);
            close(write_fd[i]);
        }
    int null = rank == 0 ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        close(null);
    }
    for (int i = 0; i < j->ranks; i++) {
        if (j->children[i].pidfd >= 0)
            close(j->children[i].pidfd);
        for (int s = 0; s < 2; s++)
            if (j->children[i].streams[s].fd >= 0)
                close(j->children[i].streams[s].fd);
    }
    if (j->spawn_requests >= 0)
        close(j->spawn_requests);
    close(j->signal_fd);
    close(j->start_pipe[0]);
}

/* Raises the limit of open files. A descriptor per rank, or three with labels, may be more than the
 * usual soft limit, which is low for programs that use select. Ranks get the old limit back. */
static void raise_files(job *j)
{
    if (getrlimit(RLIMIT_NOFILE, &j->old_files) != 0)
        return;
    struct rlimit most = {.rlim_cur = j->old_files.rlim_max, .rlim_max = j->old_files.rlim_max};
    (void)setrlimit(RLIMIT_NOFILE, &most);
}

int fy_job_no_file(const char *call)
{
    int reason = errno;
    struct rlimit limit;
    if (reason != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return fy_error_set(FERRY_ESYSTEM, "%s: %s", call, strerror(reason));
    return fy_error_set(FERRY_ESYSTEM,
                        "%s: %s: the launcher may have %llu (ulimit -Hn); expected one for each "
                        "rank, or three with labels, and some more",
                        call, strerror(reason), (unsigned long long)limit.rlim_cur);
}

static void restore_files(const job *j)
{
    if (j->old_files.rlim_max != 0)
        (void)setrlimit(RLIMIT_NOFILE, &j->old_files);
}

/* Restores these signals: a shell makes its background jobs ignore them, but a user that sends one
 * to a rank means it. */
static void heed_interrupts(void)
{
    static const int numbers[] = {SIGINT, SIGQUIT};
    struct sigaction action;
    for (int i = 0; i < 2; i++)
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler == SIG_IGN) {
            action.sa_handler = SIG_DFL;
            sigaction(numbers[i], &action, NULL);
        }
}

static _Noreturn void job_run_rank(const job *j, int rank)
{
    int status;
    pthread_cleanup_push(fy_thread_end_early, &rank);
    status = j->plan->child(j->plan->arg, rank);
    pthread_cleanup_pop(0);
    exit(status);
}

static _Noreturn void job_run_child(job *j, int rank, const int write_fd[2], char *const argv[])
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != j->launcher)
        _exit(128 + SIGKILL); /* the launcher died before the line above */
    arrange_files(j, rank, write_fd);
    if (j->controls.base != NULL) {
        fy_controls_unmap(&j->controls);
        fcntl(j->segment_fd, F_SETFD, 0);
    }
    if (j->spawn_requests_theirs >= 0)
        fcntl(j->spawn_requests_theirs, F_SETFD, 0);
    sigaction(SIGCHLD, &j->old_child_action, NULL);
    heed_interrupts();
    sigprocmask(SIG_SETMASK, &j->old_mask, NULL);
    restore_files(j);
    if (j->plan->prepare != NULL)
        j->plan->prepare(j->plan->arg);
    if (argv == NULL && j->plan->argv == NULL)
        job_run_rank(j, rank);
    const char *program = argv != NULL ? argv[0] : j->plan->program;
    execvp(program, argv != NULL ? argv : j->plan->argv);
    job_failure failure = {.error = errno};
    strncpy(failure.program, program, sizeof(failure.program) - 1);
    ssize_t written = write(j->start_pipe[1], &failure, sizeof(failure));
    (void)written;
    _exit(failure.error == ENOENT ? 127 : 126);
}

/* In the launcher from here. */

int fy_job_start_child(job *j, int rank, char *const argv[])
{
    job_child *child = &j->children[rank];
    int write_fd[2] = {-1, -1};
    int error = 0;
    for (int i = 0; i < 2 && j->plan->label && error == 0; i++)
        error = fy_stream_open(&child->streams[i], STDOUT_FILENO + i, &write_fd[i]);
    char **environment = error != 0 ? NULL : make_environment(j, rank);
    if (error == 0 && environment == NULL)
        error = fy_error_set(FERRY_ENOMEM, "no memory to start rank %d", rank);
    if (error == 0) {
        child->pid = fork();
        if (child->pid == 0) {
            environ = environment;
            job_run_child(j, rank, write_fd, argv);
        }
        if (child->pid < 0)
            error =
                fy_error_set(FERRY_ESYSTEM, "starting rank %d: fork: %s", rank, strerror(errno));
    }
    free((void *)environment);
    for (int i = 0; i < 2; i++)
        if (write_fd[i] >= 0)
            close(write_fd[i]);
    if (error != 0)
        return error;
    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    if (child->pidfd < 0) {
        error = fy_job_no_file("pidfd_open");
        kill(child->pid, SIGKILL);
        (void)waitpid(child->pid, NULL, 0);
        return error;
    }
    j->left++;
    return 0;
}

static void say_bindings(const job *j)
{
    cpu_set_t set;
    char text[400];
    int used = 0;
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return;
    for (size_t cpu = 0; cpu < CPU_SETSIZE && used < (int)sizeof(text) - 16; cpu++)
        if (CPU_ISSET(cpu, &set))
            used += snprintf(text + used, sizeof(text) - (size_t)used, " %zu", cpu);
    for (int rank = 0; rank < j->starting; rank++)
        fy_log_line(rank, "may use processors%s", text);
}

static int take_signals(job *j)
{
    sigset_t set;
    sigemptyset(&set);
    /* If nohup has made SIGHUP ignored, it stays so. */
    struct sigaction hangup = {0};
    sigaction(SIGHUP, NULL, &hangup);
    for (size_t i = 0; i < sizeof(passed_signals) / sizeof(passed_signals[0]); i++)
        if (passed_signals[i] != SIGHUP || hangup.sa_handler != SIG_IGN)
            sigaddset(&set, passed_signals[i]);
    /* If SIGCHLD were ignored, the kernel would reap the children before us. */
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &action, &j->old_child_action);
    sigprocmask(SIG_BLOCK, &set, &j->old_mask);
    j->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (j->signal_fd < 0)
        return fy_job_no_file("signalfd");
    return 0;
}

static int launch_prepare(job *j)
{
    j->children = calloc((size_t)j->ranks, sizeof(*j->children));
    if (j->children == NULL)
        return fy_error_set(FERRY_ENOMEM, "no memory for %d ranks", j->ranks);
    for (int rank = 0; rank < j->ranks; rank++) {
        job_child *child = &j->children[rank];
        child->pidfd = child->link = child->streams[0].fd = child->streams[1].fd = -1;
    }
    if (j->plan->join != NULL) {
        int error = fy_join_socket_open(&j->join_socket, j->plan->join);
        if (error != 0)
            return error;
    }
    if (j->plan->shm != NULL) {
        int error = fy_segment_create(j->plan->shm, &j->segment_fd);
        if (error == 0)
            error = fy_controls_map(j->segment_fd, &j->controls);
        if (error != 0)
            return error;
    }
    if (j->ranks > j->starting) {
        int error = fy_job_spawn_requests_open(j);
        if (error != 0)
            return error;
    }
    if (pipe2(j->start_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        return fy_job_no_file("pipe");
    int error = take_signals(j);
    return error != 0 ? error : fy_job_orphans_begin(j);
}

static void clean_up(job *j)
{
    fy_job_orphans_end(j);
    if (j->children != NULL)
        fy_streams_end(j);
    for (int rank = 0; rank < j->ranks && j->children != NULL; rank++) {
        for (int i = 0; i < 2; i++)
            fy_stream_free(&j->children[rank].streams[i]);
        if (j->children[rank].pidfd >= 0)
            close(j->children[rank].pidfd);
        if (j->children[rank].link >= 0)
            close(j->children[rank].link);
    }
    free(j->children);
    fy_join_socket_close(&j->join_socket);
    const int files[] = {j->signal_fd,     j->segment_fd,     j->start_pipe[0],
                         j->start_pipe[1], j->spawn_requests, j->spawn_requests_theirs};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (files[i] >= 0)
            close(files[i]);
    if (j->controls.base != NULL)
        fy_controls_unmap(&j->controls);
    restore_files(j);
    if (j->signal_fd >= 0) {
        sigaction(SIGCHLD, &j->old_child_action, NULL);
        sigprocmask(SIG_SETMASK, &j->old_mask, NULL);
    }
}

/* Warns if the job has succeeded and its program never opened Ferry: then each process ran alone,
 * and all did the same work. */
static void say_unopened(const job *j)
{
    if (j->status != 0 || j->aborted || j->plan->argv == NULL || j->controls.base == NULL ||
        fy_job_anyone_joined(j))
        return;
    job_say("no process of %s (%d started) has opened Ferry; expected a program that calls "
            "ferry_main or ferry_open",
            j->plan->program, j->starting);
}

static int check_stack(void)
{
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= FY_STACK_MIN_BYTES)
        return 0;
    return fy_error_set(FERRY_EINVAL,
                        "stacks are limited to %llu KiB; expected %d or more (ulimit -s)",
                        (unsigned long long)stack.rlim_cur / 1024, FY_STACK_MIN_BYTES / 1024);
}

int fy_job_launch(const fy_launch_plan *plan)
{
    job j = {
        .plan = plan,
        .ranks = plan->shm != NULL ? plan->shm->ranks : 1,
        .starting = plan->shm != NULL ? plan->shm->ranks : 1,
        .spawn_requests = -1,
        .spawn_requests_theirs = -1,
        .segment_fd = -1,
        .signal_fd = -1,
        .start_pipe = {-1, -1},
        .launcher = getpid(),
    };
    if (j.ranks < 1 || j.ranks > FY_RANKS_MAX)
        return fy_error_set(FERRY_EINVAL, "%d ranks: must be 1 to %d", j.ranks, FY_RANKS_MAX);
    if (plan->shm != NULL && plan->shm->ranks_max > j.ranks && plan->shm->ranks_max <= FY_RANKS_MAX)
        j.ranks = plan->shm->ranks_max;
    if (plan->join != NULL && j.ranks == j.starting)
        return fy_error_set(FERRY_EINVAL,
                            "nobody could join at %s: the job starts with %d ranks and has room "
                            "for no more; expected --ranks-max %d or more (-m, FERRY_RANKS_MAX)",
                            plan->join, j.starting, j.starting + 1);
    if (plan->label && plan->shm == NULL)
        return fy_error_set(FERRY_EINVAL, "no labels for ranks that are threads: they have one "
                                          "output together");
    int error = check_stack();
    if (error != 0)
        return error;
    fy_join_socket_init(&j.join_socket);
    raise_files(&j);
    error = launch_prepare(&j);
    if (error == 0 && plan->bindings)
        say_bindings(&j);
    fflush(NULL); /* otherwise each child would write it again */
    for (int rank = 0; rank < j.starting && error == 0; rank++)
        error = fy_job_start_child(&j, rank, NULL);
    if (error != 0)
        fy_job_signal(&j, SIGKILL);
    else
        fy_job_watch(&j);
    if (error == 0)
        say_unopened(&j);
    clean_up(&j);
    return error != 0 ? error : j.status;
}
