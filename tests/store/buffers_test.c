/* Goal: a store uses the memory of its images and of flat data again, within its budget and one
 * object. Method: objects of 1 MiB go to disk and come back, or go to another rank and come back,
 * many times. After the first times the process touches few new pages, though its C library returns
 * each large block to the system. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "ranks.h"
#include "store/state.h"

enum { MIB = 1 << 20, OBJECTS = 12, BUDGET = 4 * MIB, PAGES = MIB / 4096 };

typedef struct account {
    ferry_object_type type;
    ferry_handler add;
    ferry_store *store;
    ferry_object objects[OBJECTS];
    int handled;
} account;

static void on_add(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    uint64_t *values = data;
    (void)object, (void)source, (void)m;
    CHECK(values[0] == values[MIB / 8 - 1]);
    values[0]++;
    values[MIB / 8 - 1]++;
    ((account *)ferry_user_data(f))->handled++;
}

static void open_account(ferry *f, account *a)
{
    const ferry_object_ops ops = {.size = sizeof ops, .flat_bytes = MIB};
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    options.budget_bytes = BUDGET;
    *a = (account){.handled = 0};
    ferry_user_data_set(f, a);
    CHECK(ferry_object_type_register(f, &ops, &a->type) == 0);
    CHECK(ferry_object_handler_register(f, "add", on_add, &a->add) == 0);
    CHECK(ferry_store_open(f, &options, &a->store) == 0);
    CHECK(ferry_store_add(a->store, a->type) == 0);
}

static void create(ferry *f, account *a, int count)
{
    for (int i = 0; i < count; i++) {
        void *data = calloc(1, MIB);
        CHECK(data != NULL);
        CHECK(ferry_object_create(f, a->type, data, &a->objects[i]) == 0);
        ferry_store_trim(a->store);
    }
}

static long faults(void)
{
    struct rusage used;
    CHECK(getrusage(RUSAGE_SELF, &used) == 0);
    return used.ru_minflt;
}

static uint64_t memory_bytes(const account *a)
{
    ferry_store_stats stats = FERRY_STORE_STATS_DEFAULTS;
    CHECK(ferry_store_stats_get(a->store, &stats) == 0);
    return stats.resident_bytes + a->store->idle_bytes;
}

/* Sends `rounds` messages to each object, `batch` at a time, after some for warming up. Returns how
 * often a page was touched for the first time. */
static long run_rounds(test_job *job, account *a, int rounds, int batch)
{
    enum { WARM = 2 };
    long before = 0;
    job_open(job, 1, 0, 0);
    open_account(job->f[0], a);
    create(job->f[0], a, OBJECTS);
    const ferry_message message = {.handler = a->add};
    for (int sent = 0; sent < (WARM + rounds) * OBJECTS;) {
        before = sent == WARM * OBJECTS ? faults() : before;
        for (int i = 0; i < batch; i++, sent++)
            assert_int_equal(
                ferry_object_send(job->f[0], a->objects[sent % OBJECTS], &message, NULL), 0);
        (void)job_settle(job);
        assert_int_equal(a->handled, sent);
        assert_true(memory_bytes(a) <= BUDGET + MIB);
    }
    return faults() - before;
}

static void test_store_reads_into_memory_that_it_has(void **state)
{
    (void)state;
    test_job job;
    account a;
    enum { ROUNDS = 6 };
    assert_true(run_rounds(&job, &a, ROUNDS, 1) < ROUNDS * OBJECTS * PAGES / 4);
    for (int i = 0; i < OBJECTS; i++)
        assert_int_equal(ferry_object_destroy(job.f[0], a.objects[i]), 0);
    assert_true(memory_bytes(&a) <= BUDGET + MIB);
    assert_int_equal(ferry_store_close(a.store), 0);
    job_close(&job);
}

/* Many messages at a time: some objects are read ahead, others only when they are used. */
static void test_store_reads_ahead_into_memory_that_it_has(void **state)
{
    (void)state;
    test_job job;
    account a;
    enum { ROUNDS = 20 };
    assert_true(run_rounds(&job, &a, ROUNDS, OBJECTS) < ROUNDS * PAGES / 4);
    job_close(&job);
}

static void test_store_unpacks_into_memory_that_it_has(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    enum { WARM = 4, ROUNDS = 20 };
    job_open(&job, 2, 0, 0);
    for (int rank = 0; rank < 2; rank++)
        open_account(job.f[rank], &a[rank]);
    create(job.f[0], &a[0], 1);
    long before = 0;
    for (int round = 0; round < WARM + ROUNDS; round++) {
        before = round == WARM ? faults() : before;
        assert_int_equal(ferry_object_move(job.f[round % 2], a[0].objects[0], 1 - round % 2), 0);
        (void)job_settle(&job);
        assert_non_null(ferry_object_data(job.f[1 - round % 2], a[0].objects[0]));
    }
    assert_true(faults() - before < ROUNDS * PAGES / 2);
    job_close(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_reads_into_memory_that_it_has),
        cmocka_unit_test(test_store_reads_ahead_into_memory_that_it_has),
        cmocka_unit_test(test_store_unpacks_into_memory_that_it_has),
    };
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 17);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
