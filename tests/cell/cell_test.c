/* Goal: parcels and cells do what cds.txt says, one step at a time. Method: ranks of one process,
 * driven by one thread, on a segment of port shm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cell/state.h"
#include "ranks.h"

static test_job job;

static int open_job(void **state)
{
    (void)state;
    job_open(&job, 4, 8, 1024);
    return 0;
}

static int close_job(void **state)
{
    (void)state;
    job_close(&job);
    return 0;
}

static ferry_parcel make(int rank, size_t size_bytes, int value)
{
    ferry_parcel parcel;
    void *data;
    assert_int_equal(ferry_parcel_create(job.f[rank], size_bytes, &parcel, &data), 0);
    if (size_bytes > 0)
        memset(data, value, size_bytes);
    return parcel;
}

static int value_of(int rank, ferry_parcel parcel)
{
    const unsigned char *data = ferry_parcel_data(job.f[rank], parcel, NULL);
    return data == NULL ? -1 : data[0];
}

static void assert_alive(size_t count)
{
    size_t sum = 0;
    for (int rank = 0; rank < job.ranks; rank++)
        sum += ferry_parcel_count(job.f[rank]);
    assert_int_equal(sum, count);
}

static const ferry_cell cell = {.rank = 1, .number = 7};

/* Goal: what goes in comes out in order, on any rank, and is freed once. Method: more parcels than
 * several growths of a cell hold, taken by another rank than gave them. */
static void test_cell_is_a_queue(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(ferry_cell_enqueue(job.f[0], cell, make(0, 1, i % 256), FERRY_GIVE, 0), 0);
    size_t count;
    assert_int_equal(ferry_cell_count(job.f[3], cell, &count), 0);
    assert_int_equal(count, COUNT);
    assert_alive(COUNT);
    for (int i = 0; i < COUNT; i++) {
        ferry_parcel parcel;
        assert_int_equal(ferry_cell_dequeue(job.f[2], cell, &parcel, 0), 0);
        assert_int_equal(value_of(2, parcel), i % 256);
        assert_int_equal(value_of(0, parcel), -1);
        assert_int_equal(ferry_parcel_release(job.f[2], parcel), 0);
        assert_int_equal(ferry_parcel_release(job.f[2], parcel), FERRY_EINVAL);
    }
    ferry_parcel none;
    assert_int_equal(ferry_cell_dequeue(job.f[2], cell, &none, 0), FERRY_EAGAIN);
    assert_alive(0);
}

/* Goal: mod gives the parcel itself when nobody else has it, else a copy; others see no change.
 * Method: each way of sharing, and its end. */
static void test_mod_copies_what_is_shared(void **state)
{
    (void)state;
    ferry_parcel own = make(0, 100, 1), first = own, taken;
    void *data;
    assert_int_equal(ferry_parcel_modify(job.f[0], &own, &data), 0);
    assert_int_equal(own.word, first.word);
    assert_int_equal(ferry_cell_enqueue(job.f[0], cell, own, FERRY_KEEP, 0), 0);
    assert_int_equal(ferry_parcel_modify(job.f[0], &own, &data), 0); /* in a cell */
    assert_int_not_equal(own.word, first.word);
    memset(data, 2, 100);
    assert_int_equal(value_of(0, first), -1);
    assert_int_equal(ferry_cell_read(job.f[2], cell, &taken, 0), 0);
    assert_int_equal(taken.word, first.word);
    assert_int_equal(value_of(2, taken), 1);
    ferry_parcel again;
    assert_int_equal(ferry_cell_dequeue(job.f[2], cell, &again, 0), 0);
    assert_int_equal(ferry_parcel_modify(job.f[2], &again, &data), 0); /* held twice by one rank */
    assert_int_equal(again.word, first.word);
    assert_int_equal(ferry_cell_enqueue(job.f[2], cell, again, FERRY_GIVE, 0), 0);
    assert_int_equal(ferry_cell_dequeue(job.f[3], cell, &again, 0), 0);
    assert_int_equal(ferry_parcel_modify(job.f[3], &again, &data), 0); /* held by another */
    assert_int_not_equal(again.word, first.word);
    assert_int_equal(ferry_parcel_release(job.f[3], again), 0);
    assert_int_equal(ferry_parcel_release(job.f[2], taken), 0);
    assert_int_equal(ferry_parcel_release(job.f[0], own), 0);
    assert_alive(0);
}

