/* Goal: a store keeps its budget, and when the disk fails it loses nothing that can be kept.
 * Method: ranks driven by one thread; reads and writes fail as the test says; images are damaged.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "account.h"

static void test_store_keeps_its_budget(void **state)
{
    (void)state;
    test_job job;
    account a;
    job_open(&job, 1, 0, 0);
    ferry *f = job.f[0];
    set_up(f, &a, BUDGET);
    create_all(f, &a);
    assert_int_equal(stats_of(&a).resident_bytes, OBJECTS * BYTES);
    (void)ferry_poll(f);
    assert_int_equal(stats_of(&a).resident_bytes, BUDGET);
    assert_int_equal(stats_of(&a).disk_objects, OBJECTS - BUDGET / BYTES);
    assert_int_equal(a.alive, BUDGET / BYTES);
    /* The least recently used went; it is not in memory. */
    assert_null(ferry_object_data(f, a.objects[0]));
    assert_non_null(strstr(ferry_error_message(f), "not in memory"));
    assert_non_null(ferry_object_data(f, a.objects[OBJECTS - 1]));
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < OBJECTS; i++) {
            send_add(f, &a, a.objects[i], 100);
            (void)job_settle(&job);
            assert_int_equal(a.error, 0);
            assert_int_equal(a.last, i + 100 * (round + 1));
            assert_true(stats_of(&a).resident_bytes <= BUDGET);
        }
    assert_int_equal(ferry_object_count(f), OBJECTS);
    /* One on disk can be destroyed. */
    assert_true(is_out(f, a.objects[0]));
    assert_int_equal(ferry_object_destroy(f, a.objects[0]), 0);
    assert_int_equal(stats_of(&a).objects, OBJECTS - 1);
    assert_int_equal(ferry_store_close(a.store), 0);
    assert_int_equal(a.alive, OBJECTS - 1);
    assert_int_equal(*(uint64_t *)ferry_object_data(f, a.objects[1]), 301);
    job_close(&job);
    assert_int_equal(a.alive, 0);
}

static void test_store_refuses_what_it_cannot_do(void **state)
{
    (void)state;
    test_job job;
    account a;
    ferry_store *other = NULL;
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry_object_type shared;
    job_open(&job, 1, 0, 0);
    ferry *f = job.f[0];
    assert_int_equal(ferry_store_open(f, &options, &other), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(f), "budget_bytes is 0"));
    CHECK(setenv("FERRY_MEMORY_BUDGET", "12Q", 1) == 0);
    options.budget_bytes = 1;
    assert_int_equal(ferry_store_open(f, &options, &other), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(f), "FERRY_MEMORY_BUDGET is \"12Q\"; expected"));
    CHECK(unsetenv("FERRY_MEMORY_BUDGET") == 0);
    options.folder = "";
    assert_int_equal(ferry_store_open(f, &options, &other), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(f), "the folder is \"\"; expected a path"));
    options.folder = "/nowhere/at/all";
    assert_int_equal(ferry_store_open(f, &options, &other), FERRY_ESYSTEM);
    assert_non_null(strstr(ferry_error_message(f), "/nowhere/at/all"));
    set_up(f, &a, BUDGET);
    options.folder = NULL;
    assert_int_equal(ferry_store_open(f, &options, &other), FERRY_ESTATE);
    ops.flags = FERRY_OBJECT_SHARED;
    ops.flat_bytes = 8;
    assert_int_equal(ferry_object_type_register(f, &ops, &shared), 0);
    assert_int_equal(ferry_store_add(a.store, shared), FERRY_ENOTSUP);
    assert_int_equal(ferry_store_add(a.store, (ferry_object_type){77}), FERRY_EINVAL);
    assert_int_equal(ferry_store_close(NULL), 0);
    job_close(&job); /* and the store */
}

static void test_store_has_the_budget_of_its_user(void **state)
{
    (void)state;
    for (uint64_t own = 0; own <= BUDGET; own += BUDGET) {
        test_job job;
        account a;
        job_open(&job, 1, 0, 0);
        CHECK(setenv("FERRY_MEMORY_BUDGET", "2K", 1) == 0);
        set_up(job.f[0], &a, own);
        CHECK(unsetenv("FERRY_MEMORY_BUDGET") == 0);
        create_all(job.f[0], &a);
        (void)ferry_poll(job.f[0]);
        assert_int_equal(stats_of(&a).budget_bytes, 2048);
        assert_int_equal(stats_of(&a).resident_bytes, 2 * BYTES);
        job_close(&job);
    }
}

