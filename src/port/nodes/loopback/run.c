/* The launcher: makes the sockets, starts the ranks, passes signals on, and waits for the ends. The
 * first rank that fails ends the others, as an MPI library's launcher does: SIGTERM, then SIGKILL
 * after TERMINATE_NS. Ranks die with the launcher, and what they have started with them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread_end.h"
#include "launch/launch.h"
#include "port/nodes/loopback/loopback.h"
#include "port/nodes/open.h"

#define TERMINATE_NS UINT64_C(2000000000)
#define RANKS_MAX_VARIABLE "FERRY_RANKS_MAX"

typedef struct launcher {
    const fy_port_settings *settings;
    fy_port_main *rank_main;
    void *arg;
    fy_loopback_job job;
    int ranks_max;
    pid_t self;
    pid_t *pids; /* by rank; 0: it has ended, or was not started */
    int left;
    int status;
    uint64_t kill_ns; /* when those that live are killed; UINT64_MAX: the job goes on */
    sigset_t old_mask;
    struct sigaction old_child_action;
} launcher;

/* In a rank's process from here. */

/* Ranks that come later find their place as those of Ferry's launcher do. */
static const char *const launcher_variables[] = {"FERRY_PORT=", FY_ENV_LOOPBACK_NODES, NULL};

/* Closes what belongs to the others. Rank 0 reads the launcher's input. */
static void arrange_files(const launcher *l, int rank)
{
    for (int i = 0; i < l->job.ranks; i++)
        if (i != rank) {
            close(l->job.in[i]);
            l->job.in[i] = -1;
        }
    int null = rank == 0 ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        close(null);
    }
}

static int open_port(const launcher *l, int rank, fy_nodes_job **job, fy_port **port)
{
    fy_nodes_options o = {.binding = &fy_loopback_binding,
                          .net = fy_loopback_net_open(&l->job, rank),
                          .threads = true,
                          .owned = true,
                          .share = true,
                          .launcher = {.variables = launcher_variables, .connection = -1},
                          .shm = {.ranks_max = l->ranks_max,
                                  .heap_bytes = l->settings->heap_bytes,
                                  .ring_slots = l->settings->ring_slots,
                                  .ring_bytes = l->settings->ring_bytes},
                          .compute = l->settings->compute};
    if (o.net == NULL)
        return fy_error_set(FERRY_ENOMEM, "open: no memory for %d ranks", l->job.ranks);
    int error = fy_nodes_begin(&o);
    return error != 0 ? error : fy_nodes_open(&o, job, port);
}

/* A rank that fails does not wait for the others: its status ends the job. */
static int run_rank(const launcher *l, int rank)
{
    fy_nodes_job *job;
    fy_port *port;
    if (open_port(l, rank, &job, &port) != 0) {
        fy_log_line(rank, "%s", fy_error_text());
        return EXIT_FAILURE;
    }
    int status;
    pthread_cleanup_push(fy_thread_end_early, &rank);
    status = l->rank_main(l->arg, port);
    pthread_cleanup_pop(0);
    if (status != 0)
        return status;
    fy_nodes_leave(job);
    /* relaxed: the launcher looks when this process has ended */
    atomic_store_explicit(&l->job.left[rank], true, memory_order_relaxed);
    return 0;
}

static _Noreturn void loopback_run_child(launcher *l, int rank)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != l->self)
        _exit(128 + SIGKILL); /* it died before the line above */
    arrange_files(l, rank);
    sigaction(SIGCHLD, &l->old_child_action, NULL);
    sigprocmask(SIG_SETMASK, &l->old_mask, NULL);
    exit(run_rank(l, rank));
}

/* In the launcher from here. */

/* Refuses variables that only port shm follows. */
static int check_variables(void)
{
    uint64_t threads = 0;
    int error = fy_env_number(FY_ENV_THREADS, &threads);
    if (error != 0)
        return error;
    if (threads != 0)
        return fy_error_set(FERRY_ELAUNCH,
                            "%s is 1, but the ranks of port loopback are processes; expected 0",
                            FY_ENV_THREADS);
    return fy_env_refuse_join();
}

static int read_settings(launcher *l)
{
    const fy_port_settings *s = l->settings;
    uint64_t nodes = (uint64_t)s->ranks, ranks_max = 0;
    int error = check_variables();
    if (error == 0)
        error = fy_env_number_within(FY_ENV_LOOPBACK_NODES, 1, (uint64_t)s->ranks, &nodes);
    if (error == 0)
        error = fy_env_number_within(RANKS_MAX_VARIABLE, 1, FY_RANKS_MAX, &ranks_max);
    l->job.ranks = s->ranks;
    l->job.nodes = (int)nodes;
    l->ranks_max = (int)ranks_max;
    return error;
}

static int make_sockets(fy_loopback_job *job)
{
    job->in = calloc(2 * (size_t)job->ranks, sizeof(*job->in));
    if (job->in == NULL)
        return fy_error_set(FERRY_ENOMEM, "no memory for %d ranks", job->ranks);
    job->out = job->in + job->ranks;
    for (int i = 0; i < 2 * job->ranks; i++)
        job->in[i] = -1;
    for (int rank = 0; rank < job->ranks; rank++) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
            return fy_error_set(FERRY_ESYSTEM, "sockets of %d ranks: %s", job->ranks,
                                strerror(errno));
        job->in[rank] = ends[0];
        job->out[rank] = ends[1];
    }
    void *shared = mmap(NULL, (size_t)job->ranks * sizeof(*job->left), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return fy_error_set(FERRY_ENOMEM, "no memory for %d ranks", job->ranks);
    job->left = shared;
    return 0;
}

