/* Goal: what a store writes and reads beside the rank is right, and what it reads ahead is what
 * runs next. Method: a disk whose writes wait at a gate, while objects are used, destroyed and
 * moved; rounds of messages, beside a store that reads nothing ahead. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "account.h"

/* A disk whose writes wait for the gate. */
static atomic_bool gate_is_open;
static atomic_int at_gate;

static ssize_t gated_write(int fd, const void *buffer, size_t size_bytes, off_t offset)
{
    atomic_fetch_add(&at_gate, 1);
    while (!atomic_load(&gate_is_open))
        (void)sched_yield();
    return pwrite(fd, buffer, size_bytes, offset);
}

/* `a` on rank 0 has objects 0 and 1 being written, and more waiting for that. */
static void open_gated(test_job *job, account a[2])
{
    open_two(job, a, (uint64_t)(OBJECTS - 4) * BYTES);
    atomic_store(&gate_is_open, false);
    atomic_store(&at_gate, 0);
    a[0].store->disk.write = gated_write;
    a[0].store->disk.limit = 2;
    create_all(job->f[0], &a[0]);
    fy_store_evict(a[0].store, 0);
    while (atomic_load(&at_gate) != 2)
        (void)sched_yield();
    for (int i = 0; i < 4; i++)
        assert_true(is_out(job->f[0], a[0].objects[i]));
    /* Polls would wait for room. */
    a[0].store->stats.budget_bytes = (uint64_t)2 * OBJECTS * BYTES;
}

static void close_gated(test_job *job, account a[2], int objects)
{
    a[0].store->stats.budget_bytes = (uint64_t)(OBJECTS - 4) * BYTES;
    atomic_store(&gate_is_open, true);
    settle_writes(job->f[0], &a[0]);
    assert_true(stats_of(&a[0]).resident_bytes <= (uint64_t)(OBJECTS - 4) * BYTES);
    assert_int_equal(stats_of(&a[0]).objects + stats_of(&a[1]).objects, objects);
    assert_int_equal(ferry_store_close(a[0].store), 0);
    job_close(job);
    assert_int_equal(a[0].alive + a[1].alive, 0);
}

static void test_store_uses_what_it_writes(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    open_gated(&job, a);
    ferry *f = job.f[0];
    fy_stored *item = fy_record_here(f, a[0].objects[0])->stored;
    char why[FY_STORE_WHY_BYTES];
    /* A task that would wait for room waits for the disk; these do not. */
    assert_true(fy_stored_load(item, why));
    assert_true(fy_stored_load(fy_record_here(f, a[0].objects[3])->stored, why));
    assert_int_equal(*(uint64_t *)ferry_object_data(f, a[0].objects[0]), 0);
    assert_int_equal(*(uint64_t *)ferry_object_data(f, a[0].objects[3]), 3);
    assert_int_equal(stats_of(&a[0]).reads, 0);
    close_gated(&job, a, OBJECTS);
}

static void test_store_lets_go_what_it_writes(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    open_gated(&job, a);
    /* One that is being written, and one that is to be, are destroyed; likewise two move. */
    assert_int_equal(ferry_object_destroy(job.f[0], a[0].objects[0]), 0);
    assert_int_equal(ferry_object_destroy(job.f[0], a[0].objects[2]), 0);
    assert_int_equal(ferry_object_move(job.f[0], a[0].objects[1], 1), 0);
    assert_int_equal(ferry_object_move(job.f[0], a[0].objects[3], 1), 0);
    (void)job_settle(&job);
    assert_int_equal(stats_of(&a[1]).objects, 2);
    for (int i = 1; i < 4; i += 2) {
        send_add(job.f[0], &a[0], a[0].objects[i], 50);
        (void)job_settle(&job);
        assert_int_equal(a[1].last, 50 + i);
    }
    close_gated(&job, a, OBJECTS - 2);
}

static void test_store_closes_while_it_writes(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        test_job job;
        account a;
        job_open(&job, 1, 0, 0);
        set_up(job.f[0], &a, BUDGET);
        create_all(job.f[0], &a);
        fy_store_evict(a.store, 0);
        if (i == 0)
            assert_int_equal(ferry_store_close(a.store), 0);
        job_close(&job);
        assert_int_equal(a.alive, 0);
    }
}

/* Rounds of messages to all objects, in one order, with all known from the start. Returns how many
 * reads that takes, and how many of them were begun ahead. */
