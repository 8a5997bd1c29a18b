#include "base/file_limit.h"

#include <errno.h>
#include <time.h>

static sigset_t limit_signal(void)
{
    sigset_t limit;
    (void)sigemptyset(&limit);
    (void)sigaddset(&limit, SIGXFSZ);
    return limit;
}

void fy_file_limit_hold(sigset_t *before)
{
    sigset_t limit = limit_signal();
    (void)pthread_sigmask(SIG_BLOCK, &limit, before);
}

void fy_file_limit_release(const sigset_t *before, bool failed)
{
    int error = errno;
    sigset_t limit = limit_signal();
    if (failed && error == EFBIG)
        (void)sigtimedwait(&limit, NULL, &(struct timespec){0});
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
    errno = error;
}