static void free_sockets(fy_loopback_job *job)
{
    for (int i = 0; i < 2 * job->ranks && job->in != NULL; i++)
        if (job->in[i] >= 0)
            close(job->in[i]);
    free(job->in);
    if (job->left != NULL)
        munmap(job->left, (size_t)job->ranks * sizeof(*job->left));
}

/* The signals that the launcher waits for; of these it passes on all but SIGCHLD. */
static sigset_t watched_signals(void)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaddset(&set, numbers[i]);
    return set;
}

static void signal_all(const launcher *l, int number)
{
    for (int rank = 0; rank < l->job.ranks; rank++)
        if (l->pids[rank] != 0)
            (void)kill(l->pids[rank], number);
}

static void launcher_end_job(launcher *l, int status)
{
    if (l->status == 0)
        l->status = status;
    if (l->kill_ns != UINT64_MAX)
        return;
    l->kill_ns = fy_clock_now_ns() + TERMINATE_NS;
    signal_all(l, SIGTERM);
    signal_all(l, SIGCONT); /* one that is stopped would not see it */
}

static void note_exit(launcher *l, int rank, int wait_status)
{
    pid_t pid = l->pids[rank];
    bool first = l->kill_ns == UINT64_MAX;
    const char *more = l->left > 1 ? "; the job ends" : "";
    l->pids[rank] = 0;
    l->left--;
    /* relaxed: as in run_rank */
    bool left = atomic_load_explicit(&l->job.left[rank], memory_order_relaxed);
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0 && left)
        return;
    int status = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    if (first && WIFSIGNALED(wait_status))
        fy_log_line(-1, "rank %d (process %d) was killed by SIG%s (%s)%s", rank, (int)pid,
                    sigabbrev_np(WTERMSIG(wait_status)), strsignal(WTERMSIG(wait_status)), more);
    else if (first)
        fy_log_line(-1, "rank %d (process %d) exited with status %d%s%s", rank, (int)pid, status,
                    status == 0 ? " without ferry_close" : "", more);
    launcher_end_job(l, status == 0 ? EXIT_FAILURE : status);
}

static void reap_rank(launcher *l, int rank)
{
    int status;
    if (l->pids[rank] != 0 && waitpid(l->pids[rank], &status, WNOHANG) == l->pids[rank])
        note_exit(l, rank, status);
}

/* If there are several ends between two looks, one signal is kept: that of the first, which `pid`
 * is. */
static void reap_all(launcher *l, pid_t pid)
{
    for (int rank = 0; rank < l->job.ranks; rank++)
        if (l->pids[rank] == pid)
            reap_rank(l, rank);
    for (int rank = 0; rank < l->job.ranks; rank++)
        reap_rank(l, rank);
}

/* A signal of the terminal has reached the ranks already, which are in our process group. */
static void launcher_watch(launcher *l)
{
    enum { TURN_NS = 100 * 1000 * 1000 };
    const sigset_t set = watched_signals();
    const struct timespec turn = {.tv_nsec = TURN_NS};
    while (l->left > 0) {
        siginfo_t info;
        int number = sigtimedwait(&set, &info, &turn);
        if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL)
            signal_all(l, number);
        reap_all(l, number == SIGCHLD ? info.si_pid : -1);
        if (l->kill_ns != UINT64_MAX && fy_clock_now_ns() >= l->kill_ns)
            signal_all(l, SIGKILL);
    }
}

static int start_ranks(launcher *l)
{
    int error = 0;
    for (int rank = 0; rank < l->job.ranks && error == 0; rank++) {
        pid_t pid = fork();
        if (pid == 0)
            loopback_run_child(l, rank);
        if (pid < 0)
            error =
                fy_error_set(FERRY_ESYSTEM, "starting rank %d: fork: %s", rank, strerror(errno));
        l->pids[rank] = pid < 0 ? 0 : pid;
        l->left += pid > 0;
    }
    return error;
}

/* Starts the ranks and waits for their ends. */
static int run_ranks(launcher *l)
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP};
    const sigset_t set = watched_signals();
    sigaction(SIGCHLD, &by_default, &l->old_child_action); /* ignored, it would reap for us */
    sigprocmask(SIG_BLOCK, &set, &l->old_mask);
    fflush(NULL); /* else each child would write it again */
    int error = start_ranks(l);
    for (int rank = 0; rank < l->job.ranks; rank++) {
        close(l->job.in[rank]); /* else nobody would see the end of a rank */
        l->job.in[rank] = -1;
    }
    if (error != 0)
        signal_all(l, SIGKILL);
    l->kill_ns = error != 0 ? 0 : UINT64_MAX;
    launcher_watch(l);
    sigprocmask(SIG_SETMASK, &l->old_mask, NULL);
    sigaction(SIGCHLD, &l->old_child_action, NULL);
    return error != 0 ? error : l->status;
}

int fy_loopback_run(const fy_port_settings *settings, fy_port_main *rank_main, void *arg)
{
    launcher l = {.settings = settings,
                  .rank_main = rank_main,
                  .arg = arg,
                  .self = getpid(),
                  .kill_ns = UINT64_MAX};
    int error = read_settings(&l);
    if (error == 0)
        error = make_sockets(&l.job);
    if (error == 0)
        l.pids = calloc((size_t)l.job.ranks, sizeof(*l.pids));
    if (error == 0 && l.pids == NULL)
        error = fy_error_set(FERRY_ENOMEM, "no memory for %d ranks", l.job.ranks);
    int result = error == 0 ? run_ranks(&l) : error;
    free_sockets(&l.job);
    free(l.pids);
    if (result >= 0)
        return result;
    char reason[400]; /* the program may read another copy of the text (fy_port_settings) */
    snprintf(reason, sizeof(reason), "%s", fy_error_text());
    return settings->error_set(result, "%s", reason);
}
