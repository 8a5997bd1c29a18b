#include "common/ring.h"

#ifdef BENCH_LIBURING

#include <fcntl.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/disk.h"

enum { ALIGN = 4096, DEPTH_MAX = 64 };

/* A block that is written to its place and read from another, in turn. */
typedef struct lane {
    void *block;
    uint64_t at;
    bool writes;
} lane;

typedef struct ring {
    struct io_uring ring;
    int fd, in_flight;
    uint64_t block_bytes, blocks, moved_bytes;
    lane lanes[DEPTH_MAX];
} ring;

static void begin(ring *r, lane *l)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&r->ring);
    uint64_t block = (l->writes ? l->at : l->at + r->blocks / 2) % r->blocks;
    unsigned bytes = (unsigned)r->block_bytes;
    if (l->writes)
        io_uring_prep_write(entry, r->fd, l->block, bytes, block * r->block_bytes);
    else
        io_uring_prep_read(entry, r->fd, l->block, bytes, block * r->block_bytes);
    io_uring_sqe_set_data(entry, l);
    r->in_flight++;
}

static void take(ring *r, struct io_uring_cqe *event, bool goes_on)
{
    lane *l = io_uring_cqe_get_data(event);
    if (event->res != (int)r->block_bytes)
        abort();
    io_uring_cqe_seen(&r->ring, event);
    r->in_flight--;
    r->moved_bytes += r->block_bytes;
    l->at += !l->writes;
    l->writes = !l->writes;
    if (goes_on)
        begin(r, l);
}

static void open_lanes(ring *r, int depth)
{
    for (int i = 0; i < depth; i++) {
        void *block = aligned_alloc(ALIGN, r->block_bytes);
        if (block == NULL)
            abort();
        memset(block, 7, r->block_bytes);
        r->lanes[i] = (lane){block, (uint64_t)i * (r->blocks / (uint64_t)depth), true};
    }
}

double bench_ring_bandwidth(uint64_t block_bytes, uint64_t all_bytes, int depth, double seconds)
{
    ring r = {.block_bytes = block_bytes, .blocks = all_bytes / block_bytes};
    if (io_uring_queue_init(DEPTH_MAX, &r.ring, 0) != 0)
        return -1;
    r.fd = bench_disk_file(O_DIRECT);
    open_lanes(&r, depth);
    for (uint64_t i = 0; i < r.blocks; i++)
        if (pwrite(r.fd, r.lanes[0].block, block_bytes, (off_t)(i * block_bytes)) < 0)
            abort();
    double start = bench_seconds(), end = start + seconds;
    for (int i = 0; i < depth; i++)
        begin(&r, &r.lanes[i]);
    while (r.in_flight != 0) {
        struct io_uring_cqe *event;
        if (io_uring_submit_and_wait(&r.ring, 1) < 0)
            abort();
        while (io_uring_peek_cqe(&r.ring, &event) == 0)
            take(&r, event, bench_seconds() < end);
    }
    double passed = bench_seconds() - start;
    io_uring_queue_exit(&r.ring);
    (void)close(r.fd);
    for (int i = 0; i < depth; i++)
        free(r.lanes[i].block);
    return (double)r.moved_bytes / passed;
}

#else

double bench_ring_bandwidth(uint64_t block_bytes, uint64_t all_bytes, int depth, double seconds)
{
    (void)block_bytes, (void)all_bytes, (void)depth, (void)seconds;
    return -1;
}

#endif
