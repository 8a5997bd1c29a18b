#include "failing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static _Atomic long countdown = -1, blocks;
static bool all_fail;

void failing_set(long count)
{
    atomic_store(&countdown, count);
}

bool failing_reached(void)
{
    return atomic_load(&countdown) < 0;
}

void failing_all(bool on)
{
    all_fail = on;
}

long failing_blocks(void)
{
    return atomic_load(&blocks);
}

/* Whether the present call fails; then with `error`. */
static bool fails(int error)
{
    bool now = atomic_load(&countdown) >= 0 && atomic_fetch_sub(&countdown, 1) == 0;
    if (now)
        errno = error;
    return now;
}

/* Whether the present allocation fails. */
static bool refused(void)
{
    if (!all_fail)
        return fails(ENOMEM);
    errno = ENOMEM;
    return true;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    void *block = refused() ? NULL : __real_malloc(size);
    atomic_fetch_add(&blocks, block != NULL);
    return block;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    void *block = refused() ? NULL : __real_calloc(count, size);
    atomic_fetch_add(&blocks, block != NULL);
    return block;
}

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
    bool fresh = old == NULL;
    void *block = refused() ? NULL : __real_realloc(old, size);
    atomic_fetch_add(&blocks, fresh && block != NULL);
    return block;
}

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    void *block = refused() ? NULL : __real_aligned_alloc(alignment, size);
    atomic_fetch_add(&blocks, block != NULL);
    return block;
}

void __real_free(void *block);
void __wrap_free(void *block);
void __wrap_free(void *block)
{
    atomic_fetch_sub(&blocks, block != NULL);
    __real_free(block);
}

void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return fails(ENOMEM) ? MAP_FAILED : __real_mmap(at, size, protection, flags, fd, offset);
}

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags)
{
    return fails(EMFILE) ? -1 : __real_memfd_create(name, flags);
}

int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size)
{
    return fails(ENOSPC) ? -1 : __real_ftruncate(fd, size);
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
    va_list list;
    va_start(list, command);
    long argument = va_arg(list, long);
    va_end(list);
    return fails(EPERM) ? -1 : __real_fcntl(fd, command, argument);
}

ssize_t __real_getrandom(void *buffer, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags)
{
    return fails(ENOSYS) ? -1 : __real_getrandom(buffer, size, flags);
}

ssize_t __real_pwrite(int fd, const void *buffer, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buffer, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buffer, size_t size, off_t offset)
{
    return fails(EIO) ? -1 : __real_pwrite(fd, buffer, size, offset);
}

ssize_t __real_pread(int fd, void *buffer, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *buffer, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *buffer, size_t size, off_t offset)
{
    return fails(EIO) ? -1 : __real_pread(fd, buffer, size, offset);
}

int __real_fstat(int fd, struct stat *out);
int __wrap_fstat(int fd, struct stat *out);
int __wrap_fstat(int fd, struct stat *out)
{
    return fails(EIO) ? -1 : __real_fstat(fd, out);
}

int __real_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags)
{
    return fails(EMFILE) ? -1 : __real_pipe2(fds, flags);
}

int __real_socketpair(int domain, int type, int protocol, int fds[2]);
int __wrap_socketpair(int domain, int type, int protocol, int fds[2]);
int __wrap_socketpair(int domain, int type, int protocol, int fds[2])
{
    return fails(EMFILE) ? -1 : __real_socketpair(domain, type, protocol, fds);
}

int __real_signalfd(int fd, const sigset_t *set, int flags);
int __wrap_signalfd(int fd, const sigset_t *set, int flags);
int __wrap_signalfd(int fd, const sigset_t *set, int flags)
{
    return fails(EMFILE) ? -1 : __real_signalfd(fd, set, flags);
}

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    return fails(EINTR) ? -1 : __real_poll(fds, count, timeout_ms);
}

pid_t __real_fork(void);
pid_t __wrap_fork(void);
pid_t __wrap_fork(void)
{
    return fails(EAGAIN) ? -1 : __real_fork();
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*entry)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*entry)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*entry)(void *), void *argument)
{
    return fails(EAGAIN) ? EAGAIN : __real_pthread_create(thread, attributes, entry, argument);
}

int __real_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
    return fails(ENOMEM) ? ENOMEM : __real_pthread_mutex_init(mutex, attributes);
}

/* Futexes, signals and barriers of a process that has registered for them do not fail for want of
 * anything. As libc does, it reads six arguments, however many there are: what lies behind the
 * given ones may be a part of the caller's frame that the address sanitizer guards. */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    bool may_fail = number == SYS_pidfd_open ||
                    (number == SYS_membarrier && a[0] != MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    if (may_fail && fails(ENOSYS))
        return -1;
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
