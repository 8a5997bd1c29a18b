/* Joining and joined processes.
 *
 * A process that connects to the join socket has a while to send the nonce, and gets one answer. If
 * it sends anything else, or nothing, the connection ends. That stops neither the launcher, which
 * waits for no process, nor the job. A joined process is watched by its pidfd, as children are. It
 * is no child: its status is not known. When it has left the job, the launcher no longer waits for
 * it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "launch/job.h"

/* How long a connected process may be silent, and how long if another one may be waiting for its
 * place. */
#define PATIENCE_NS UINT64_C(60000000000)
#define PATIENCE_FULL_NS UINT64_C(2000000000)

/* Gives the process at the other end, which must belong to this user. */
static bool find_peer(int fd, pid_t *out)
{
    struct ucred who;
    socklen_t size = sizeof(who);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.uid != geteuid() ||
        who.pid <= 0)
        return false;
    *out = who.pid;
    return true;
}

void fy_joiner_accept(job *j)
{
    job_joiner *joiner = NULL;
    for (int i = 0; i < JOB_JOINERS && joiner == NULL; i++)
        if (j->join_socket.joiners[i].fd < 0)
            joiner = &j->join_socket.joiners[i];
    int fd = joiner == NULL
                 ? -1
                 : accept4(j->join_socket.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    *joiner = (job_joiner){.fd = fd, .since_ns = fy_clock_now_ns()};
    if (!find_peer(fd, &joiner->pid)) {
        close(fd);
        joiner->fd = -1;
    }
}

bool fy_joiners_full(const job *j)
{
    for (int i = 0; i < JOB_JOINERS; i++)
        if (j->join_socket.joiners[i].fd < 0)
            return false;
    return true;
}

uint64_t fy_joiners_deadline_ns(const job *j)
{
    uint64_t first_ns = UINT64_MAX;
    for (int i = 0; i < JOB_JOINERS; i++)
        if (j->join_socket.joiners[i].fd >= 0 && j->join_socket.joiners[i].since_ns < first_ns)
            first_ns = j->join_socket.joiners[i].since_ns;
    if (first_ns == UINT64_MAX)
        return UINT64_MAX;
    return first_ns + (fy_joiners_full(j) ? PATIENCE_FULL_NS : PATIENCE_NS);
}

void fy_joiners_expire(job *j)
{
    uint64_t now = fy_clock_now_ns();
    uint64_t patience_ns = fy_joiners_full(j) ? PATIENCE_FULL_NS : PATIENCE_NS;
    for (int i = 0; i < JOB_JOINERS; i++)
        if (j->join_socket.joiners[i].fd >= 0 &&
            now - j->join_socket.joiners[i].since_ns >= patience_ns) {
            close(j->join_socket.joiners[i].fd);
            j->join_socket.joiners[i].fd = -1;
        }
}

/* Compares in a time that does not depend on how much of the nonce is right. */
static bool is_nonce(const job *j, const uint8_t nonce[JOIN_NONCE_BYTES])
{
    uint8_t difference = 0;
    for (int i = 0; i < JOIN_NONCE_BYTES; i++)
        difference |= nonce[i] ^ j->join_socket.nonce[i];
    return difference == 0;
}

/* Whether the process that connected still lives: then its number is still its own. */
static bool is_there(int fd)
{
    char none;
    return recv(fd, &none, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static bool send_answer(int fd, const join_answer *answer, const int files[JOIN_FILES])
{
    join_answer copy = *answer;
    struct iovec piece = {.iov_base = &copy, .iov_len = sizeof(copy)};
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(JOIN_FILES * sizeof(int))] = {0};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (files != NULL) {
        message.msg_control = room;
        message.msg_controllen = sizeof(room);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(JOIN_FILES * sizeof(int));
        memcpy(CMSG_DATA(header), files, JOIN_FILES * sizeof(int));
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(copy);
}

/* Sends the number, the segment, and an end of the pipe. No other process has this open file: a
 * file can have one process alone to signal. */
static bool welcome(const job *j, int fd, uint32_t rank)
{
    const join_answer answer = {.magic = JOIN_MAGIC, .verdict = JOIN_WELCOME, .rank = rank};
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", j->join_socket.pipe[0]);
    const int files[JOIN_FILES] = {j->segment_fd, open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    bool sent = files[1] >= 0 && send_answer(fd, &answer, files);
    if (files[1] >= 0)
        close(files[1]);
    return sent;
}

/* Makes a rank of a process that knows the nonce. The connection is then the rank's. */
static join_verdict admit(job *j, const job_joiner *joiner)
{
    uint32_t rank;
    if (j->stage != JOB_RUNS || j->passed_signal != 0)
        return JOIN_ENDS;
    int pidfd = (int)syscall(SYS_pidfd_open, joiner->pid, 0);
    if (pidfd < 0 || !is_there(joiner->fd)) {
        if (pidfd >= 0)
            close(pidfd);
        return JOIN_FAILED;
    }
    if (!fy_numbers_take(j->controls.base, j->controls.ranks, j->controls.starting, 1, &rank)) {
        close(pidfd);
        return JOIN_FULL;
    }
    if (!welcome(j, joiner->fd, rank)) {
        close(pidfd);
        fy_controls_mark(j->controls.base, j->controls.ranks, rank, SHM_DEAD);
        return JOIN_FAILED;
    }
    job_child *child = &j->children[rank];
    child->pid = joiner->pid;
    child->pidfd = pidfd;
    child->link = joiner->fd;
    child->joined = true;
    j->left++;
    return JOIN_WELCOME;
}

void fy_joiner_hear(job *j, int index)
{
    job_joiner *joiner = &j->join_socket.joiners[index];
    join_hello hello = {0};
    join_answer answer = {.magic = JOIN_MAGIC, .verdict = JOIN_REFUSED};
    /* One byte more than allowed, to notice a message that is too long. The kernel closes files
     * that come with it, because there is no room for them. */
    char bytes[sizeof(hello) + 1];
    ssize_t got = recv(joiner->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got == (ssize_t)sizeof(hello)) {
        memcpy(&hello, bytes, sizeof(hello));
        if (hello.magic == JOIN_MAGIC && hello.version == JOIN_VERSION && hello.zero == 0 &&
            is_nonce(j, hello.nonce))
            answer.verdict = admit(j, joiner);
        if (answer.verdict == JOIN_FULL)
            answer.rank = (uint32_t)j->ranks;
        if (answer.verdict != JOIN_WELCOME)
            (void)send_answer(joiner->fd, &answer, NULL);
    }
    if (answer.verdict != JOIN_WELCOME)
        close(joiner->fd);
    joiner->fd = -1;
}

/* The launcher no longer waits for this joined rank. */
static void let_go(job *j, job_child *child)
{
    close(child->pidfd);
    child->pidfd = -1;
    if (child->link >= 0)
        close(child->link);
    child->link = -1;
    j->left--;
}

void fy_joiner_gone(job *j, int rank, bool process)
{
    job_child *child = &j->children[rank];
    shm_state state = fy_job_state(j, rank);
    if (state == SHM_JOINED && !process) { /* the rank goes on without its connection */
        close(child->link);
        child->link = -1;
        return;
    }
    let_go(j, child);
    /* A process that never became a rank is not missed. */
    if (state == SHM_ABSENT)
        fy_controls_mark(j->controls.base, j->controls.ranks, (uint32_t)rank, SHM_DEAD);
    const siginfo_t info = {.si_code = CLD_EXITED, .si_pid = child->pid};
    if (state == SHM_JOINED)
        fy_job_child_gone(j, rank, &info);
}