/* Goal: write leaves one parcel, zap none, and what they remove is released. */
static void test_write_and_zap_empty_a_cell(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(ferry_cell_enqueue(job.f[i % 4], cell, make(i % 4, 8, i), FERRY_GIVE, 0),
                         0);
    assert_int_equal(ferry_cell_write(job.f[3], cell, make(3, 8, 200), FERRY_GIVE), 0);
    assert_alive(1);
    ferry_parcel parcel;
    assert_int_equal(ferry_cell_read(job.f[0], cell, &parcel, 0), 0);
    assert_int_equal(value_of(0, parcel), 200);
    assert_int_equal(ferry_cell_clear(job.f[2], cell), 0);
    assert_int_equal(ferry_cell_read(job.f[0], cell, &parcel, 0), FERRY_EAGAIN);
    assert_alive(1);
    assert_int_equal(ferry_cell_write(job.f[0], cell, parcel, FERRY_KEEP), 0);
    assert_int_equal(ferry_cell_clear(job.f[0], cell), 0);
    assert_int_equal(value_of(0, parcel), 200);
    assert_int_equal(ferry_parcel_release(job.f[0], parcel), 0);
    assert_alive(0);
}

/* Goal: wrong arguments are refused and nothing happens. Method: each argument at and beyond its
 * edge; names that never were, that are no more, and that are somebody else's. */
static void test_wrong_arguments_are_refused(void **state)
{
    (void)state;
    ferry_parcel parcel = make(0, 8, 1), out;
    void *data;
    static const ferry_cell bad[] = {{-1, 0}, {4, 0}, {0, -1}, {0, FERRY_CELLS}, {INT32_MAX, 0}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(ferry_cell_enqueue(job.f[0], bad[i], parcel, FERRY_KEEP, 0), FERRY_EINVAL);
        assert_int_equal(ferry_cell_dequeue(job.f[0], bad[i], &out, 0), FERRY_EINVAL);
        assert_int_equal(ferry_cell_clear(job.f[0], bad[i]), FERRY_EINVAL);
    }
    const uint64_t words[] = {0,
                              1,
                              UINT64_MAX,
                              parcel.word + 1,
                              parcel.word ^ UINT64_C(1) << 50,
                              (uint64_t)(uintptr_t)&parcel >> 6,
                              parcel.word & 0x3ffffffffff};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        ferry_parcel wrong = {words[i]};
        assert_null(ferry_parcel_data(job.f[0], wrong, NULL));
        assert_int_equal(ferry_parcel_modify(job.f[0], &wrong, &data), FERRY_EINVAL);
        assert_int_equal(ferry_cell_enqueue(job.f[0], cell, wrong, FERRY_KEEP, 0), FERRY_EINVAL);
        assert_int_equal(ferry_cell_write(job.f[0], cell, wrong, FERRY_KEEP), FERRY_EINVAL);
        if (words[i] != 0)
            assert_int_equal(ferry_parcel_release(job.f[0], wrong), FERRY_EINVAL);
    }
    assert_int_equal(ferry_cell_enqueue(job.f[1], cell, parcel, FERRY_GIVE, 0), FERRY_EINVAL);
    assert_int_equal(ferry_parcel_release(job.f[1], parcel), FERRY_EINVAL);
    assert_int_equal(ferry_cell_limit_set(job.f[0], 0, 0), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(job.f[0]), "limit is 0, expected 1..65536"));
    assert_int_equal(ferry_cell_limit_set(job.f[0], FERRY_CELLS, 1), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(job.f[0]),
                           "cell 1024 does not exist (a rank has cells 0..1023)"));
    assert_int_equal(ferry_parcel_create(job.f[0], 1, NULL, NULL), FERRY_EINVAL);
    assert_int_equal(ferry_parcel_release(job.f[0], parcel), 0);
    assert_int_equal(ferry_cell_count(job.f[0], cell, NULL), FERRY_EINVAL);
    assert_alive(0);
}

