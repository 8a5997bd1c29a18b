/* The folder by which processes join a job, its socket and its nonce, and how it is removed.
 *
 * If the launcher is killed, its ranks die with it, so none of them can remove the folder. So there
 * is a guard: a child that holds the reading end of a pipe and the lock of the folder. It waits for
 * the end of the pipe, which comes when the launcher ends in any way. Then it removes the named
 * files. The folder stays only if launcher and guard are killed together. The next job that is
 * given the folder takes it over, since nobody has its lock. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "launch/job.h"

#define BACKLOG 16
#define JOIN_UNREADY "unready" /* name of the socket until it listens */

static void remove_names(int folder, const char *path)
{
    unlinkat(folder, JOIN_SOCKET, 0);
    unlinkat(folder, JOIN_UNREADY, 0);
    unlinkat(folder, JOIN_NONCE, 0);
    rmdir(path);
}

/* The guard. It has the pipe as descriptor 0, the folder as 1, and no other file of the
 * launcher. */
static _Noreturn void guard(int pipe, int folder, const char *path)
{
    sigset_t all;
    char none;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    /* Moves both to other numbers first: they may be 0 and 1 themselves. */
    pipe = fcntl(pipe, F_DUPFD, 2);
    folder = fcntl(folder, F_DUPFD, 2);
    if (dup2(pipe, 0) < 0 || dup2(folder, 1) < 0)
        _exit(1);
    syscall(SYS_close_range, 2u, ~0u, 0u);
    while (read(0, &none, 1) < 0 && errno == EINTR) {
    }
    remove_names(1, path);
    _exit(0);
}

/* Whether `name` does not exist, or is a file that an earlier job has left there. */
static bool is_left(int folder, const char *name, mode_t type)
{
    struct stat info;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT;
    return (info.st_mode & S_IFMT) == type &&
           (type == S_IFSOCK || info.st_size <= JOIN_NONCE_BYTES);
}

/* Opens and locks the folder. The lock is free if the folder is new, or if the process that had it
 * has died. */
static int take_folder(job_join_socket *d, const char *path)
{
    struct stat info;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return fy_error_set(FERRY_ESYSTEM, "making %s, for processes that join: %s", path,
                            strerror(errno));
    d->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (d->folder < 0 || fstat(d->folder, &info) != 0)
        return fy_error_set(FERRY_ESYSTEM, "opening %s: %s", path, strerror(errno));
    if (info.st_uid != geteuid() || (info.st_mode & 077) != 0)
        return fy_error_set(
            FERRY_EINVAL,
            "%s is there already, and not this user's alone; expected a new folder, "
            "or one of mode 700",
            path);
    if (flock(d->folder, LOCK_EX | LOCK_NB) != 0)
        return fy_error_set(FERRY_EINVAL, "another job lets processes join at %s", path);
    if (!is_left(d->folder, JOIN_SOCKET, S_IFSOCK) || !is_left(d->folder, JOIN_UNREADY, S_IFSOCK) ||
        !is_left(d->folder, JOIN_NONCE, S_IFREG))
        return fy_error_set(FERRY_EINVAL,
                            "%s has a file " JOIN_SOCKET ", " JOIN_UNREADY " or " JOIN_NONCE
                            " that no job has made; expected a new folder",
                            path);
    if (fstat(d->folder, &info) != 0 || info.st_nlink == 0)
        return fy_error_set(FERRY_ESYSTEM, "%s was just removed; try again", path);
    d->path = realpath(path, NULL);
    return d->path != NULL ? 0 : fy_error_set(FERRY_ESYSTEM, "%s: %s", path, strerror(errno));
}

static int start_guard(job_join_socket *d)
{
    if (pipe2(d->pipe, O_CLOEXEC) != 0)
        return fy_job_no_file("pipe");
    d->guard = fork();
    if (d->guard == 0) {
        close(d->pipe[1]);
        guard(d->pipe[0], d->folder, d->path);
    }
    return d->guard > 0 ? 0 : fy_error_set(FERRY_ESYSTEM, "fork: %s", strerror(errno));
}

static int write_nonce(job_join_socket *d)
{
    unlinkat(d->folder, JOIN_NONCE, 0);
    int fd = openat(d->folder, JOIN_NONCE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool written = fd >= 0 &&
                   getrandom(d->nonce, sizeof(d->nonce), 0) == (ssize_t)sizeof(d->nonce) &&
                   write(fd, d->nonce, sizeof(d->nonce)) == (ssize_t)sizeof(d->nonce);
    int error = written ? 0
                        : fy_error_set(FERRY_ESYSTEM, "writing %s/%s: %s", d->path, JOIN_NONCE,
                                       strerror(errno));
    if (fd >= 0)
        close(fd);
    return error;
}

static int start_listening(job_join_socket *d)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    unlinkat(d->folder, JOIN_UNREADY, 0);
    fy_join_path(d->folder, JOIN_UNREADY, address.sun_path);
    d->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (d->listener < 0 ||
        bind(d->listener, (const struct sockaddr *)(const void *)&address, sizeof(address)) != 0 ||
        listen(d->listener, BACKLOG) != 0 ||
        renameat(d->folder, JOIN_UNREADY, d->folder, JOIN_SOCKET) != 0)
        return fy_error_set(FERRY_ESYSTEM, "listening at %s: %s", d->path, strerror(errno));
    return 0;
}

void fy_join_socket_init(job_join_socket *d)
{
    *d = (job_join_socket){.folder = -1, .listener = -1, .pipe = {-1, -1}};
    for (int i = 0; i < JOB_JOINERS; i++)
        d->joiners[i].fd = -1;
}

int fy_join_socket_open(job_join_socket *d, const char *path)
{
    int error = take_folder(d, path);
    if (error == 0)
        error = start_guard(d);
    if (error == 0)
        error = write_nonce(d);
    return error != 0 ? error : start_listening(d);
}

void fy_join_socket_close(job_join_socket *d)
{
    for (int i = 0; i < JOB_JOINERS; i++)
        if (d->joiners[i].fd >= 0)
            close(d->joiners[i].fd);
    const int files[] = {d->listener, d->pipe[0], d->pipe[1]};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (files[i] >= 0)
            close(files[i]);
    /* The guard does its work now, unless it was killed. A file that it has removed has no link. */
    while (d->guard > 0 && waitpid(d->guard, NULL, 0) < 0 && errno == EINTR) {
    }
    struct stat info;
    if (d->path != NULL && fstat(d->folder, &info) == 0 && info.st_nlink > 0)
        remove_names(d->folder, d->path);
    if (d->folder >= 0)
        close(d->folder);
    free(d->path);
}
