/* Elsewhere: two threads of a process may be ordered by another process, which gets memory from one
 * and gives it back to the other. The atomics of the ring and of the heap's stack make this order.
 * ThreadSanitizer sees only this process's part of it, and is told the rest here. */
#ifndef FY_ELSEWHERE_H
#define FY_ELSEWHERE_H

#if defined(__SANITIZE_THREAD__)
#define FY_ELSEWHERE_TOLD 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FY_ELSEWHERE_TOLD 1
#endif
#endif

#if defined(FY_ELSEWHERE_TOLD)
#include <sanitizer/tsan_interface.h>
#endif

/* All changes of `block` up to now come before all that follows the return of this call. */
static inline void fy_elsewhere_goes(void *block)
{
#if defined(FY_ELSEWHERE_TOLD)
    __tsan_release(block);
#else
    (void)block;
#endif
}

static inline void fy_elsewhere_returns(void *block)
{
#if defined(FY_ELSEWHERE_TOLD)
    __tsan_acquire(block);
#else
    (void)block;
#endif
}

#endif