/* Goal: a full cell takes no more until there is room; the limit of the heap is an error that says
 * so, and leaves the rank able to go on. */
static void test_limits_of_cell_and_heap(void **state)
{
    (void)state;
    enum { BIG = 1 << 20, MAX = 100 };
    assert_int_equal(ferry_cell_limit_set(job.f[1], cell.number, 2), 0);
    ferry_parcel parcel = make(0, 8, 1), parcels[MAX];
    assert_int_equal(ferry_cell_enqueue(job.f[0], cell, parcel, FERRY_KEEP, 0), 0);
    assert_int_equal(ferry_cell_enqueue(job.f[0], cell, parcel, FERRY_KEEP, 0), 0);
    assert_int_equal(ferry_cell_enqueue(job.f[0], cell, parcel, FERRY_GIVE, 0), FERRY_EAGAIN);
    assert_int_equal(ferry_cell_clear(job.f[0], cell), 0);
    assert_int_equal(ferry_cell_enqueue(job.f[0], cell, parcel, FERRY_GIVE, 0), 0);
    assert_int_equal(ferry_cell_clear(job.f[0], cell), 0);
    int count = 0, error;
    while (count < MAX && (error = ferry_parcel_create(job.f[0], BIG, &parcels[count], NULL)) == 0)
        count++;
    assert_in_range(count, 40, 64);
    assert_int_equal(error, FERRY_ENOMEM);
    assert_non_null(strstr(ferry_error_message(job.f[0]), "heap"));
    void *data;
    assert_int_equal(ferry_cell_enqueue(job.f[0], cell, parcels[0], FERRY_KEEP, 0), 0);
    ferry_parcel before = parcels[0];
    assert_int_equal(ferry_parcel_modify(job.f[0], &parcels[0], &data), FERRY_ENOMEM);
    assert_int_equal(parcels[0].word, before.word);
    assert_int_equal(ferry_parcel_create(job.f[0], SIZE_MAX, &parcel, NULL), FERRY_ENOMEM);
    assert_int_equal(ferry_cell_clear(job.f[3], cell), 0);
    for (int i = 0; i < count; i++)
        assert_int_equal(ferry_parcel_release(job.f[0], parcels[i]), 0);
    assert_alive(0);
    assert_int_equal(ferry_parcel_create(job.f[0], BIG, &parcel, NULL), 0);
    assert_int_equal(ferry_parcel_release(job.f[0], parcel), 0);
}

/* Goal: memory that was written over is noticed, not followed. Method: headers and slots with bytes
 * changed. */
static void test_overwritten_memory_is_not_followed(void **state)
{
    (void)state;
    for (size_t at = 0; at < 24; at++) {
        ferry_parcel parcel = make(0, 8, 1), out;
        fy_parcel *p = fy_parcel_find(fy_cells_of(job.f[0]), parcel.word);
        assert_int_equal(ferry_cell_enqueue(job.f[0], cell, parcel, FERRY_KEEP, 0), 0);
        ((unsigned char *)p)[at] ^= 0x40;
        assert_int_equal(ferry_cell_dequeue(job.f[2], cell, &out, 0), FERRY_EAGAIN);
        assert_int_equal(ferry_parcel_release(job.f[0], parcel), FERRY_EINVAL);
        ((unsigned char *)p)[at] ^= 0x40;
    }
    fy_cell *inside = &fy_cells_of(job.f[1])->board->cells[cell.number];
    static const uint64_t wrong[] = {0, 1, UINT64_MAX, UINT64_C(0x1959999999), 0x41414141};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ferry_parcel out, good = make(2, 8, 9);
        assert_int_equal(ferry_cell_enqueue(job.f[0], cell, make(0, 8, 1), FERRY_GIVE, 0), 0);
        assert_int_equal(ferry_cell_enqueue(job.f[2], cell, good, FERRY_GIVE, 0), 0);
        uint64_t *slots = inside->ring == 0 ? inside->slots : (uint64_t *)(uintptr_t)inside->ring;
        uint32_t mask = inside->ring == 0 ? FY_CELL_INLINE - 1 : inside->mask & FY_CELL_MASK;
        slots[fy_ends_head(atomic_load(&inside->ends)) & mask] = wrong[i];
        assert_int_equal(ferry_cell_dequeue(job.f[3], cell, &out, 0), 0);
        assert_int_equal(value_of(3, out), 9);
        assert_int_equal(ferry_parcel_release(job.f[3], out), 0);
    }
}

