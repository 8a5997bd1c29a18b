#include "common/board.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void bench_sleep_on(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    struct timespec t = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
                         .tv_nsec = (long)(timeout_ns % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &t, NULL, 0);
}

void bench_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static bench_board *map(int fd)
{
    void *p = mmap(NULL, sizeof(bench_board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

bench_board *bench_board_create(int ranks, char path[BENCH_VARIABLE_BYTES], int *fd)
{
    *fd = memfd_create("bench", MFD_CLOEXEC);
    if (*fd < 0)
        return NULL;
    bench_board *board = ftruncate(*fd, sizeof(bench_board)) == 0 ? map(*fd) : NULL;
    if (!board) {
        close(*fd);
        return NULL;
    }
    board->driver = getpid();
    board->ranks = ranks;
    snprintf(path, BENCH_VARIABLE_BYTES, "/proc/%d/fd/%d", (int)getpid(), *fd);
    return board;
}

void bench_board_destroy(bench_board *board, int fd)
{
    munmap(board, sizeof *board);
    close(fd);
}

bench_board *bench_board_open(void)
{
    const char *path = getenv(BENCH_BOARD_VARIABLE);
    if (!path)
        return NULL;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    bench_board *board = map(fd);
    close(fd);
    return board;
}

/* Affinity as it was at the start of the process: pinning changes what the system would say. */
static const cpu_set_t *allowed(void)
{
    static cpu_set_t set;
    static bool known;
    if (!known && sched_getaffinity(0, sizeof set, &set) != 0)
        CPU_SET(0, &set);
    known = true;
    return &set;
}

int bench_cores(void)
{
    return CPU_COUNT(allowed());
}

void bench_pin(int index)
{
    int left = index % bench_cores();
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, allowed()) || left-- > 0)
            continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

void bench_pin_not(int index)
{
    cpu_set_t others = *allowed();
    int left = index % bench_cores();
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, allowed()) && left-- == 0)
            CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) > 0)
        sched_setaffinity(0, sizeof others, &others);
}

uint64_t bench_read(const void *data, size_t size_bytes)
{
    typedef uint64_t vector __attribute__((vector_size(64), aligned(8), may_alias));
    const unsigned char *p = data;
    vector a = {0}, b = {0}, c = {0}, d = {0};
    size_t i = 0;
    for (; i + 256 <= size_bytes; i += 256) {
        a += *(const vector *)(p + i);
        b += *(const vector *)(p + i + 64);
        c += *(const vector *)(p + i + 128);
        d += *(const vector *)(p + i + 192);
    }
    a += b + c + d;
    uint64_t sum = 0;
    for (int k = 0; k < 8; k++)
        sum += a[k];
    for (; i < size_bytes; i++)
        sum += p[i];
    return sum;
}
