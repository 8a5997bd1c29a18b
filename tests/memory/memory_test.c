/* Goal: put and get reach exactly the memory that ranks offer, by copy or by frames. Method: ranks
 * driven by one thread; memory that is registered goes by frames, the shared heap by copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "memory/state.h"
#include "ranks.h"

enum { SIZE = 200001 };

static test_job job;
static unsigned char pattern[SIZE], far_memory[SIZE], near_memory[SIZE];

static int open_job(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        pattern[i] = (unsigned char)(i * 13 + i / 256);
    memset(far_memory, 0, SIZE);
    memset(near_memory, 0, SIZE);
    job_open(&job, 3, 8, 1024);
    job_settle(&job);
    return 0;
}

static int close_job(void **state)
{
    (void)state;
    job_close(&job);
    return 0;
}

/* Settles and returns the end of `op`, which must have come. */
static int end_of(ferry_op *op)
{
    job_settle(&job);
    int error = ferry_op_test(job.f[0], op);
    assert_int_not_equal(error, FERRY_EAGAIN);
    return error;
}

static ferry_track with(ferry_op *op)
{
    return (ferry_track){.size = sizeof(ferry_track), .op = op};
}

static const size_t sizes[] = {0, 1, 8, 63, 4096, 32768, 32769, SIZE};

/* Goal: a put to registered memory arrives whole. Method: sizes around a piece, at an odd offset.
 */
static void test_put_to_registered_memory(void **state)
{
    (void)state;
    assert_int_equal(ferry_memory_register(job.f[1], far_memory, SIZE), 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ferry_op op;
        const ferry_track track = with(&op);
        size_t offset = SIZE - sizes[i] < 3 ? 0 : 3;
        memset(far_memory, 0, SIZE);
        job.f[0]->head.depth++; /* as in a handler: one thread cannot wait for room at itself */
        int error = ferry_put(job.f[0], 1, far_memory + offset, pattern, sizes[i], &track);
        job.f[0]->head.depth--;
        assert_int_equal(error, 0);
        assert_int_equal(end_of(&op), 0);
        assert_memory_equal(far_memory + offset, pattern, sizes[i]);
        assert_true(offset + sizes[i] == SIZE || far_memory[offset + sizes[i]] == 0);
    }
}

/* Goal: a get from registered memory arrives whole. Method: as above. */
static void test_get_from_registered_memory(void **state)
{
    (void)state;
    memcpy(far_memory, pattern, SIZE);
    assert_int_equal(ferry_memory_register(job.f[1], far_memory, SIZE), 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ferry_op op;
        const ferry_track track = with(&op);
        memset(near_memory, 0, SIZE);
        assert_int_equal(ferry_get(job.f[0], 1, near_memory, far_memory, sizes[i], &track), 0);
        assert_int_equal(ferry_op_test(job.f[0], &op), FERRY_EAGAIN);
        assert_int_equal(end_of(&op), 0);
        assert_memory_equal(near_memory, pattern, sizes[i]);
        assert_true(sizes[i] == SIZE || near_memory[sizes[i]] == 0);
    }
}

/* Goal: put and get in the shared heap are done on return, to any rank of the node and to oneself.
 */
static void test_shared_heap_is_copied_at_once(void **state)
{
    (void)state;
    for (int rank = 0; rank < 3; rank++) {
        void *block;
        assert_int_equal(ferry_alloc(job.f[rank], SIZE, &block), 0);
        assert_int_equal((uintptr_t)block % 64, 0);
        assert_int_equal(ferry_put(job.f[0], rank, block, pattern, SIZE, NULL), 0);
        assert_memory_equal(block, pattern, SIZE);
        memset(near_memory, 0, SIZE);
        assert_int_equal(ferry_get(job.f[0], rank, near_memory, block, SIZE, NULL), 0);
        assert_memory_equal(near_memory, pattern, SIZE);
        ferry_op op;
        const ferry_track track = with(&op);
        assert_int_equal(ferry_put(job.f[0], rank, block, pattern, 8, &track), 0);
        assert_int_equal(end_of(&op), 0);
        assert_int_equal(ferry_free(job.f[(rank + 1) % 3], block), 0);
        assert_int_equal(ferry_free(job.f[rank], block), FERRY_EINVAL);
    }
}

/* Goal: more than 1 MiB from or to memory that is not mapped is refused, also where a put or get is
 * a copy. Method: one page in the middle is missing. */
static void test_large_local_ranges_are_looked_at(void **state)
{
    enum { LARGE = 3 * 1024 * 1024 };
    void *block;
    char *local = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(local != MAP_FAILED);
    assert_int_equal(ferry_alloc(job.f[1], LARGE, &block), 0);
    assert_int_equal(ferry_put(job.f[0], 1, block, local, LARGE, NULL), 0);
    assert_int_equal(munmap(local + LARGE / 3, LARGE / 3), 0);
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(ferry_put(job.f[rank], 1, block, local, LARGE, NULL), FERRY_ERANGE);
        assert_int_equal(ferry_get(job.f[rank], 1, local, block, LARGE, NULL), FERRY_ERANGE);
    }
    assert_int_equal(munmap(local, LARGE), 0);
    assert_int_equal(ferry_free(job.f[1], block), 0);
}

