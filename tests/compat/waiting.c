/* Goal: a PE that waits for values of several variables goes on with the right ones. Method: each
 * PE puts its values into PE 0, which waits in every form. Then the heap: the same calls give the
 * same offsets on all PEs, and freed memory is used again. */
#include "check.h"

#include <string.h>

enum { PES_MAX = 64 };

static long arrived[PES_MAX];
static unsigned short small[PES_MAX];

/* PE 0 takes each value as it comes. */
static void take_each(void)
{
    int n = shmem_n_pes(), status[PES_MAX] = {0};
    for (int taken = 0; taken < n; taken++) {
        size_t i = shmem_wait_until_any(arrived, (size_t)n, status, SHMEM_CMP_NE, 0L);
        CHECK(i < (size_t)n && status[i] == 0 && arrived[i] == (long)i + 1);
        status[i] = 1;
    }
    CHECK(shmem_wait_until_any(arrived, (size_t)n, status, SHMEM_CMP_NE, 0L) == SIZE_MAX);
    CHECK(shmem_long_test_any(arrived, (size_t)n, status, SHMEM_CMP_NE, 0) == SIZE_MAX);
}

static void take_all(void)
{
    int n = shmem_n_pes();
    size_t indices[PES_MAX];
    long values[PES_MAX];
    for (int i = 0; i < n; i++)
        values[i] = i + 1;
    shmem_ushort_wait_until_all(small, (size_t)n, NULL, SHMEM_CMP_GT, 6);
    CHECK(shmem_test_all(small, (size_t)n, NULL, SHMEM_CMP_GE, 7));
    CHECK(!shmem_test_all(small, (size_t)n, NULL, SHMEM_CMP_LT, 7));
    CHECK(shmem_test(&small[0], SHMEM_CMP_LE, 7));
    CHECK(shmem_wait_until_some(arrived, (size_t)n, indices, NULL, SHMEM_CMP_EQ, 1L) == 1);
    CHECK(indices[0] == 0);
    shmem_wait_until_all_vector(arrived, (size_t)n, NULL, SHMEM_CMP_EQ, values);
    CHECK(shmem_test_some_vector(arrived, (size_t)n, indices, NULL, SHMEM_CMP_EQ, values) ==
          (size_t)n);
    CHECK(indices[n - 1] == (size_t)n - 1);
}

static size_t offset_of(const void *address, const char *base)
{
    return (size_t)((const char *)address - base);
}

/* All PEs must have the offset of PE 0. */
static void check_same(size_t offset)
{
    size_t of_root;
    shmem_size_broadcast(SHMEM_TEAM_WORLD, &of_root, &offset, 1, 0);
    CHECK(of_root == offset);
}

/* The blocks lie one after the other, and freed ones are given out again, the lowest first. */
static void many_blocks(void)
{
    enum { BLOCKS = 300, BYTES = 64 };
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = shmem_malloc(BYTES);
        CHECK(blocks[i] == blocks[0] + i * BYTES);
    }
    for (int i = BLOCKS - 1; i >= 0; i--)
        if (i % 3 != 0)
            shmem_free(blocks[i]);
    for (int i = 0; i < BLOCKS; i++)
        if (i % 3 == 1)
            CHECK(shmem_malloc(2 * BYTES) == blocks[i]);
    for (int i = 0; i < BLOCKS; i++)
        if (i % 3 != 2)
            shmem_free(blocks[i]);
}

static void heap(void)
{
    many_blocks();
    char *first = shmem_malloc(100);
    char *second = shmem_malloc_with_hints(1000, SHMEM_MALLOC_SIGNAL_REMOTE);
    char *third = shmem_align(4096, 10);
    CHECK(first != NULL && second != NULL && (uintptr_t)third % 4096 == 0);
    check_same(offset_of(second, first));
    check_same(offset_of(third, first));
    memset(second, shmem_my_pe(), 1000);
    second = shmem_realloc(second, 20000);
    CHECK(second[0] == shmem_my_pe() && second[999] == shmem_my_pe());
    check_same(offset_of(second, first));
    shmem_free(first);
    char *again = shmem_calloc(4, 16);
    CHECK(again == first && again[63] == 0);
    CHECK(shmem_malloc(0) == NULL && shmem_malloc((size_t)1 << 40) == NULL);
    CHECK(shmem_calloc(SIZE_MAX, 2) == NULL && shmem_align(3, 8) == NULL);
    shmem_free(again);
    shmem_free(second);
    shmem_free(third);
    char *large = shmem_malloc((size_t)8 << 20); /* all that SHMEM_SYMMETRIC_SIZE gives */
    CHECK(large != NULL && large == first);
    large[((size_t)8 << 20) - 1] = 1;
    shmem_free(large);
}

int main(void)
{
    begin();
    int me = shmem_my_pe();
    shmem_long_p(&arrived[me], me + 1, 0);
    shmem_p(&small[me], 7, 0);
    if (me == 0) {
        take_each();
        take_all();
    }
    shmem_barrier_all();
    heap();
    shmem_finalize();
    return 0;
}
