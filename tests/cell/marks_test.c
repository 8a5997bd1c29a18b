/* Goal: handlers of cells run when marks are passed, by priority, and are work until they have run.
 * Method: ranks driven by one thread; then as threads, for termination. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cell/state.h"
#include "ranks.h"

enum { LOG_MAX = 64 };

static test_job job;
static struct {
    int number;
    size_t count;
} calls[LOG_MAX];
static int call_count;

static int open_job(void **state)
{
    (void)state;
    job_open(&job, 2, 8, 1024);
    call_count = 0;
    return 0;
}

static int close_job(void **state)
{
    (void)state;
    job_close(&job);
    return 0;
}

static void add(ferry *f, ferry_cell cell)
{
    ferry_parcel parcel;
    CHECK(ferry_parcel_create(f, 8, &parcel, NULL) == 0);
    CHECK(ferry_cell_enqueue(f, cell, parcel, FERRY_GIVE, 0) == 0);
}

static bool take(ferry *f, ferry_cell cell)
{
    ferry_parcel parcel;
    int error = ferry_cell_dequeue(f, cell, &parcel, 0);
    CHECK(error == 0 || error == FERRY_EAGAIN);
    if (error == 0)
        CHECK(ferry_parcel_release(f, parcel) == 0);
    return error == 0;
}

static void note(ferry_cell cell, size_t count)
{
    CHECK(call_count < LOG_MAX);
    calls[call_count].number = cell.number;
    calls[call_count++].count = count;
}

static void on_mark(ferry *f, ferry_cell cell, size_t count, void *arg)
{
    note(cell, count);
    if (arg != NULL)
        take(f, cell);
}

static void set(int number, int64_t high, int64_t low, int priority, ferry_cell_fn *fn, void *arg)
{
    const ferry_cell_handler handler = {.size = sizeof(handler),
                                        .fn = fn,
                                        .arg = arg,
                                        .high = high,
                                        .low = low,
                                        .priority = priority};
    assert_int_equal(ferry_cell_handler_set(job.f[0], number, &handler), 0);
}

/* Goal: a handler runs above the high mark and below the low one, once per change, and not between.
 */
static void test_marks_call_the_handler(void **state)
{
    (void)state;
    const ferry_cell cell = {0, 3};
    set(3, 2, 0, 0, on_mark, NULL);
    for (int i = 0; i < 2; i++)
        add(job.f[1], cell);
    job_settle(&job);
    assert_int_equal(call_count, 0);
    add(job.f[1], cell);
    job_settle(&job);
    job_settle(&job);
    assert_int_equal(call_count, 1);
    assert_int_equal(calls[0].count, 3);
    add(job.f[1], cell);
    job_settle(&job);
    assert_int_equal(call_count, 2);
    set(3, -1, 2, 0, on_mark, NULL);
    job_settle(&job);
    assert_int_equal(call_count, 2);
    for (int i = 0; i < 3; i++)
        take(job.f[1], cell);
    job_settle(&job);
    assert_int_equal(call_count, 3);
    assert_int_equal(calls[2].count, 1);
    assert_int_equal(ferry_cell_handler_set(job.f[0], 3, NULL), 0);
    take(job.f[1], cell);
    job_settle(&job);
    assert_int_equal(call_count, 3);
}

/* Goal: a handler that takes one runs until the mark is no longer passed, a mark that is passed
 * when it is set counts, and one that was passed for a moment only calls nobody. */
static void test_handlers_run_until_the_mark_is_kept(void **state)
{
    (void)state;
    const ferry_cell cell = {0, 3};
    for (int i = 0; i < 5; i++)
        add(job.f[1], cell);
    set(3, 1, 0, 0, on_mark, &job);
    job_settle(&job);
    assert_int_equal(call_count, 4);
    size_t count;
    assert_int_equal(ferry_cell_count(job.f[1], cell, &count), 0);
    assert_int_equal(count, 1);
    add(job.f[1], cell);
    take(job.f[1], cell);
    job_settle(&job);
    assert_int_equal(call_count, 4);
    assert_int_equal(ferry_cell_clear(job.f[1], cell), 0);
}

static void on_long(ferry *f, ferry_cell cell, size_t count, void *arg)
{
    (void)arg;
    note(cell, count);
    take(f, cell);
    add(f, (ferry_cell){0, 1});
    add(f, (ferry_cell){0, 9});
    CHECK(ferry_cell_yield(f) == 1);
    note((ferry_cell){0, -1}, 0);
}

