/* The side of the process that joins. None of this runs later: the kernel watches the pipe. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "launch/job.h"

#define PATIENCE_S 60 /* how long to wait for a launcher that is stopped */

/* A place in a job. */
typedef struct ticket {
    int segment_fd, link, pipe; /* -1: none */
    int rank;
} ticket;

void fy_join_path(int folder, const char *name, char out[JOIN_PATH_BYTES])
{
    snprintf(out, JOIN_PATH_BYTES, "/proc/self/fd/%d/%s", folder, name);
}

static int no_job(const char *folder, const char *why)
{
    return fy_error_set(FERRY_ELAUNCH,
                        "no job lets processes join at %s: %s; expected the folder of a running "
                        "\"ferry run --join\"",
                        folder, why);
}

/* Opens the folder. It must belong to this user alone, so that nobody else can pretend to be the
 * job. */
static int open_folder(const char *folder, int *out)
{
    struct stat info = {0};
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return no_job(folder, strerror(errno));
    if (fstat(fd, &info) != 0 || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
        close(fd);
        return fy_error_set(
            FERRY_ELAUNCH, "%s is no folder of a job's: user %u and mode %o, expected %u and 700",
            folder, (unsigned)info.st_uid, (unsigned)info.st_mode & 0777, (unsigned)geteuid());
    }
    *out = fd;
    return 0;
}

static int read_nonce(const char *folder, int fd, join_hello *hello)
{
    int file = openat(fd, JOIN_NONCE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return no_job(folder, errno == ENOENT ? "there is no file " JOIN_NONCE : strerror(errno));
    ssize_t got = read(file, hello->nonce, sizeof(hello->nonce));
    close(file);
    return got == (ssize_t)sizeof(hello->nonce)
               ? 0
               : no_job(folder, "its file " JOIN_NONCE " is cut short");
}

static int connect_to(const char *folder, int fd, int *out)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    int link = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    fy_join_path(fd, JOIN_SOCKET, address.sun_path);
    if (link >= 0) {
        setsockopt(link, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
        setsockopt(link, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        if (connect(link, (const struct sockaddr *)(const void *)&address, sizeof(address)) == 0) {
            *out = link;
            return 0;
        }
    }
    int error = no_job(folder, strerror(errno));
    if (link >= 0)
        close(link);
    return error;
}

/* Receives the answer and its descriptors, -1 for none. */
static bool receive(int link, join_answer *answer, int files[JOIN_FILES])
{
    struct iovec piece = {.iov_base = answer, .iov_len = sizeof(*answer)};
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(JOIN_FILES * sizeof(int))];
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    ssize_t got;
    files[0] = files[1] = -1;
    do
        got = recvmsg(link, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    const struct cmsghdr *header = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(JOIN_FILES * sizeof(int)))
        memcpy(files, CMSG_DATA(header), JOIN_FILES * sizeof(int));
    return got == (ssize_t)sizeof(*answer) && answer->magic == JOIN_MAGIC;
}

static int say_verdict(const char *folder, bool answered, const join_answer *answer)
{
    uint32_t verdict = answer->verdict;
    const char *reason = "its launcher could not take this process in";
    if (!answered)
        reason = "its launcher does not answer";
    else if (verdict == JOIN_FULL)
        return fy_error_set(FERRY_ENOMEM,
                            "the job at %s has no numbers left for ranks: it has had all %u "
                            "(ferry run --ranks-max)",
                            folder, answer->rank);
    else if (verdict == JOIN_REFUSED)
        reason = "it is of another version, or what was at this place before it";
    else if (verdict == JOIN_ENDS)
        reason = "it is ending";
    return fy_error_set(FERRY_ELAUNCH, "the job at %s cannot be joined: %s", folder, reason);
}

static int join_ask(const char *folder, const join_hello *hello, ticket *t)
{
    join_answer answer = {0};
    int files[JOIN_FILES] = {-1, -1};
    bool answered = send(t->link, hello, sizeof(*hello), MSG_NOSIGNAL) == sizeof(*hello) &&
                    receive(t->link, &answer, files);
    t->segment_fd = files[0];
    t->pipe = files[1];
    t->rank = (int)answer.rank;
    if (answered && answer.verdict == JOIN_WELCOME && files[1] >= 0)
        return 0;
    return say_verdict(folder, answered, &answer);
}

/* Asks for a place. If it fails, `*out` keeps what has been opened so far. */
static int ticket_get(const char *folder, ticket *out)
{
    join_hello hello = {.magic = JOIN_MAGIC, .version = JOIN_VERSION};
    int fd = -1;
    int error = open_folder(folder, &fd);
    if (error != 0)
        return error;
    error = read_nonce(folder, fd, &hello);
    if (error == 0)
        error = connect_to(folder, fd, &out->link);
    close(fd);
    return error == 0 ? join_ask(folder, &hello, out) : error;
}

static void ticket_return(const ticket *t)
{
    const int files[] = {t->segment_fd, t->link, t->pipe};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (files[i] >= 0)
            close(files[i]);
}

/* The process has mapped the segment, which then keeps the connection and the pipe.
 * FERRY_ELAUNCH: the launcher has died; nothing is kept. */
static int ticket_settle(const ticket *t, fy_segment *segment)
{
    char none;
    if (fcntl(t->pipe, F_SETOWN, getpid()) != 0 || fcntl(t->pipe, F_SETSIG, SIGKILL) != 0 ||
        fcntl(t->pipe, F_SETFL, O_RDONLY | O_NONBLOCK | O_ASYNC) != 0)
        return fy_error_set(FERRY_ESYSTEM, "watching the job's launcher: %s", strerror(errno));
    if (read(t->pipe, &none, 1) == 0) {
        fcntl(t->pipe, F_SETFL, O_RDONLY | O_NONBLOCK); /* it no longer sends SIGKILL */
        return fy_error_set(FERRY_ELAUNCH, "the job's launcher has died");
    }
    close(t->segment_fd);
    segment->pipe = t->pipe;
    fy_launch_link(segment, t->link);
    unsetenv(FY_ENV_JOIN);
    close(fy_env_say_opened());
    return 0;
}

int fy_job_join(const char *folder, fy_segment **segment, int *rank)
{
    ticket t = {.segment_fd = -1, .link = -1, .pipe = -1};
    int error = ticket_get(folder, &t);
    if (error == 0)
        error = fy_segment_map(t.segment_fd, segment);
    if (error == 0) {
        error = ticket_settle(&t, *segment);
        if (error != 0)
            fy_segment_unmap(*segment);
    }
    if (error != 0)
        ticket_return(&t);
    else
        *rank = t.rank;
    return error;
}
