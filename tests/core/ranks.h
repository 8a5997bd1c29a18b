/* Ranks for tests: several in one process over one segment of port shm, either all driven by the
 * test's own thread, which decides who polls when, or one thread each. */
#ifndef FY_TEST_RANKS_H
#define FY_TEST_RANKS_H

#include <stdatomic.h>

#include <ferry/ferry.h>

#include "core/rank.h"
#include "port/shm/shm.h"

/* Fails the test from any thread. */
#define CHECK(condition) check_that(condition, #condition, __FILE__, __LINE__)
void check_that(bool condition, const char *text, const char *file, int line);

enum { TEST_RANKS_MAX = 64 };

typedef struct test_job {
    fy_segment *segment;
    int ranks;
    ferry *f[TEST_RANKS_MAX];
} test_job;

/* A segment, mapped; 0 slots or bytes: the defaults. */
fy_segment *make_segment(int ranks, uint32_t ring_slots, uint32_t ring_bytes);

/* A rank in it; NULL: the default scheduler. */
ferry *open_rank(fy_segment *segment, int rank, const char *scheduler);

/* Opens `ranks` ranks; 0 slots or bytes: the defaults. */
void job_open(test_job *job, int ranks, uint32_t ring_slots, uint32_t ring_bytes);

/* Frees them without a barrier, since one thread cannot wait for itself. */
void job_close(test_job *job);

/* Polls every rank until none has anything to do. Returns how much was done. */
int job_settle(test_job *job);

/* Runs `body` on each of `ranks` ranks at once, each in its thread, and closes them together. */
typedef void test_body(ferry *f, void *arg);
void run_ranks(int ranks, uint32_t ring_slots, uint32_t ring_bytes, test_body *body, void *arg);

/* The parts of a long test: the first always, then as many as there is time for, up to `most`.
 * Where the machine is so busy that whoever waits for another rank waits for a turn of the
 * scheduler, a part must do. `for (test_parts p = {.most = 5}; next_part(&p);)` */
typedef struct test_parts {
    int most, begun;
    uint64_t start_ns;
} test_parts;
bool next_part(test_parts *parts);

/* Spends a random time below about `limit_us`, now and then sleeping. */
void loiter(uint64_t *random, uint32_t limit_us);
uint64_t next_random(uint64_t *state);

#endif