static ferry_store_stats run_rounds(bool scheduled, bool blind)
{
    enum { ROUNDS = 6 };
    test_job job;
    account a;
    job_open(&job, 1, 0, 0);
    ferry *f = job.f[0];
    set_up(f, &a, (uint64_t)BYTES * OBJECTS / 2);
    a.store->blind = blind;
    a.store->disk.limit = blind ? 0 : FY_DISK_THREADS;
    create_all(f, &a);
    for (int i = 0; i < OBJECTS && scheduled; i++)
        assert_int_equal(ferry_balance_add(f, a.objects[i], NULL), 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < OBJECTS; i++)
            send_add(f, &a, a.objects[i], 1);
        if (!scheduled)
            (void)job_settle(&job);
    }
    (void)job_settle(&job);
    assert_int_equal(a.handled, ROUNDS * OBJECTS);
    const ferry_store_stats stats = stats_of(&a);
    assert_true(stats.peak_bytes <= stats.budget_bytes + OBJECTS * BYTES / 2);
    job_close(&job);
    return stats;
}

static void test_store_reads_ahead(void **state)
{
    (void)state;
    for (int scheduled = 0; scheduled < 2; scheduled++) {
        const ferry_store_stats blind = run_rounds(scheduled, true);
        const ferry_store_stats stats = run_rounds(scheduled, false);
        printf("%s: %llu reads, %llu ahead; blind %llu\n", scheduled ? "tasks" : "messages",
               (unsigned long long)stats.reads, (unsigned long long)stats.ahead_reads,
               (unsigned long long)blind.reads);
        assert_int_equal(blind.ahead_reads, 0);
        assert_true(stats.ahead_reads * 4 > stats.reads);
        assert_true(stats.reads * 10 <= blind.reads * 9);
    }
}

/* Objects of one block and no callback: the block that was read is their data, and is written. */
static void try_blocks(size_t bytes, uint32_t flags)
{
    enum { BLOCKS = 4 };
    const ferry_object_ops ops = {.size = sizeof ops, .flat_bytes = bytes};
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    test_job job;
    account a = {.last = 0};
    job_open(&job, 1, 0, 0);
    ferry *f = job.f[0];
    ferry_user_data_set(f, &a);
    options.budget_bytes = 2 * bytes;
    options.flags = flags;
    assert_int_equal(ferry_object_type_register(f, &ops, &a.type), 0);
    assert_int_equal(ferry_object_handler_register(f, "add", on_add, &a.add), 0);
    assert_int_equal(ferry_store_open(f, &options, &a.store), 0);
    assert_int_equal(ferry_store_add(a.store, a.type), 0);
    for (int i = 0; i < BLOCKS; i++)
        assert_int_equal(ferry_object_create(f, a.type, calloc(1, bytes), &a.objects[i]), 0);
    for (uint64_t round = 1; round < 5; round++)
        for (int i = 0; i < BLOCKS; i++) {
            send_add(f, &a, a.objects[i], (uint64_t)i + 1);
            (void)job_settle(&job);
            assert_int_equal(a.error, 0);
            assert_int_equal(a.last, round * ((uint64_t)i + 1));
            settle_writes(f, &a);
            const fy_record *record = fy_record_here(f, a.objects[i]);
            if (round > 1 && !record->out && fy_image_is_small(a.store, bytes))
                assert_int_equal((uintptr_t)record->data % a.store->disk.align_bytes, 0);
        }
    assert_true(stats_of(&a).peak_bytes <= BLOCKS * bytes);
    assert_int_equal(ferry_object_destroy(f, a.objects[0]), 0);
    assert_int_equal(ferry_object_destroy(f, a.objects[BLOCKS - 1]), 0);
    assert_int_equal(ferry_store_close(a.store), 0);
    assert_int_equal(*(uint64_t *)ferry_object_data(f, a.objects[1]), 8);
    job_close(&job);
}

/* A disk that takes its time: threads serve it, and those that were woken look for work. */
static ssize_t slow_read(int fd, void *buffer, size_t size_bytes, off_t offset)
{
    (void)usleep(100);
    return pread(fd, buffer, size_bytes, offset);
}

static ssize_t slow_write(int fd, const void *buffer, size_t size_bytes, off_t offset)
{
    (void)usleep(100);
    return pwrite(fd, buffer, size_bytes, offset);
}

static const fy_object_calls *true_calls;

/* From here on the helper thread may read the image, to migrate the object. */
static void checked_rest(ferry *f, fy_record *record)
{
    fy_stored *item = record->stored;
    char why[FY_STORE_WHY_BYTES];
    uint64_t reads = atomic_load(&item->store->reads);
    if (record->out) {
        CHECK(fy_stored_read(item, why));
        CHECK(atomic_load(&item->store->reads) == reads);
    }
    true_calls->rest(f, record);
}

/* An object that goes to disk rests with a valid image; otherwise a rank that migrates it would
 * read an old one from disk. */