/* Goal: of handlers that are due the highest priority goes first, and inside a handler yield lets
 * higher ones go first, not equal ones. */
static void test_priorities_order_handlers(void **state)
{
    (void)state;
    assert_int_equal(ferry_cell_yield(job.f[0]), 0);
    set(1, 0, 0, 1, on_mark, &job);
    set(5, 0, 0, 5, on_long, NULL);
    set(9, 0, 0, 9, on_mark, &job);
    add(job.f[1], (ferry_cell){0, 1});
    add(job.f[1], (ferry_cell){0, 5});
    add(job.f[1], (ferry_cell){0, 9});
    job_settle(&job);
    static const int order[] = {9, 5, 9, -1, 1, 1};
    assert_int_equal(call_count, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(calls[i].number, order[i]);
}

static void test_wrong_handlers_are_refused(void **state)
{
    (void)state;
    ferry_cell_handler handler = FERRY_CELL_HANDLER_DEFAULTS;
    assert_int_equal(ferry_cell_handler_set(job.f[0], 0, &handler), FERRY_EINVAL);
    handler.fn = on_mark;
    assert_int_equal(ferry_cell_handler_set(job.f[0], -1, &handler), FERRY_EINVAL);
    assert_int_equal(ferry_cell_handler_set(job.f[0], FERRY_CELLS, &handler), FERRY_EINVAL);
    handler.size = 1;
    assert_int_equal(ferry_cell_handler_set(job.f[0], 0, &handler), FERRY_EINVAL);
}

/* Each handler passes what it finds to the next rank's cell, one less often each time. */
enum { HOPS = 300, JOB_RANKS = 4 };

static void on_hop(ferry *f, ferry_cell cell, size_t count, void *arg)
{
    (void)count;
    ferry_parcel parcel;
    while (ferry_cell_dequeue(f, cell, &parcel, 0) == 0) {
        void *data;
        ++*(int *)arg;
        CHECK(ferry_parcel_modify(f, &parcel, &data) == 0);
        const ferry_cell next = {(cell.rank + 1) % ferry_ranks(f), cell.number};
        if (--*(uint64_t *)data > 0)
            CHECK(ferry_cell_enqueue(f, next, parcel, FERRY_GIVE, 0) == 0);
        else
            CHECK(ferry_parcel_release(f, parcel) == 0);
    }
}

static void hop(ferry *f, void *arg)
{
    (void)arg;
    int done = 0;
    const ferry_cell_handler handler = {
        .size = sizeof(handler), .fn = on_hop, .arg = &done, .high = 0};
    CHECK(ferry_cell_handler_set(f, 2, &handler) == 0);
    CHECK(ferry_barrier(f) == 0);
    for (int i = 0; i < 3; i++) {
        ferry_parcel parcel;
        void *data;
        CHECK(ferry_parcel_create(f, 8, &parcel, &data) == 0);
        *(uint64_t *)data = HOPS;
        CHECK(ferry_cell_enqueue(f, (ferry_cell){ferry_rank(f), 2}, parcel, FERRY_GIVE, 0) == 0);
    }
    /* No handler for these: they are not work. */
    CHECK(ferry_cell_send(f, (ferry_cell){ferry_rank(f), 4}, "x", 1, NULL, 0) == 0);
    CHECK(ferry_quiesce(f) == 0);
    int64_t sum = done;
    CHECK(ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &sum, &sum, 1) == 0);
    CHECK(sum == (int64_t)3 * JOB_RANKS * HOPS);
    CHECK(ferry_cell_clear(f, (ferry_cell){ferry_rank(f), 4}) == 0);
    CHECK(ferry_barrier(f) == 0);
    CHECK(ferry_parcel_count(f) == 0);
    CHECK(ferry_barrier(f) == 0);
}

/* Goal: ferry_quiesce waits for handlers of cells that are due, and for no parcels else. Method:
 * handlers that make each other due in a ring. */
static void test_due_handlers_are_work(void **state)
{
    (void)state;
    run_ranks(JOB_RANKS, 8, 1024, hop, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_marks_call_the_handler, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_handlers_run_until_the_mark_is_kept, open_job,
                                        close_job),
        cmocka_unit_test_setup_teardown(test_priorities_order_handlers, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_wrong_handlers_are_refused, open_job, close_job),
        cmocka_unit_test(test_due_handlers_are_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