static void test_store_takes_an_object_beyond_its_budget(void **state)
{
    (void)state;
    test_job job;
    account a;
    job_open(&job, 1, 0, 0);
    ferry *f = job.f[0];
    set_up(f, &a, BYTES / 2);
    create_all(f, &a);
    for (int i = 0; i < OBJECTS; i++) {
        send_add(f, &a, a.objects[i], 1);
        (void)job_settle(&job);
        assert_int_equal(a.last, i + 1);
        assert_true(stats_of(&a).resident_bytes <= BYTES);
    }
    assert_int_equal(ferry_store_close(a.store), 0);
    job_close(&job);
}

/* The disk that fails: so many calls are left until it does, and so many fail. */
static _Atomic int good_calls, bad_calls, bad_errno;

static bool fails(void)
{
    if (atomic_fetch_sub(&good_calls, 1) > 0 || bad_calls == 0)
        return false;
    if (bad_calls > 0)
        bad_calls--;
    errno = bad_errno;
    return true;
}

static void disk_set(int good, int bad, int error)
{
    good_calls = good;
    bad_calls = bad;
    bad_errno = error;
}

static ssize_t bad_write(int fd, const void *buffer, size_t size_bytes, off_t offset)
{
    if (!fails())
        return pwrite(fd, buffer, size_bytes > 300 ? 300 : size_bytes, offset); /* short */
    return bad_errno == 0 ? 0 : -1;
}

static ssize_t bad_read(int fd, void *buffer, size_t size_bytes, off_t offset)
{
    if (!fails())
        return pread(fd, buffer, size_bytes > 300 ? 300 : size_bytes, offset);
    return bad_errno == 0 ? 0 : -1;
}

enum { PAUSE_NS = 100 * 1000 * 1000 };

static void try_bad_writes(int threads, int good, int error)
{
    test_job job;
    account a;
    job_open(&job, 1, 0, 0);
    ferry *f = job.f[0];
    set_up(f, &a, BUDGET);
    a.store->disk.write = bad_write;
    a.store->disk.limit = threads;
    disk_set(good, -1, error);
    uint64_t begun_ns = ferry_now(f);
    create_all(f, &a);
    settle_writes(f, &a);
    bool again = ferry_now(f) - begun_ns >= PAUSE_NS; /* the store may have tried to write again */
    assert_true(stats_of(&a).write_errors >= 1);
    if (threads == 0 && !again) {
        /* An object that could not be written is kept packed. */
        assert_int_equal(stats_of(&a).write_errors, 1);
        assert_int_equal(stats_of(&a).writes, good / 4);
        assert_int_equal(a.alive, OBJECTS - good / 4 - 1);
    }
    for (int i = 0; i < OBJECTS; i++)
        send_add(f, &a, a.objects[i], 5);
    (void)job_settle(&job);
    assert_int_equal(a.handled, OBJECTS);
    assert_int_equal(stats_of(&a).read_errors, 0);
    /* There is room again. */
    disk_set(0, 0, 0);
    a.store->pause_ns = 0;
    settle_writes(f, &a);
    assert_true(stats_of(&a).resident_bytes <= BUDGET);
    assert_int_equal(a.store->kept_count, 0);
    for (int i = 0; i < OBJECTS; i++) {
        send_add(f, &a, a.objects[i], 5);
        (void)job_settle(&job);
        assert_int_equal(a.last, i + 10);
    }
    assert_int_equal(ferry_store_close(a.store), 0);
    job_close(&job);
}

static void test_store_keeps_what_it_cannot_write(void **state)
{
    (void)state;
    static const int errors[] = {ENOSPC, EIO, 0};
    for (size_t kind = 0; kind < sizeof errors / sizeof errors[0]; kind++)
        for (int good = 0; good < 9; good++) {
            try_bad_writes(0, good, errors[kind]);
            try_bad_writes(FY_DISK_THREADS, good, errors[kind]);
        }
}

/* A limit of file sizes is a full disk. The signal that goes with it ends nothing, and is not left
 * for later. */
