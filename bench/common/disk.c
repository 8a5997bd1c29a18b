#include "common/disk.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ALIGN = 4096, RAW_THREADS = 4 };

double bench_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const char *folder(void)
{
    const char *name = getenv("TMPDIR");
    return name != NULL ? name : "/var/tmp";
}

int bench_disk_file(int flags)
{
    int fd = open(folder(), O_TMPFILE | O_RDWR | flags, 0600);
    if (fd < 0) {
        perror(folder());
        exit(1);
    }
    return fd;
}

/* The disk alone: threads that write and read blocks at places in turn, as a store does. */
typedef struct raw {
    int fd, number;
    uint64_t block_bytes, blocks, moved_bytes;
    double end_s;
} raw;

static void *move_raw(void *arg)
{
    raw *r = arg;
    void *block = aligned_alloc(ALIGN, r->block_bytes);
    if (block == NULL)
        abort();
    memset(block, 7, r->block_bytes);
    uint64_t at = (uint64_t)r->number * (r->blocks / RAW_THREADS);
    while (bench_seconds() < r->end_s) {
        off_t here = (off_t)(at % r->blocks * r->block_bytes);
        off_t there = (off_t)((at + r->blocks / 2) % r->blocks * r->block_bytes);
        if (pwrite(r->fd, block, r->block_bytes, here) != (ssize_t)r->block_bytes ||
            pread(r->fd, block, r->block_bytes, there) != (ssize_t)r->block_bytes)
            abort();
        r->moved_bytes += 2 * r->block_bytes;
        at++;
    }
    free(block);
    return NULL;
}

double bench_disk_bandwidth(uint64_t block_bytes, uint64_t all_bytes, double seconds)
{
    raw threads[RAW_THREADS];
    pthread_t handles[RAW_THREADS];
    int fd = bench_disk_file(O_DIRECT);
    uint64_t blocks = all_bytes / block_bytes, moved_bytes = 0;
    void *block = aligned_alloc(ALIGN, block_bytes);
    if (block == NULL)
        abort();
    memset(block, 7, block_bytes);
    for (uint64_t i = 0; i < blocks; i++)
        if (pwrite(fd, block, block_bytes, (off_t)(i * block_bytes)) != (ssize_t)block_bytes)
            abort();
    free(block);
    double start = bench_seconds();
    for (int i = 0; i < RAW_THREADS; i++) {
        threads[i] = (raw){fd, i, block_bytes, blocks, 0, start + seconds};
        if (pthread_create(&handles[i], NULL, move_raw, &threads[i]) != 0)
            abort();
    }
    for (int i = 0; i < RAW_THREADS; i++) {
        (void)pthread_join(handles[i], NULL);
        moved_bytes += threads[i].moved_bytes;
    }
    double passed = bench_seconds() - start;
    (void)close(fd);
    return (double)moved_bytes / passed;
}

double bench_disk_cycle(uint64_t bytes, int count)
{
    uint64_t block_bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    int fd = bench_disk_file(O_DIRECT);
    void *block = aligned_alloc(ALIGN, block_bytes);
    double start = 0;
    if (block == NULL)
        abort();
    memset(block, 7, block_bytes);
    for (int i = -2; i < count; i++) {
        start = i == 0 ? bench_seconds() : start;
        off_t here = (off_t)((uint64_t)(i & 1) * block_bytes);
        off_t there = (off_t)((uint64_t)((i + 1) & 1) * block_bytes);
        if (pwrite(fd, block, block_bytes, here) != (ssize_t)block_bytes ||
            (i > -2 && pread(fd, block, block_bytes, there) != (ssize_t)block_bytes))
            abort();
    }
    double seconds = (bench_seconds() - start) / count;
    free(block);
    (void)close(fd);
    return seconds;
}
