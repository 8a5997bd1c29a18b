/* File limit: writes beyond the limit of file sizes (RLIMIT_FSIZE) fail with EFBIG. The system also
 * sends the thread SIGXFSZ, which would end the process. The error says enough. So the signal is
 * held back around a write, and dropped if the write has failed in this way. errno stays as it is.
 */
#ifndef FY_FILE_LIMIT_H
#define FY_FILE_LIMIT_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

static inline sigset_t fy_file_limit_signal(void)
{
    sigset_t limit;
    (void)sigemptyset(&limit);
    (void)sigaddset(&limit, SIGXFSZ);
    return limit;
}

/* Before the write. Sets `*before` for fy_file_limit_release. */
static inline void fy_file_limit_hold(sigset_t *before)
{
    sigset_t limit = fy_file_limit_signal();
    (void)pthread_sigmask(SIG_BLOCK, &limit, before);
}

/* After the write, which has failed or not. */
static inline void fy_file_limit_release(const sigset_t *before, bool failed)
{
    int error = errno;
    sigset_t limit = fy_file_limit_signal();
    if (failed && error == EFBIG)
        (void)sigtimedwait(&limit, NULL, &(struct timespec){0});
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
    errno = error;
}

#endif