static void try_file_limit(int threads)
{
    test_job job;
    account a;
    struct rlimit before, low;
    sigset_t mask;
    job_open(&job, 1, 0, 0);
    ferry *f = job.f[0];
    set_up(f, &a, BUDGET);
    a.store->disk.limit = threads;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = (struct rlimit){.rlim_cur = 3 * BYTES + BYTES / 2, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    create_all(f, &a);
    settle_writes(f, &a);
    for (int i = 0; i < OBJECTS; i++)
        send_add(f, &a, a.objects[i], 5);
    (void)job_settle(&job);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(stats_of(&a).write_errors >= 1);
    assert_true(stats_of(&a).writes >= 1);
    assert_int_equal(a.handled, OBJECTS);
    assert_int_equal(stats_of(&a).read_errors, 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    assert_int_equal(sigismember(&mask, SIGXFSZ), 0);
    assert_int_equal(sigpending(&mask), 0);
    assert_int_equal(sigismember(&mask, SIGXFSZ), 0);
    assert_int_equal(ferry_store_close(a.store), 0);
    job_close(&job);
}

static void test_store_keeps_what_is_beyond_the_file_limit(void **state)
{
    (void)state;
    try_file_limit(0);
    try_file_limit(FY_DISK_THREADS);
}

static void test_store_keeps_what_it_cannot_read(void **state)
{
    (void)state;
    static const int errors[] = {EIO, 0};
    for (size_t kind = 0; kind < sizeof errors / sizeof errors[0]; kind++) {
        test_job job;
        account a;
        char name[32];
        job_open(&job, 1, 0, 0);
        ferry *f = job.f[0];
        set_up(f, &a, BUDGET);
        a.store->disk.read = bad_read;
        create_all(f, &a);
        (void)ferry_poll(f);
        /* It is tried again. */
        disk_set(1, 2, errors[kind]);
        send_add(f, &a, a.objects[0], 5);
        (void)job_settle(&job);
        assert_int_equal(a.error, 0);
        assert_int_equal(a.last, 5);
        assert_int_equal(stats_of(&a).read_errors, 0);
        assert_int_equal(ferry_quiesce(f), 0);
        /* In vain: the message fails, and the object is kept. */
        assert_true(is_out(f, a.objects[1]));
        disk_set(0, -1, errors[kind]);
        send_add(f, &a, a.objects[1], 5);
        (void)job_settle(&job);
        assert_int_equal(a.error, FERRY_ESYSTEM);
        assert_int_equal(stats_of(&a).read_errors, 1);
        assert_int_equal(ferry_quiesce(f), FERRY_ELOST);
        (void)snprintf(name, sizeof name, "%016llx", (unsigned long long)a.objects[1].word);
        assert_non_null(strstr(ferry_error_message(f), name));
        assert_non_null(strstr(ferry_error_message(f),
                               errors[kind] != 0 ? strerror(errors[kind]) : "the file ends"));
        assert_int_equal(ferry_store_close(a.store), FERRY_ESYSTEM);
        disk_set(0, 0, 0);
        send_add(f, &a, a.objects[1], 5);
        (void)job_settle(&job);
        assert_int_equal(a.error, 0);
        assert_int_equal(a.last, 6);
        assert_int_equal(ferry_store_close(a.store), 0);
        assert_int_equal(a.alive, OBJECTS);
        job_close(&job);
    }
}

/* Changes one bit of the object's image. */
static void flip(const account *a, const fy_stored *item, uint64_t at)
{
    unsigned char byte = 0;
    CHECK(pread(a->store->disk.fd, &byte, 1, (off_t)(item->offset + at)) == 1);
    byte ^= 16;
    CHECK(pwrite(a->store->disk.fd, &byte, 1, (off_t)(item->offset + at)) == 1);
}

static void test_store_finds_damage(void **state)
{
    (void)state;
    test_job job;
    account a;
    char why[FY_STORE_WHY_BYTES];
    job_open(&job, 1, 0, 0);
    ferry *f = job.f[0];
    set_up(f, &a, BUDGET);
    create_all(f, &a);
    (void)ferry_poll(f);
    fy_stored *item = fy_record_here(f, a.objects[2])->stored;
    for (uint64_t at = 0; at < BYTES; at++) {
        flip(&a, item, at);
        assert_false(fy_stored_read(item, why));
        flip(&a, item, at);
    }
    flip(&a, item, 8);
    send_add(f, &a, a.objects[2], 5);
    (void)job_settle(&job);
    assert_int_equal(a.error, FERRY_ESYSTEM);
    assert_int_equal(a.handled, 0);
    assert_int_equal(ferry_store_close(a.store), FERRY_ESYSTEM);
    assert_non_null(strstr(ferry_error_message(f), "checksum"));
    flip(&a, item, 8);
    send_add(f, &a, a.objects[2], 5);
    (void)job_settle(&job);
    assert_int_equal(a.last, 7);
    job_close(&job);
    assert_int_equal(a.alive, 0);
}

/* A disk that has lost a write returns the image before it, which is whole. */
static void test_store_finds_an_older_image(void **state)
{
    (void)state;
    test_job job;
    account a;
    unsigned char older[4 * BYTES];
    ssize_t older_bytes = 0;
    job_open(&job, 1, 0, 0);
    ferry *f = job.f[0];
    set_up(f, &a, BUDGET);
    create_all(f, &a);
    settle_writes(f, &a);
    const fy_stored *item = fy_record_here(f, a.objects[0])->stored;
    int fd = a.store->disk.fd;
    for (int round = 0; round < 2; round++) {
        CHECK(is_out(f, a.objects[0]));
        if (round == 0)
            older_bytes = pread(fd, older, (size_t)1 << item->size_class, (off_t)item->offset);
        for (int i = 0; i < OBJECTS; i++) {
            send_add(f, &a, a.objects[i], 5);
            (void)job_settle(&job);
            assert_int_equal(a.error, 0);
        }
        settle_writes(f, &a);
    }
    CHECK(older_bytes >= BYTES);
    CHECK(pwrite(fd, older, (size_t)older_bytes, (off_t)item->offset) == older_bytes);
    send_add(f, &a, a.objects[0], 5);
    (void)job_settle(&job);
    assert_int_equal(a.error, FERRY_ESYSTEM);
    assert_non_null(strstr(ferry_error_message(f), "checksum"));
    job_close(&job);
}

static void test_store_lets_objects_migrate(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    open_two(&job, a, BUDGET);
    create_all(job.f[0], &a[0]);
    (void)ferry_poll(job.f[0]);
    ferry_object object = a[0].objects[3];
    assert_true(is_out(job.f[0], object));
    /* An object that cannot be read stays. */
    a[0].store->disk.read = bad_read;
    disk_set(0, -1, EIO);
    assert_int_equal(ferry_object_move(job.f[0], object, 1), FERRY_ESYSTEM);
    (void)job_settle(&job);
    assert_true(is_out(job.f[0], object));
    disk_set(0, 0, 0);
    int alive = a[0].alive;
    for (int i = 0; i < OBJECTS; i++)
        assert_int_equal(ferry_object_move(job.f[0], a[0].objects[i], 1), 0);
    (void)job_settle(&job);
    assert_int_equal(a[0].alive, 0);
    assert_int_equal(alive, BUDGET / BYTES);
    assert_int_equal(stats_of(&a[0]).objects, 0);
    assert_int_equal(stats_of(&a[0]).disk_bytes + stats_of(&a[0]).resident_bytes, 0);
    assert_int_equal(stats_of(&a[1]).objects, OBJECTS);
    assert_true(stats_of(&a[1]).peak_bytes <= BUDGET + BYTES);
    for (int i = 0; i < OBJECTS; i++) {
        send_add(job.f[0], &a[0], a[0].objects[i], 5);
        (void)job_settle(&job);
        assert_int_equal(a[1].last, i + 5);
    }
    job_close(&job);
    assert_int_equal(a[1].alive, 0);
}

static void test_store_lends_to_programs_that_carry(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    ferry_move_info info;
    void *data = NULL;
    open_two(&job, a, BUDGET);
    create_all(job.f[0], &a[0]);
    (void)ferry_poll(job.f[0]);
    ferry_object object = a[0].objects[3];
    a[0].store->disk.read = bad_read;
    disk_set(0, -1, EIO);
    assert_int_equal(ferry_object_uninstall(job.f[0], object, 1, &info, &data), FERRY_ESYSTEM);
    disk_set(0, 0, 0);
    assert_int_equal(ferry_object_uninstall(job.f[0], object, 1, &info, &data), 0);
    assert_int_equal(*(uint64_t *)data, 3);
    a[0].alive--;
    a[1].alive++;
    assert_int_equal(ferry_object_install(job.f[1], &info, data, 0), 0);
    free(info.bytes);
    (void)job_settle(&job);
    assert_int_equal(stats_of(&a[1]).objects, 1);
    send_add(job.f[0], &a[0], object, 5);
    (void)job_settle(&job);
    assert_int_equal(a[1].last, 8);
    job_close(&job);
    assert_int_equal(a[0].alive + a[1].alive, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_keeps_its_budget),
        cmocka_unit_test(test_store_refuses_what_it_cannot_do),
        cmocka_unit_test(test_store_has_the_budget_of_its_user),
        cmocka_unit_test(test_store_takes_an_object_beyond_its_budget),
        cmocka_unit_test(test_store_keeps_what_it_cannot_write),
        cmocka_unit_test(test_store_keeps_what_is_beyond_the_file_limit),
        cmocka_unit_test(test_store_keeps_what_it_cannot_read),
        cmocka_unit_test(test_store_finds_damage),
        cmocka_unit_test(test_store_finds_an_older_image),
        cmocka_unit_test(test_store_lets_objects_migrate),
        cmocka_unit_test(test_store_lends_to_programs_that_carry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