static void test_store_rests_objects_with_valid_images(void **state)
{
    (void)state;
    test_job job;
    account a;
    job_open(&job, 1, 0, 0);
    ferry *f = job.f[0];
    set_up(f, &a, BUDGET);
    true_calls = a.store->objects->calls;
    fy_object_calls calls = *true_calls;
    calls.rest = checked_rest;
    a.store->objects->calls = &calls;
    a.store->disk.read = slow_read;
    a.store->disk.write = slow_write;
    create_all(f, &a);
    for (int i = 0; i < 4 * OBJECTS; i++) {
        send_add(f, &a, a.objects[i % OBJECTS], 1);
        (void)job_settle(&job);
        assert_int_equal(a.last, i % OBJECTS + i / OBJECTS + 1);
    }
    a.store->objects->calls = true_calls;
    job_close(&job);
}

/* How often threads beside this one went to sleep. */
static long sleeps_of_others(void)
{
    struct rusage all, own;
    CHECK(getrusage(RUSAGE_SELF, &all) == 0 && getrusage(RUSAGE_THREAD, &own) == 0);
    return all.ru_nvcsw - own.ru_nvcsw;
}

/* A rank that needs an object now reads it, and writes the one in its room, without a thread. It
 * wakes none: a thread that wakes in vain delays both. */
static void try_alone(bool scheduled)
{
    enum { CYCLES = 200 };
    test_job job;
    account a;
    job_open(&job, 1, 0, 0);
    ferry *f = job.f[0];
    set_up(f, &a, BYTES);
    create_all(f, &a);
    for (int i = 0; i < OBJECTS && scheduled; i++)
        assert_int_equal(ferry_balance_add(f, a.objects[i], NULL), 0);
    settle_writes(f, &a);
    a.store->disk.read = slow_read;
    a.store->disk.write = slow_write;
    long before = sleeps_of_others();
    uint64_t reads = stats_of(&a).reads;
    for (int i = 0; i < CYCLES; i++) {
        send_add(f, &a, a.objects[i % 2], 1);
        (void)job_settle(&job);
        assert_int_equal(a.error, 0);
    }
    assert_true(stats_of(&a).reads - reads >= CYCLES - 1);
    assert_true(sleeps_of_others() - before < CYCLES / 4);
    job_close(&job);
}

static void test_store_hands_over_nothing_that_it_waits_for(void **state)
{
    (void)state;
    try_alone(false);
    try_alone(true);
}

/* Calls of the disk, and how many of them this thread has made. */
static pthread_t application;
static atomic_int calls, own_calls;

static void count_call(void)
{
    atomic_fetch_add(&calls, 1);
    atomic_fetch_add(&own_calls, pthread_equal(pthread_self(), application) != 0);
}

static ssize_t counted_read(int fd, void *buffer, size_t size_bytes, off_t offset)
{
    count_call();
    return pread(fd, buffer, size_bytes, offset);
}

static ssize_t counted_write(int fd, const void *buffer, size_t size_bytes, off_t offset)
{
    count_call();
    return pwrite(fd, buffer, size_bytes, offset);
}

/* The page cache takes less time than to hand a job to a thread. */
static void test_store_hands_over_nothing_that_is_quick(void **state)
{
    (void)state;
    enum { TURNS = 100 };
    test_job job;
    account a;
    job_open(&job, 1, 0, 0);
    ferry *f = job.f[0];
    set_up(f, &a, BUDGET);
    a.store->disk.read = counted_read;
    a.store->disk.write = counted_write;
    application = pthread_self();
    create_all(f, &a);
    for (int i = 0; i < OBJECTS; i++)
        assert_int_equal(ferry_balance_add(f, a.objects[i], NULL), 0);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < OBJECTS; i++)
            send_add(f, &a, a.objects[i], 1);
        while (a.handled < (turn + 1) * OBJECTS) {
            (void)ferry_poll(f);
            (void)usleep(50); /* threads have time to do what they were given */
        }
    }
    assert_true(stats_of(&a).ahead_reads > TURNS);
    assert_true(own_calls * 100 > calls * 92);
    job_close(&job);
}

static void test_store_copies_no_blocks(void **state)
{
    (void)state;
    try_blocks(BYTES, 0); /* too small for that */
    try_blocks(4096, 0);
    try_blocks(262144 + 8, 0);
    try_blocks(4096, FERRY_STORE_DIRECT);
    try_blocks(262144 + 8, FERRY_STORE_DIRECT);
    try_blocks(262144 + 8, FERRY_STORE_DIRECT | FERRY_STORE_BLIND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_uses_what_it_writes),
        cmocka_unit_test(test_store_lets_go_what_it_writes),
        cmocka_unit_test(test_store_closes_while_it_writes),
        cmocka_unit_test(test_store_reads_ahead),
        cmocka_unit_test(test_store_hands_over_nothing_that_it_waits_for),
        cmocka_unit_test(test_store_hands_over_nothing_that_is_quick),
        cmocka_unit_test(test_store_copies_no_blocks),
        cmocka_unit_test(test_store_rests_objects_with_valid_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