/* Goal: ranges that are not offered are refused and nothing is touched. Method: before, behind,
 * across and around a registration, freed memory, other ranks' memory, and after unregister. */
static void test_ranges_outside_are_refused(void **state)
{
    (void)state;
    void *block;
    assert_int_equal(ferry_memory_register(job.f[1], far_memory + 100, 1000), 0);
    assert_int_equal(ferry_alloc(job.f[2], 128, &block), 0);
    const struct {
        void *address;
        size_t size;
    } bad[] = {{far_memory + 99, 2},
               {far_memory + 1100, 1},
               {far_memory + 600, 501},
               {far_memory, SIZE},
               {NULL, 1},
               {(void *)(UINTPTR_MAX - 9), 8},
               {(void *)UINTPTR_MAX, 100},
               {far_memory, UINTPTR_MAX},
               {block, 8}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        for (int get = 0; get < 2; get++) {
            ferry_op op = {0};
            const ferry_track track = with(&op);
            size_t size = bad[i].size;
            job.f[0]->head.depth++; /* as above */
            int error = get ? ferry_get(job.f[0], 1, near_memory, bad[i].address, size, &track)
                            : ferry_put(job.f[0], 1, bad[i].address, pattern, size, &track);
            job.f[0]->head.depth--;
            assert_int_equal(error == 0 ? end_of(&op) : error, FERRY_ERANGE);
        }
    }
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(far_memory[i], 0);
    assert_int_equal(ferry_put(job.f[0], 0, far_memory, pattern, 1, NULL), FERRY_ERANGE);
    assert_int_equal(ferry_get(job.f[0], 0, near_memory, far_memory, 1, NULL), FERRY_ERANGE);
    assert_non_null(strstr(ferry_error_message(job.f[0]), "1 bytes at 0x"));
    assert_int_equal(ferry_memory_unregister(job.f[1], far_memory + 100), 0);
    assert_int_equal(ferry_memory_unregister(job.f[1], far_memory + 100), FERRY_ENOENT);
    ferry_op op;
    const ferry_track track = with(&op);
    assert_int_equal(ferry_put(job.f[0], 1, far_memory + 100, pattern, 1, &track), 0);
    assert_int_equal(end_of(&op), FERRY_ERANGE);
}

/* Goal: a put without track that fails says so. */
static void test_put_untracked_failure_is_reported(void **state)
{
    (void)state;
    assert_int_equal(ferry_put(job.f[0], 1, far_memory, pattern, 70, NULL), 0);
    job_settle(&job);
    assert_non_null(strstr(ferry_error_message(job.f[0]), "put: 70 bytes at 0x"));
}

static void test_memory_refuses_bad_arguments(void **state)
{
    (void)state;
    ferry *f = job.f[0];
    void *block;
    assert_int_equal(ferry_alloc(f, 0, &block), FERRY_EINVAL);
    assert_int_equal(ferry_alloc(f, 8, NULL), FERRY_EINVAL);
    assert_int_equal(ferry_alloc(f, SIZE_MAX / 2, &block), FERRY_ENOMEM);
    assert_int_equal(ferry_free(f, NULL), 0);
    assert_int_equal(ferry_free(f, pattern), FERRY_EINVAL);
    assert_int_equal(ferry_memory_register(f, NULL, 8), FERRY_EINVAL);
    assert_int_equal(ferry_memory_register(f, pattern, 0), FERRY_EINVAL);
    assert_int_equal(ferry_memory_register(f, pattern, SIZE_MAX), FERRY_EINVAL);
    assert_int_equal(ferry_put(f, 3, pattern, pattern, 1, NULL), FERRY_EINVAL);
    assert_string_equal(ferry_error_message(f), "put: rank 3 is outside 0..2");
    assert_int_equal(ferry_get(f, -1, pattern, pattern, 1, NULL), FERRY_EINVAL);
    assert_int_equal(ferry_put(f, 1, pattern, NULL, 1, NULL), FERRY_EINVAL);
    assert_int_equal(ferry_get(f, 1, NULL, pattern, 1, NULL), FERRY_EINVAL);
    f->head.depth++;
    assert_int_equal(ferry_get(f, 1, near_memory, far_memory, 1, NULL), FERRY_ESTATE);
    f->head.depth--;
    assert_int_equal(job_settle(&job), 0);
}