/* Each operation that may follow a pointer or a count of a cell. */
static void work_on(int rank, ferry_parcel parcel)
{
    ferry_parcel out = {0};
    size_t count;
    if (ferry_cell_read(job.f[rank], cell, &out, 0) == 0)
        assert_int_equal(ferry_parcel_release(job.f[rank], out), 0);
    if (ferry_cell_dequeue(job.f[rank], cell, &out, 0) == 0)
        assert_int_equal(ferry_parcel_release(job.f[rank], out), 0);
    int error = ferry_cell_enqueue(job.f[0], cell, parcel, FERRY_KEEP, 0);
    assert_true(error == 0 || error == FERRY_EAGAIN);
    assert_int_equal(ferry_cell_count(job.f[rank], cell, &count), 0);
    assert_in_range(count, 0, FERRY_CELL_LIMIT);
}

/* Goal: a cell that was written over wedges nobody and leads nowhere; it works again afterwards.
 * Method: of a short and of a long cell each byte that says where parcels are is changed, in each
 * bit. */
static void test_overwritten_cell_is_not_followed(void **state)
{
    (void)state;
    fy_cell *inside = &fy_cells_of(job.f[1])->board->cells[cell.number];
    const size_t last = offsetof(fy_cell, mask) + sizeof(inside->mask);
    ferry_parcel parcel = make(0, 8, 1), out;
    for (int length = 2; length <= 40; length += 38)
        for (size_t bit = offsetof(fy_cell, ends) * 8; bit < last * 8; bit++) {
            assert_int_equal(ferry_cell_clear(job.f[0], cell), 0);
            for (int i = 0; i < length; i++)
                assert_int_equal(ferry_cell_enqueue(job.f[0], cell, parcel, FERRY_KEEP, 0), 0);
            ((unsigned char *)inside)[bit / 8] ^= (unsigned char)(1u << bit % 8);
            work_on(2, parcel);
            assert_int_equal(ferry_cell_clear(job.f[3], cell), 0);
            assert_int_equal(ferry_cell_dequeue(job.f[3], cell, &out, 0), FERRY_EAGAIN);
        }
    assert_int_equal(ferry_cell_enqueue(job.f[0], cell, parcel, FERRY_GIVE, 0), 0);
    assert_int_equal(ferry_cell_dequeue(job.f[3], cell, &out, 0), 0);
    assert_int_equal(value_of(3, out), 1);
}

