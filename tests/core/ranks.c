#include "ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../support/busy.h"
#include "base/clock.h"
#include "base/error.h"
#include "port/port.h"

void check_that(bool condition, const char *text, const char *file, int line)
{
    if (condition)
        return;
    fprintf(stderr, "%s:%d: CHECK failed: %s (%s)\n", file, line, text, fy_error_text());
    abort();
}

fy_segment *make_segment(int ranks, uint32_t ring_slots, uint32_t ring_bytes)
{
    const fy_shm_options options = {.ranks = ranks,
                                    .heap_bytes = (size_t)64 << 20,
                                    .ring_slots = ring_slots,
                                    .ring_bytes = ring_bytes};
    int fd;
    fy_segment *segment;
    CHECK(fy_segment_create(&options, &fd) == 0);
    CHECK(fy_segment_map(fd, &segment) == 0);
    close(fd);
    return segment;
}

ferry *open_rank(fy_segment *segment, int rank, const char *scheduler)
{
    const ferry_options options = {.size = sizeof(options), .scheduler = scheduler};
    fy_port *port;
    ferry *f;
    CHECK(fy_shm_join(segment, rank, &port) == 0);
    CHECK(fy_rank_create(port, &options, &f) == 0);
    return f;
}

void job_open(test_job *job, int ranks, uint32_t ring_slots, uint32_t ring_bytes)
{
    job->ranks = ranks;
    job->segment = make_segment(ranks, ring_slots, ring_bytes);
    for (int i = 0; i < ranks; i++)
        job->f[i] = open_rank(job->segment, i, "stealing");
}

void job_close(test_job *job)
{
    for (int i = 0; i < job->ranks; i++)
        fy_rank_destroy(job->f[i]);
    fy_segment_unmap(job->segment);
}

int job_settle(test_job *job)
{
    int total = 0, round;
    do {
        round = 0;
        for (int i = 0; i < job->ranks; i++)
            round += fy_progress(job->f[i], true);
        total += round;
    } while (round > 0);
    return total;
}

typedef struct rank_thread {
    fy_segment *segment;
    test_body *body;
    void *arg;
    int rank;
    pthread_t thread;
} rank_thread;

static void *run_thread(void *arg)
{
    const rank_thread *t = arg;
    ferry *f = open_rank(t->segment, t->rank, "stealing");
    t->body(f, t->arg);
    CHECK(ferry_close(f) == 0);
    return NULL;
}

void run_ranks(int ranks, uint32_t ring_slots, uint32_t ring_bytes, test_body *body, void *arg)
{
    rank_thread threads[TEST_RANKS_MAX];
    fy_segment *segment = make_segment(ranks, ring_slots, ring_bytes);
    for (int i = 0; i < ranks; i++) {
        threads[i] = (rank_thread){.segment = segment, .body = body, .arg = arg, .rank = i};
        CHECK(pthread_create(&threads[i].thread, NULL, run_thread, &threads[i]) == 0);
    }
    for (int i = 0; i < ranks; i++)
        CHECK(pthread_join(threads[i].thread, NULL) == 0);
    fy_segment_unmap(segment);
}

#ifdef FERRY_SANITIZED
enum { PATIENCE_MS = 1000 };
#else
enum { PATIENCE_MS = 4000 };
#endif

bool next_part(test_parts *parts)
{
    const uint64_t patience_ns = PATIENCE_MS * UINT64_C(1000000);
    uint64_t now = fy_clock_now_ns();
    if (parts->begun == 0)
        parts->start_ns = now;
    if (parts->begun > 0 && parts->begun < parts->most && now - parts->start_ns >= patience_ns) {
        left_out("%d of %d parts", parts->begun, parts->most);
        return false;
    }
    return parts->begun++ < parts->most;
}

uint64_t next_random(uint64_t *state)
{
    /* splitmix64: any state is a good one. */
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void loiter(uint64_t *random, uint32_t limit_us)
{
    uint64_t choice = next_random(random);
    if (choice % 8 == 0)
        usleep((useconds_t)(choice / 8 % limit_us));
    for (volatile uint64_t i = 0; i < choice / 8 % limit_us; i++)
        continue;
}
