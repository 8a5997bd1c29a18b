#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "launch/job.h"
#include "port/nodes/child.h"
#include "port/nodes/node.h"

/* The orders that end the thread. */
enum { STOP_AT_ONCE = 1, STOP_AFTER_CHILDREN = 2 };

enum { PAUSE_NS = 1000 * 1000 };

enum { SET_STOP, SET_NEXT, SET_SPAWN_REQUESTS, SET_QUERY, SET_CHILDREN };

struct fy_nodes_watch {
    const fy_node *node;
    int stop_fd;
    int query_fd;      /* -1: there are no status queries */
    uint64_t stops;    /* STOP_..., or 0; the thread reads it */
    int next, next_fd; /* the distance to the rank whose end is awaited, and its file; -1: none */
    bool saw_death;    /* read after the thread has ended */
    uint64_t await_ns; /* since when a death waits for notices of other nodes; 0: none waits */
    bool starts;       /* it starts ranks; the fields below are for that alone */
    /* The job of the ranks that this process has started. The process counts as one of them, so
     * that the job does not end with the last of them. */
    job job;
    fy_launch_plan plan;
    fy_nodes_program program;
    struct pollfd *set;
    pthread_t thread;
};

static uint32_t state_at(const fy_nodes_watch *w, int place)
{
    return fy_shm_state(w->node->segment, (uint32_t)place);
}

static void note_death(fy_nodes_watch *w, int index)
{
    const fy_node *node = w->node;
    int place = fy_node_place(node, index);
    if (state_at(w, place) >= SHM_LEFT)
        return;
    w->saw_death = true;
    fy_controls_mark(node->segment->base, node->segment->ranks, (uint32_t)place, SHM_DEAD);
    char doing[128];
    fy_doing_describe(rank_at(node->segment->base, (uint32_t)place), ", last ", doing,
                      sizeof(doing));
    fy_log_line(-1, "rank %d (process %d) has died%s", node->ranks[index], (int)node->pids[index],
                doing);
}

/* Watches the next rank that has not ended. If the system does not allow that, the watch ends. */
static void watch_next(fy_nodes_watch *w)
{
    if (w->next_fd >= 0)
        close(w->next_fd);
    while (++w->next < w->node->count) {
        int index = (w->node->self + w->next) % w->node->count;
        w->next_fd = (int)syscall(SYS_pidfd_open, w->node->pids[index], 0);
        if (w->next_fd >= 0 || errno != ESRCH)
            return;
        note_death(w, index);
    }
    w->next_fd = -1;
}

/* Whether the other ranks of this node go on without `dead`, but some rank elsewhere has not said
 * so yet. */
static bool awaits_endurance(const fy_nodes_watch *w, int dead)
{
    const fy_segment *segment = w->node->segment;
    bool far_endure = true;
    for (uint32_t place = 0; place < segment->ranks; place++) {
        const shm_rank *rank = rank_at(segment->base, place);
        /* seq_cst: as in shm_endure */
        uint32_t state = atomic_load(&rank->state), done = state & SHM_STATE_MASK;
        bool there = done == SHM_JOINED || (done == SHM_ABSENT && place < segment->starting);
        if (!there || place == (uint32_t)dead || atomic_load(&rank->endures))
            continue;
        if ((state & SHM_FAR) == 0)
            return false;
        far_endure = false;
    }
    return !far_endure;
}

/* Whether a death has to wait: notices of ranks of other nodes may still be in flight. A death ends
 * the job half a second later in any case, so it does not wait longer than that. */
static bool is_early(fy_nodes_watch *w, int dead)
{
    enum { PATIENCE_NS = 500 * 1000 * 1000 };
    uint64_t now_ns = fy_clock_now_ns();
    bool waits = w->node->numbers != 0 && awaits_endurance(w, dead);
    if (waits && w->await_ns == 0)
        w->await_ns = now_ns;
    if (waits && now_ns - w->await_ns < PATIENCE_NS)
        return true;
    w->await_ns = 0;
    return false;
}

/* A rank that this process has started has ended. Its status may be gone, if the program has waited
 * for all its children. */