/* Goal: send and recv are create, copy, enq and deq, copy, release, also on an own cell. */
static void test_send_and_recv_combine(void **state)
{
    (void)state;
    char text[16];
    size_t size = sizeof(text);
    for (int to = 0; to < 2; to++) {
        ferry_cell there = {to, 3};
        size = sizeof(text);
        assert_int_equal(ferry_cell_send(job.f[0], there, "hello", 6, NULL, 0), 0);
        assert_int_equal(ferry_cell_receive(job.f[to], there, text, &size, NULL, 0), 0);
        assert_int_equal(size, 6);
        assert_string_equal(text, "hello");
    }
    assert_int_equal(ferry_cell_send(job.f[0], cell, "hello", 6, NULL, 0), 0);
    size = 5;
    assert_int_equal(ferry_cell_receive(job.f[2], cell, text, &size, NULL, 0), FERRY_ETOOLONG);
    const int swap[] = {1, 2, FERRY_INT16, 0, 0};
    const ferry_layout layout = {
        .descriptor = swap, .length = 5, .conversion = FERRY_CONVERT_TO_BIG, .parcel_bytes = 4};
    const ferry_layout back = {
        .descriptor = swap, .length = 5, .conversion = FERRY_CONVERT_FROM_BIG};
    const uint16_t numbers[2] = {0x0102, 0x0304};
    uint16_t got[2];
    size = sizeof(got);
    assert_int_equal(ferry_cell_send(job.f[0], cell, numbers, 4, &layout, 0), 0);
    assert_int_equal(ferry_cell_receive(job.f[0], cell, got, &size, &back, 0), 0);
    assert_memory_equal(got, numbers, 4);
    assert_alive(0);
}

static void count_end(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    *(int *)arg = receipt->error == 0 ? 1 : receipt->error;
}

/* Goal: tracked operations end once, in order, when there is something to take or room to add.
 * Method: started before that, then released one by one; one is cancelled. */
static void test_tracked_operations_end_in_order(void **state)
{
    (void)state;
    int ends[4] = {0};
    ferry_op second;
    ferry_parcel out[4];
    for (int i = 0; i < 4; i++) {
        const ferry_track track = {.size = sizeof(track),
                                   .completed = count_end,
                                   .completed_arg = &ends[i],
                                   .failed = count_end,
                                   .failed_arg = &ends[i],
                                   .op = i == 1 ? &second : NULL};
        assert_int_equal(ferry_cell_dequeue_start(job.f[2], cell, &out[i], &track), 0);
    }
    assert_int_equal(ferry_op_cancel(job.f[2], &second), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ferry_cell_enqueue(job.f[0], cell, make(0, 1, 10 + i), FERRY_GIVE, 0), 0);
    job_settle(&job);
    assert_int_equal(ends[1], FERRY_ECANCELED);
    static const int order[] = {0, 2, 3};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ends[order[i]], 1);
        assert_int_equal(value_of(2, out[order[i]]), 10 + i);
        assert_int_equal(ferry_parcel_release(job.f[2], out[order[i]]), 0);
    }
    assert_int_equal(ferry_cell_limit_set(job.f[1], cell.number, 1), 0);
    assert_int_equal(ferry_cell_enqueue(job.f[0], cell, make(0, 1, 1), FERRY_GIVE, 0), 0);
    ferry_op op;
    const ferry_track track = {.size = sizeof(track), .op = &op};
    ferry_parcel kept = make(0, 1, 2);
    assert_int_equal(ferry_cell_enqueue_start(job.f[0], cell, kept, FERRY_KEEP, &track), 0);
    job_settle(&job);
    assert_int_equal(ferry_op_test(job.f[0], &op), FERRY_EAGAIN);
    assert_int_equal(ferry_cell_dequeue(job.f[3], cell, &out[0], 0), 0);
    job_settle(&job);
    assert_int_equal(ferry_op_test(job.f[0], &op), 0);
    assert_int_equal(ferry_cell_read_start(job.f[3], cell, &out[1], &track), 0);
    assert_int_equal(out[1].word, kept.word);
    job_settle(&job);
    assert_int_equal(ferry_op_test(job.f[3], &op), 0);
    assert_int_equal(ferry_parcel_release(job.f[3], out[0]), 0);
    assert_int_equal(ferry_parcel_release(job.f[3], out[1]), 0);
    assert_int_equal(ferry_parcel_release(job.f[0], kept), 0);
    assert_int_equal(ferry_cell_clear(job.f[0], cell), 0);
    assert_alive(0);
}

/* Goal: a rank has so many holds of a parcel as it was given, and gives each away once. Method:
 * one hold promised to two operations that wait; then as many holds as can be counted, and an
 * operation that wants one more. */
