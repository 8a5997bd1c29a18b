/* Calls: functions in place of the system's, for threads that take turns (turns.c). The linker
 * calls these by the names of the functions that they replace, and those by the other names. Other
 * threads get the system's. */
#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "stores.h"
#include "turns.h"

enum { SPURIOUS_ODDS = 8, SPURIOUS_BITS = 22, SHORT_ODDS = 16, PAGE_BYTES = 4096 };

static uint64_t time_of(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

int __real_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    if (turns_are_taken()) {
        turns_enter();
        turns_step();
    }
    return __real_pthread_mutex_trylock(mutex);
}

static void calls_lock(pthread_mutex_t *mutex)
{
    while (__real_pthread_mutex_trylock(mutex) != 0)
        (void)turns_rest(TURN_LOCKED, mutex, TURNS_NEVER);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (!turns_are_taken())
        return __real_pthread_mutex_lock(mutex);
    turns_enter();
    turns_step();
    calls_lock(mutex);
    return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
static void calls_unlock(pthread_mutex_t *mutex)
{
    if (__real_pthread_mutex_unlock(mutex) != 0)
        turns_fail("a mutex cannot be unlocked");
    turns_wake_all(TURN_LOCKED, mutex);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    if (!turns_are_taken())
        return __real_pthread_mutex_unlock(mutex);
    turns_enter();
    calls_unlock(mutex);
    turns_step();
    return 0;
}

/* A wait may end without a signal, when the seed says. Between the release of the mutex and the
 * wait nothing happens. */
int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    if (!turns_are_taken())
        return __real_pthread_cond_wait(condition, mutex);
    turns_enter();
    turns_step();
    calls_unlock(mutex);
    uint64_t wakes_ns = TURNS_NEVER;
    if (stores_draw(SPURIOUS_ODDS) == 0)
        wakes_ns = turns_time() + (UINT64_C(1) << stores_draw(SPURIOUS_BITS));
    (void)turns_rest(TURN_AWAITS, condition, wakes_ns);
    calls_lock(mutex);
    return 0;
}

int __real_pthread_cond_signal(pthread_cond_t *condition);
int __wrap_pthread_cond_signal(pthread_cond_t *condition);
int __wrap_pthread_cond_signal(pthread_cond_t *condition)
{
    if (!turns_are_taken())
        return __real_pthread_cond_signal(condition);
    turns_enter();
    turns_step();
    turns_wake_one(TURN_AWAITS, condition);
    return 0;
}

int __real_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    if (!turns_are_taken())
        return __real_pthread_cond_broadcast(condition);
    turns_enter();
    turns_step();
    turns_wake_all(TURN_AWAITS, condition);
    return 0;
}

int __real_pthread_cond_destroy(pthread_cond_t *condition);
int __wrap_pthread_cond_destroy(pthread_cond_t *condition);
int __wrap_pthread_cond_destroy(pthread_cond_t *condition)
{
    if (turns_has(TURN_AWAITS, condition))
        turns_fail("a condition is destroyed for which a thread waits");
    return __real_pthread_cond_destroy(condition);
}

int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
    if (!turns_are_taken())
        return __real_sched_yield();
    turns_enter();
    turns_yield();
    return 0;
}

int __wrap_sched_getaffinity(pid_t process, size_t size_bytes, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t process, size_t size_bytes, cpu_set_t *set)
{
    (void)process;
    CPU_ZERO_S(size_bytes, set);
    for (int i = 0; i < turns_processors(); i++)
        CPU_SET_S((size_t)i, size_bytes, set);
    return 0;
}

static void tell_time(struct timespec *out)
{
    uint64_t now_ns = turns_time();
    out->tv_sec = (time_t)(now_ns / 1000000000u);
    out->tv_nsec = (long)(now_ns % 1000000000u);
}

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock == CLOCK_REALTIME)
        return __real_clock_gettime(clock, out);
    tell_time(out);
    return 0;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *until,
                           struct timespec *rest_of_it);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *until,
                           struct timespec *rest_of_it)
{
    (void)clock;
    (void)rest_of_it;
    uint64_t until_ns = time_of(until) + (flags == TIMER_ABSTIME ? 0 : turns_time());
    if (turns_are_taken())
        (void)turns_rest(TURN_STOPPED, NULL, until_ns);
    return 0;
}

static long futex_wait(uint32_t *word, uint32_t value, const struct timespec *until)
{
    /* seq_cst: as the system looks */
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) {
        errno = EAGAIN;
        return -1;
    }
    (void)turns_rest(TURN_SLEEPS, word, time_of(until));
    return 0;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (!turns_are_taken() || (number != SYS_futex && number != SYS_membarrier))
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    turns_enter();
    turns_step();
    if (number == SYS_membarrier) {
        stores_let_all_out();
        return a[0] == MEMBARRIER_CMD_QUERY ? MEMBARRIER_CMD_GLOBAL_EXPEDITED : 0;
    }
    if ((a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET)
        return futex_wait((uint32_t *)a[0], (uint32_t)a[2], (const struct timespec *)a[3]);
    turns_wake_all(TURN_SLEEPS, (const volatile void *)a[0]);
    return 0;
}

/* A disk. By seed it takes at most 256 ns, 16 us, 1 ms or 4 ms for a call. */
static uint64_t disk_time_ns(void)
{
    static const unsigned char bits[] = {8, 14, 20, 22};
    static unsigned disk_bits;
    if (disk_bits == 0)
        disk_bits = bits[stores_draw(sizeof bits)];
    return UINT64_C(1) << stores_draw(disk_bits + 1);
}

ssize_t __real_pread(int fd, void *buffer, size_t size_bytes, off_t offset);
ssize_t __real_pwrite(int fd, const void *buffer, size_t size_bytes, off_t offset);

static ssize_t move(bool writes, int fd, unsigned char *buffer, size_t size_bytes, off_t offset)
{
    return writes ? __real_pwrite(fd, buffer, size_bytes, offset)
                  : __real_pread(fd, buffer, size_bytes, offset);
}

/* Moves half of the bytes, and then the rest, so a buffer that another thread uses meanwhile is
 * found out. The call may end after the first half. */
static ssize_t use_disk(bool writes, int fd, unsigned char *buffer, size_t size_bytes, off_t offset)
{
    if (!turns_are_taken())
        return move(writes, fd, buffer, size_bytes, offset);
    size_t half = size_bytes / 2;
    if (half > PAGE_BYTES)
        half -= half % PAGE_BYTES;
    turns_enter();
    ssize_t first = move(writes, fd, buffer, half, offset);
    int error = errno;
    (void)turns_rest(TURN_STOPPED, NULL, turns_time() + disk_time_ns());
    errno = error;
    if (first != (ssize_t)half || (half != 0 && stores_draw(SHORT_ODDS) == 0))
        return first;
    ssize_t second = move(writes, fd, buffer + half, size_bytes - half, offset + (off_t)half);
    return second < 0 && half != 0 ? first : first + second;
}

ssize_t __wrap_pread(int fd, void *buffer, size_t size_bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *buffer, size_t size_bytes, off_t offset)
{
    return use_disk(false, fd, buffer, size_bytes, offset);
}

ssize_t __wrap_pwrite(int fd, const void *buffer, size_t size_bytes, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buffer, size_t size_bytes, off_t offset)
{
    return use_disk(true, fd, (unsigned char *)(uintptr_t)buffer, size_bytes, offset);
}
