/* Two ranks, driven by one thread, with memory to move between and a record of what was called. */
#ifndef FY_TEST_TRANSFER_SCENE_H
#define FY_TEST_TRANSFER_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/outgoing.h"
#include "memory/state.h"
#include "ranks.h"

enum { SIZE = 100000, STEPS_MAX = 64 };

/* The events of all ranks, in order. */
typedef struct step {
    char what; /* r: remote handler, l: local handler, c: completed, f: failed */
    int rank, peer;
    void *address;
    size_t size_bytes;
    uint64_t argument;
    int error;
} step;

static test_job job;
static ferry_handler on_there, on_here;
static step steps[STEPS_MAX];
static int step_count;
static unsigned char pattern[SIZE], far_memory[SIZE], near_memory[SIZE];

static inline void there(ferry *f, int peer, void *address, size_t size_bytes, uint64_t argument)
{
    steps[step_count++] = (step){'r', ferry_rank(f), peer, address, size_bytes, argument, 0};
    CHECK(ferry_poll(f) == FERRY_ESTATE);
}

static inline void here(ferry *f, int peer, void *address, size_t size_bytes, uint64_t argument)
{
    steps[step_count++] = (step){'l', ferry_rank(f), peer, address, size_bytes, argument, 0};
    CHECK(ferry_poll(f) == FERRY_ESTATE);
}

static inline void completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)arg;
    steps[step_count++] =
        (step){'c', ferry_rank(f), receipt->rank, NULL, receipt->size_bytes, 0, receipt->error};
}

static inline void failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)arg;
    steps[step_count++] =
        (step){'f', ferry_rank(f), receipt->rank, NULL, receipt->size_bytes, 0, receipt->error};
}

static const ferry_track tracked = {
    .size = sizeof(ferry_track), .completed = completed, .failed = failed};

static inline int open_job(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        pattern[i] = (unsigned char)(i * 13 + i / 256);
    memset(far_memory, 0, SIZE);
    memset(near_memory, 0, SIZE);
    job_open(&job, 2, 8, 1024);
    for (int i = 0; i < 2; i++) {
        CHECK(ferry_memory_handler_register(job.f[i], "there", there, &on_there) == 0);
        CHECK(ferry_memory_handler_register(job.f[i], "here", here, &on_here) == 0);
        job.f[i]->head.depth = 0;
    }
    step_count = 0;
    return 0;
}

static inline int close_job(void **state)
{
    (void)state;
    assert_int_equal(job.f[0]->head.work_created + job.f[1]->head.work_created,
                     job.f[0]->head.work_finished + job.f[1]->head.work_finished);
    assert_int_equal(job.f[0]->ops_table.pending, 0);
    job_close(&job);
    return 0;
}

/* As from a handler: one thread cannot wait for room at itself. */
static inline int put_run(int rank, const ferry_transfer *what, const ferry_track *track)
{
    job.f[0]->head.depth++;
    int error = ferry_put_run(job.f[0], rank, what, track);
    job.f[0]->head.depth--;
    return error;
}

static inline void expect(const char *order)
{
    char seen[STEPS_MAX + 1] = {0};
    for (int i = 0; i < step_count; i++)
        seen[i] = steps[i].what;
    assert_string_equal(seen, order);
}

/* The memory of rank 1 to use: of its shared heap, or its own, registered. */
static inline unsigned char *target_of(bool shared)
{
    void *block = far_memory;
    if (shared)
        assert_int_equal(ferry_alloc(job.f[1], SIZE, &block), 0);
    else
        assert_int_equal(ferry_memory_register(job.f[1], far_memory, SIZE), 0);
    return block;
}

static inline void drop_target(unsigned char *target)
{
    if (target == far_memory)
        assert_int_equal(ferry_memory_unregister(job.f[1], target), 0);
    else
        assert_int_equal(ferry_free(job.f[1], target), 0);
}

#define WITH_JOB(test) cmocka_unit_test_setup_teardown(test, open_job, close_job)

#endif