/* Goal: registrations never overlap, and lookups agree with a naive model. Method: random ones. */
static void test_regions_agree_with_a_model(void **state)
{
    (void)state;
    enum { SPACE = 64 };
    int owner[SPACE] = {0};
    fy_regions regions = {0};
    uint64_t random = 3;
    for (int round = 1; round < 20000; round++) {
        uintptr_t base = 1000 + next_random(&random) % SPACE;
        size_t size = 1 + next_random(&random) % (1000 + SPACE - base);
        bool free_range = true, one_owner = owner[base - 1000] != 0;
        for (size_t i = 0; i < size; i++) {
            free_range = free_range && owner[base - 1000 + i] == 0;
            one_owner = one_owner && owner[base - 1000 + i] == owner[base - 1000];
        }
        assert_int_equal(fy_regions_overlapping(&regions, base, size) == NULL, free_range);
        assert_int_equal(fy_regions_containing(&regions, base, size) != NULL, one_owner);
        const fy_region *at = fy_regions_at(&regions, base);
        if (at != NULL) {
            for (size_t i = 0; i < at->size_bytes; i++)
                owner[base - 1000 + i] = 0;
            fy_regions_remove(&regions, at);
        } else if (free_range) {
            assert_true(fy_regions_add(&regions, (fy_region){.base = base, .size_bytes = size}));
            for (size_t i = 0; i < size; i++)
                owner[base - 1000 + i] = round;
        }
    }
    free(regions.items);
}

/* Goal: no bytes at the end of an allocation can be put and got, as those of an empty last piece.
 * One byte there cannot. Method: blocks of many block_sizes, of which the neighbours are free or
 * not. */
static void test_no_bytes_at_the_end_of_an_allocation(void **state)
{
    static const size_t block_sizes[] = {1, 64, 100, 4096, 100000, 1 << 20};
    (void)state;
    for (size_t i = 0; i < sizeof(block_sizes) / sizeof(block_sizes[0]); i++) {
        void *blocks[40];
        for (int k = 0; k < 40; k++)
            assert_int_equal(ferry_alloc(job.f[1], block_sizes[i], &blocks[k]), 0);
        for (int k = 0; k < 40; k += 2)
            assert_int_equal(ferry_free(job.f[1], blocks[k]), 0);
        for (int k = 1; k < 40; k += 2) {
            char *end = (char *)blocks[k] + block_sizes[i];
            ferry_op op = {0};
            const ferry_track track = with(&op);
            assert_int_equal(ferry_put(job.f[0], 1, end, pattern, 0, &track), 0);
            assert_int_equal(end_of(&op), 0);
            assert_int_equal(ferry_get(job.f[0], 1, near_memory, end, 0, &track), 0);
            assert_int_equal(end_of(&op), 0);
            assert_int_equal(ferry_put(job.f[1], 1, end, pattern, 0, NULL), 0);
            assert_int_equal(ferry_put(job.f[1], 1, blocks[k], NULL, 0, NULL), 0);
            int error = ferry_put(job.f[0], 1, end - 1, pattern, 2, &track);
            assert_int_equal(error == 0 ? end_of(&op) : error, FERRY_ERANGE);
            assert_int_equal(ferry_free(job.f[1], blocks[k]), 0);
        }
    }
}

/* Goal: many ranks put and get at once, with waiting forms, and nothing is mixed up. */
static void exchange(ferry *f, void *arg)
{
    unsigned char *const *areas = arg;
    int ranks = ferry_ranks(f), rank = ferry_rank(f);
    unsigned char *own = areas[rank], *data = malloc(SIZE);
    CHECK(data != NULL && ferry_memory_register(f, own, SIZE) == 0 && ferry_barrier(f) == 0);
    memset(data, rank + 1, SIZE);
    ferry_op op;
    const ferry_track track = {.size = sizeof(track), .op = &op};
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    for (int round = 0; round < 5; round++) {
        CHECK(ferry_put(f, next, areas[next], data, SIZE, &track) == 0);
        CHECK(ferry_op_wait(f, &op) == 0 && ferry_barrier(f) == 0);
        for (size_t i = 0; i < SIZE; i++)
            CHECK(own[i] == before + 1);
        CHECK(ferry_get(f, next, data, areas[next], SIZE, NULL) == 0);
        for (size_t i = 0; i < SIZE; i++)
            CHECK(data[i] == rank + 1);
        CHECK(ferry_get(f, next, data, areas[next] + 1, SIZE, NULL) == FERRY_ERANGE);
        CHECK(ferry_barrier(f) == 0);
    }
    free(data);
}

static void test_put_get_between_many(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++) {
        unsigned char *areas[4];
        for (int i = 0; i < 4; i++)
            CHECK((areas[i] = malloc(SIZE)) != NULL);
        run_ranks(ranks, 8, 1024, exchange, areas);
        for (int i = 0; i < 4; i++)
            free(areas[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_put_to_registered_memory, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_get_from_registered_memory, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_shared_heap_is_copied_at_once, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_no_bytes_at_the_end_of_an_allocation, open_job,
                                        close_job),
        cmocka_unit_test_setup_teardown(test_large_local_ranges_are_looked_at, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_ranges_outside_are_refused, open_job, close_job),
        cmocka_unit_test_setup_teardown(test_put_untracked_failure_is_reported, open_job,
                                        close_job),
        cmocka_unit_test_setup_teardown(test_memory_refuses_bad_arguments, open_job, close_job),
        cmocka_unit_test(test_regions_agree_with_a_model),
        cmocka_unit_test(test_put_get_between_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
