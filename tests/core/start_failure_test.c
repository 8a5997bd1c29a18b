/* Goal: whatever call of the system fails while a rank or a job starts and ends, it is said,
 * nothing crashes or hangs, and nothing is left behind. Method: the first, second, ... of the calls
 * in failing.c fails once, until a run makes fewer: in a rank alone, in the launcher, and in one
 * rank of two. Afterwards there are as many descriptors, blocks and mappings as before, and no
 * child. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <ferry/ferry.h>

#include "failing.h"
#include "launch/launch.h"
#include "ranks.h"

enum { FDS_MAX = 256, FAILINGS_MIN = 8 };

/* The things that a run may leave behind. */
typedef struct belongings {
    long blocks;
    int fds, mappings;
} belongings;

static belongings count_belongings(void)
{
    belongings b = {.blocks = failing_blocks()};
    for (int fd = 0; fd < FDS_MAX; fd++)
        b.fds += fcntl(fd, F_GETFD) >= 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    CHECK(maps != NULL);
    while (fgets(line, sizeof(line), maps) != NULL)
        b.mappings += strstr(line, "memfd:ferry") != NULL;
    fclose(maps);
    return b;
}

static void check_belongings(const belongings *before, long failing)
{
    belongings now = count_belongings();
    if (now.blocks != before->blocks || now.fds != before->fds || now.mappings != before->mappings)
        fprintf(stderr, "call %ld failed: %ld blocks, %d descriptors, %d mappings are left\n",
                failing, now.blocks - before->blocks, now.fds - before->fds,
                now.mappings - before->mappings);
    CHECK(now.blocks == before->blocks && now.fds == before->fds &&
          now.mappings == before->mappings);
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

/* Whether a rank's error is as required. */
static bool is_told(const ferry *f, int error)
{
    return error < 0 && error >= -100 && ferry_error_message(f)[0] != '\0';
}

/* Opens, meets, closes. Returns the first error. */
static int live(int *in_message)
{
    const ferry_options options = {.size = sizeof(options), .heap_bytes = 4 << 20};
    ferry *f;
    int error = ferry_open(&options, &f);
    *in_message = error != 0 && !is_told(NULL, error);
    if (error != 0)
        return error;
    error = ferry_barrier(f);
    *in_message = error != 0 && !is_told(f, error);
    int close_error = ferry_close(f);
    return error != 0 ? error : close_error;
}

static void test_open_alone_with_failing_calls(void **state)
{
    (void)state;
    int untold;
    CHECK(live(&untold) == 0); /* what is made once for the process is there */
    belongings before = count_belongings();
    long failing = 0;
    for (bool reached = true; reached; failing++) {
        failing_set(failing);
        int error = live(&untold);
        reached = failing_reached();
        failing_set(-1);
        CHECK(untold == 0 && (reached || error == 0));
        check_belongings(&before, failing);
    }
    CHECK(failing > FAILINGS_MIN);
}

/* For a job of two ranks: the rank whose call is to fail, and whether it did. */
typedef struct job_plan {
    int victim; /* -1: the launcher */
    long failing;
    struct {
        bool reached, untold;
    } * shared;
} job_plan;

static int run_rank(void *arg, int rank)
{
    const job_plan *p = arg;
    int untold;
    failing_set(rank == p->victim ? p->failing : -1);
    int error = live(&untold);
    if (rank == p->victim) {
        p->shared->reached = failing_reached();
        p->shared->untold = untold != 0;
    }
    failing_set(-1);
    return error == 0 ? 0 : 3;
}

/* Fails call after call of `victim`, until it makes fewer. */
static void fail_in_job(int victim)
{
    job_plan p = {.victim = victim};
    p.shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(p.shared != MAP_FAILED);
    const fy_shm_options shm = {.ranks = 2, .heap_bytes = 4 << 20};
    const fy_launch_plan plan = {
        .program = "test", .shm = &shm, .label = true, .child = run_rank, .arg = &p};
    belongings before = count_belongings();
    for (bool reached = true; reached; p.failing++) {
        p.shared->reached = p.shared->untold = false;
        failing_set(victim < 0 ? p.failing : -1);
        int status = fy_launch(&plan);
        reached = victim < 0 ? failing_reached() : p.shared->reached;
        failing_set(-1);
        CHECK(!p.shared->untold && (reached || status == 0));
        CHECK(status >= 0 || is_told(NULL, status));
        check_belongings(&before, p.failing);
    }
    CHECK(p.failing > FAILINGS_MIN);
    munmap(p.shared, 4096);
}

static void test_launch_with_failing_calls(void **state)
{
    (void)state;
    fail_in_job(-1);
}

static void test_rank_of_a_job_with_failing_calls(void **state)
{
    (void)state;
    fail_in_job(0);
    fail_in_job(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_alone_with_failing_calls),
        cmocka_unit_test(test_launch_with_failing_calls),
        cmocka_unit_test(test_rank_of_a_job_with_failing_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