static void test_holds_are_counted(void **state)
{
    (void)state;
    int ends[2] = {0};
    ferry_parcel out, parcel = make(0, 1, 5);
    ferry_track track = {.size = sizeof(track), .completed = count_end, .failed = count_end};
    assert_int_equal(ferry_cell_limit_set(job.f[1], cell.number, 1), 0);
    assert_int_equal(ferry_cell_enqueue(job.f[0], cell, make(0, 1, 1), FERRY_GIVE, 0), 0);
    for (int i = 0; i < 2; i++) {
        track.completed_arg = track.failed_arg = &ends[i];
        assert_int_equal(ferry_cell_enqueue_start(job.f[0], cell, parcel, FERRY_GIVE, &track), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ferry_cell_dequeue(job.f[3], cell, &out, 0), 0);
        assert_int_equal(ferry_parcel_release(job.f[3], out), 0);
        job_settle(&job);
    }
    assert_int_equal(ends[0], 1);
    assert_int_equal(ends[1], FERRY_EINVAL);
    assert_alive(0);

    parcel = make(0, 1, 6);
    assert_int_equal(ferry_cell_enqueue(job.f[0], cell, parcel, FERRY_KEEP, 0), 0);
    for (int held = 1; held < UINT16_MAX; held++)
        assert_int_equal(ferry_cell_read(job.f[0], cell, &out, 0), 0);
    assert_int_equal(ferry_cell_read(job.f[0], cell, &out, 0), FERRY_ENOMEM);
    assert_int_equal(ferry_cell_enqueue_start(job.f[0], cell, parcel, FERRY_KEEP, &track),
                     FERRY_ENOMEM);
    for (int held = 0; held < UINT16_MAX; held++)
        assert_int_equal(ferry_parcel_release(job.f[0], parcel), 0);
    assert_int_equal(ferry_cell_clear(job.f[0], cell), 0);
    assert_alive(0);
}

/* Uses up the hold of the call that waits, and makes room. */
static void release_waiting(ferry *f, ferry_cell full, size_t count, void *arg)
{
    ferry_parcel out, *waiting = arg;
    (void)count;
    assert_int_equal(ferry_parcel_release(f, *waiting), 0);
    assert_int_equal(ferry_cell_dequeue(f, full, &out, 0), 0);
    assert_int_equal(ferry_parcel_release(f, out), 0);
}

/* Goal: a hold that a handler uses up while a call waits with it is not given away a second time.
 * Method: the handler releases the parcel and makes room for it. */
static void test_hold_is_used_up_while_waiting(void **state)
{
    (void)state;
    for (int hold = FERRY_GIVE; hold <= FERRY_KEEP; hold++) {
        ferry_parcel parcel = make(1, 1, 2);
        ferry_cell_handler handler = FERRY_CELL_HANDLER_DEFAULTS;
        handler.fn = release_waiting;
        handler.arg = &parcel;
        handler.high = 0;
        assert_int_equal(ferry_cell_limit_set(job.f[1], cell.number, 1), 0);
        assert_int_equal(ferry_cell_enqueue(job.f[1], cell, make(1, 1, 1), FERRY_GIVE, 0), 0);
        assert_int_equal(ferry_cell_handler_set(job.f[1], cell.number, &handler), 0);
        assert_int_equal(
            ferry_cell_enqueue(job.f[1], cell, parcel, (ferry_hold)hold, FERRY_FOREVER),
            FERRY_EINVAL);
        assert_int_equal(ferry_cell_handler_set(job.f[1], cell.number, NULL), 0);
        assert_alive(0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cell_is_a_queue, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_mod_copies_what_is_shared, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_write_and_zap_empty_a_cell, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_wrong_arguments_are_refused, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_limits_of_cell_and_heap, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_overwritten_memory_is_not_followed, open_job,
                                        close_job),
        cmocka_unit_test_setup_teardown(test_overwritten_cell_is_not_followed, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_send_and_recv_combine, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_tracked_operations_end_in_order, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_holds_are_counted, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_hold_is_used_up_while_waiting, open_job, close_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
