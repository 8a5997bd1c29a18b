/* Status queries: SIGUSR1 asks all ranks what they do. Launchers pass it on to all ranks.
 *
 * It has a handler, so a program may install its own at any time. A handler can reach no rank. So
 * it sends another signal, which all threads block and the watch reads. The first living rank of a
 * node prints the answers of all ranks of its segment. Threads: the application thread opens and
 * closes, the watch answers. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "port/nodes/node.h"
#include "port/shm/layout.h"

static int query_signal(void)
{
    return SIGRTMIN + 9;
}

static sigset_t query_set(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, query_signal());
    return set;
}

static void query_pass_on(int number)
{
    int kept = errno;
    (void)number;
    (void)kill(getpid(), query_signal());
    errno = kept;
}

/* The handler of the other signal, in a thread of the program that does not block it: ignores
 * it. */
static void query_lose(int number)
{
    (void)number;
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    (void)sigaction(number, &action, NULL);
}

static bool has_handler(int number, void (*handler)(int))
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
           action.sa_handler == handler;
}

bool fy_nodes_queries_open(void)
{
    const sigset_t set = query_set();
    if (!has_handler(SIGUSR1, SIG_DFL) || !has_handler(query_signal(), SIG_DFL))
        return false;
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    handle(query_signal(), query_lose);
    handle(SIGUSR1, query_pass_on);
    return true;
}

void fy_nodes_queries_close(void)
{
    const sigset_t set = query_set();
    if (has_handler(SIGUSR1, query_pass_on))
        handle(SIGUSR1, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* drops a pending signal */
    handle(query_signal(), SIG_DFL);
}

int fy_nodes_query_fd(void)
{
    const sigset_t set = query_set();
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void fy_nodes_query_answer(const fy_node *node, int fd)
{
    const fy_segment *segment = node->segment;
    const fy_controls controls = {
        .base = segment->base, .ranks = segment->ranks, .starting = segment->starting};
    struct signalfd_siginfo info;
    int first = 0;
    while (read(fd, &info, sizeof(info)) > 0)
        continue; /* several signals count as one */
    while (first < node->self &&
           fy_shm_state(segment, (uint32_t)fy_node_place(node, first)) >= SHM_LEFT)
        first++;
    if (first != node->self)
        return;
    fy_why_query(&controls);
    fy_why_print(&controls, STDERR_FILENO);
}
