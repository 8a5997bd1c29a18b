#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "port/mpi/node.h"
#include "port/shm/layout.h"

struct fy_mpi_watch {
    const fy_mpi_node *node;
    int stop_fd;
    pthread_t thread;
    bool saw_death; /* read after the thread has ended */
};

/* Sleeps until process `pid` has ended. False: the watch is to stop, or cannot see it. */
static bool wait_for_end(const fy_mpi_watch *w, int32_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        return errno == ESRCH;
    struct pollfd set[] = {{.fd = pidfd, .events = POLLIN}, {.fd = w->stop_fd, .events = POLLIN}};
    while (poll(set, 2, -1) < 0 && errno == EINTR) {
    }
    close(pidfd);
    return set[0].revents != 0 && set[1].revents == 0;
}

static void *watch(void *arg)
{
    fy_mpi_watch *w = arg;
    const fy_mpi_node *node = w->node;
    void *base = node->segment->base;
    for (int i = 1; i < node->count; i++) {
        int next = (node->self + i) % node->count;
        if (!wait_for_end(w, node->pids[next]))
            break;
        /* acquire: pairs with the mark that the rank left before it ended */
        uint32_t state =
            atomic_load_explicit(&rank_at(base, (uint32_t)next)->state, memory_order_acquire);
        if ((state & SHM_STATE_MASK) >= SHM_LEFT)
            continue;
        w->saw_death = true;
        fy_controls_mark(base, (uint32_t)node->count, (uint32_t)next, SHM_DEAD);
        fy_log_line(-1, "rank %d (process %d) has died", node->ranks[next], (int)node->pids[next]);
    }
    return NULL;
}

fy_mpi_watch *fy_mpi_watch_start(const fy_mpi_node *node)
{
    fy_mpi_watch *w = node->count < 2 ? NULL : calloc(1, sizeof(*w));
    if (w == NULL)
        return NULL;
    w->node = node;
    w->stop_fd = eventfd(0, EFD_CLOEXEC);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool started = w->stop_fd >= 0 && pthread_create(&w->thread, NULL, watch, w) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (started)
        return w;
    if (w->stop_fd >= 0)
        close(w->stop_fd);
    free(w);
    return NULL;
}

bool fy_mpi_watch_stop(fy_mpi_watch *w)
{
    if (w == NULL)
        return false;
    uint64_t one = 1;
    ssize_t written = write(w->stop_fd, &one, sizeof(one));
    (void)written;
    pthread_join(w->thread, NULL);
    bool saw_death = w->saw_death;
    close(w->stop_fd);
    free(w);
    return saw_death;
}