static void reap_started(fy_nodes_watch *w, int rank)
{
    job *j = &w->job;
    job_child *child = &j->children[rank];
    siginfo_t info = {0};
    const id_t id = (id_t)child->pidfd;
    int error = waitid(P_PIDFD, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ? errno : 0;
    if (error == 0 && info.si_pid == 0)
        return;
    bool clean = error == 0 && info.si_code == CLD_EXITED && info.si_status == 0;
    if ((!clean || state_at(w, rank) != SHM_LEFT) && is_early(w, rank))
        return;
    if (error == 0)
        (void)waitid(P_PIDFD, id, &info, WEXITED | WNOHANG);
    if (error != 0)
        info =
            (siginfo_t){.si_code = CLD_EXITED, .si_status = state_at(w, rank) == SHM_LEFT ? 0 : 1};
    info.si_pid = child->pid;
    close(child->pidfd);
    child->pidfd = -1;
    j->left--;
    fy_job_child_gone(j, rank, &info);
}

static nfds_t fill_set(const fy_nodes_watch *w)
{
    const job *j = &w->job;
    w->set[SET_STOP] = (struct pollfd){.fd = w->stops != 0 ? -1 : w->stop_fd, .events = POLLIN};
    w->set[SET_NEXT] = (struct pollfd){.fd = w->stops != 0 ? -1 : w->next_fd, .events = POLLIN};
    w->set[SET_SPAWN_REQUESTS] =
        (struct pollfd){.fd = w->starts ? j->spawn_requests : -1, .events = POLLIN};
    w->set[SET_QUERY] = (struct pollfd){.fd = w->query_fd, .events = POLLIN};
    for (int rank = j->starting; rank < j->ranks; rank++)
        w->set[SET_CHILDREN + rank] =
            (struct pollfd){.fd = j->children[rank].pidfd, .events = POLLIN};
    return SET_CHILDREN + (nfds_t)j->ranks;
}

static int until_ms(const job *j)
{
    uint64_t now = fy_clock_now_ns();
    if (j->stage == JOB_RUNS)
        return -1;
    return now >= j->stage_end_ns ? 0 : (int)((j->stage_end_ns - now) / 1000000 + 1);
}

static void serve_set(fy_nodes_watch *w)
{
    job *j = &w->job;
    if (w->set[SET_STOP].revents != 0 &&
        read(w->stop_fd, &w->stops, sizeof(w->stops)) != (ssize_t)sizeof(w->stops))
        w->stops = 0;
    if (w->set[SET_NEXT].revents != 0) {
        note_death(w, (w->node->self + w->next) % w->node->count);
        watch_next(w);
    }
    if (w->set[SET_SPAWN_REQUESTS].revents != 0)
        (void)fy_job_spawn_ranks(j, j->spawn_requests);
    if (w->set[SET_QUERY].revents != 0)
        fy_nodes_query_answer(w->node, w->query_fd);
    for (int rank = j->starting; rank < j->ranks; rank++)
        if (w->set[SET_CHILDREN + rank].revents != 0)
            reap_started(w, rank);
}

static bool is_over(const fy_nodes_watch *w)
{
    return w->stops == STOP_AT_ONCE || (w->stops == STOP_AFTER_CHILDREN && w->job.left == 1);
}

/* A rank that this process has started has ended, and not all living ranks go on without it. This
 * process ends with the same status, and so the binding's launcher ends the job. */
static void watch_end_job(const job *j)
{
    if (j->stage == JOB_KILLED || (j->stage != JOB_RUNS && until_ms(j) == 0))
        _exit(j->status);
}

static void *node_watch(void *arg)
{
    fy_nodes_watch *w = arg;
    watch_next(w);
    while (!is_over(w)) {
        if (fy_job_poll(w->set, fill_set(w), until_ms(&w->job)) > 0)
            serve_set(w);
        if (w->await_ns != 0) /* the death that waits makes poll return */
            fy_clock_sleep_until(fy_clock_now_ns() + PAUSE_NS);
        watch_end_job(&w->job);
    }
    return NULL;
}

/* Prepares this process to start ranks. */
static int prepare_job(fy_nodes_watch *w, const fy_nodes_launcher *launcher, const sigset_t *mask)
{
    job *j = &w->job;
    fy_segment *segment = w->node->segment;
    w->plan = (fy_launch_plan){
        .program = w->program.path, .prepare = fy_nodes_child_prepare, .arg = &w->program};
    j->plan = &w->plan;
    j->segment_fd = w->node->fd;
    j->controls = (fy_controls){
        .base = segment->base, .ranks = segment->ranks, .starting = segment->starting};
    j->launcher = getpid();
    j->old_mask = *mask;
    sigaction(SIGCHLD, NULL, &j->old_child_action);
    int error = fy_nodes_program_read(launcher, &w->program);
    if (error != 0)
        return error;
    w->plan.argv = w->program.argv;
    w->plan.environment = w->program.environment;
    for (uint32_t rank = 0; rank < segment->ranks; rank++) {
        job_child *child = &j->children[rank];
        child->pidfd = child->link = child->streams[0].fd = child->streams[1].fd = -1;
    }
    if (pipe2(j->start_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        return fy_error_set(FERRY_ESYSTEM, "pipe: %s", strerror(errno));
    error = fy_job_spawn_requests_open(j);
    if (error != 0)
        return error;
    j->ranks = (int)segment->ranks;
    j->starting = (int)segment->starting;
    w->starts = true;
    /* The segment owns our end of the socket from now on, and closes it. */
    fy_launch_link(segment, j->spawn_requests_theirs);
    return 0;
}

static void free_watch(fy_nodes_watch *w)
{
    const int files[] = {w->stop_fd,           w->next_fd,
                         w->query_fd,          w->job.spawn_requests,
                         w->job.start_pipe[0], w->job.start_pipe[1]};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (files[i] >= 0)
            close(files[i]);
    fy_nodes_program_free(&w->program);
    free(w->job.children);
    free(w->set);
    free(w);
}

fy_nodes_watch *fy_nodes_watch_start(const fy_node *node, const fy_nodes_launcher *launcher,
                                     bool queries)
{
    bool starts = node->fd >= 0 && (node->numbers != 0 ? node->later_count > 0
                                                       : (int)node->segment->ranks > node->count);
    fy_nodes_watch *w = node->count < 2 && !starts && !queries ? NULL : calloc(1, sizeof(*w));
    if (w == NULL)
        return NULL;
    w->node = node;
    w->next_fd = -1;
    w->query_fd = queries ? fy_nodes_query_fd() : -1;
    w->job = (job){.left = 1, .spawn_requests = -1, .signal_fd = -1, .start_pipe = {-1, -1}};
    w->stop_fd = eventfd(0, EFD_CLOEXEC);
    w->set = calloc(2 * (SET_CHILDREN + (size_t)node->segment->ranks), sizeof(*w->set));
    w->job.children = calloc(node->segment->ranks, sizeof(*w->job.children));
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    bool ready = w->stop_fd >= 0 && w->set != NULL && w->job.children != NULL;
    if (ready && starts && prepare_job(w, launcher, &mask) != 0)
        fy_log_line(node->ranks[node->self], "ferry_spawn cannot start ranks: %s", fy_error_text());
    bool started = ready && fy_thread_create(&w->thread, node_watch, w) == 0;
    if (started)
        return w;
    if (w->starts)
        fy_segment_spawner_set(node->segment, NULL, NULL);
    free_watch(w);
    return NULL;
}

bool fy_nodes_watch_stop(fy_nodes_watch *w, bool whole)
{
    if (w == NULL)
        return false;
    uint64_t how = whole ? STOP_AFTER_CHILDREN : STOP_AT_ONCE;
    ssize_t written = write(w->stop_fd, &how, sizeof(how));
    (void)written;
    pthread_join(w->thread, NULL);
    /* The rank had left the job, and no rank is left that could end with its status. */
    if (w->job.status != 0)
        _exit(w->job.status);
    bool saw_death = w->saw_death;
    free_watch(w);
    return saw_death;
}
