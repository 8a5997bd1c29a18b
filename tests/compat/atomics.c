/* Goal: atomic operations of all PEs on one word lose nothing, for 4 and 8 bytes, in the symmetric
 * heap and in variables, and locks guard plain data. Method: all PEs race, then all check totals.
 */
#include "check.h"

enum { ROUNDS = 300, LOCKED_ROUNDS = 50 };

static int counter_here; /* symmetric, since it is a variable of the program */
static long lock, guarded;

static void add_from_all(int *small, long *large, int target)
{
    int me = shmem_my_pe(), n = shmem_n_pes();
    for (int i = 0; i < ROUNDS; i++) {
        shmem_int_atomic_inc(&small[0], target);
        shmem_atomic_add(&small[1], 3, target); /* the other half of the word */
        shmem_long_atomic_fetch_add(large, me + 1, target);
        shmem_atomic_inc(&counter_here, target);
    }
    shmem_barrier_all();
    CHECK(shmem_g(&small[0], target) == n * ROUNDS);
    CHECK(shmem_int_atomic_fetch(&small[1], target) == 3 * n * ROUNDS);
    CHECK(shmem_atomic_fetch(large, target) == (long)ROUNDS * n * (n + 1) / 2);
    CHECK(shmem_atomic_fetch(&counter_here, target) == n * ROUNDS);
    shmem_barrier_all();
}

/* Each PE sets its own bits, and takes them away. */
static void bits(unsigned *half, uint64_t *whole)
{
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_atomic_or(half, 1U << me, 0);
    shmem_uint64_atomic_xor(whole, UINT64_C(1) << (me + 32), 0);
    shmem_barrier_all();
    CHECK(shmem_atomic_fetch(half, 0) == (1U << n) - 1);
    CHECK(shmem_atomic_fetch(whole, 0) == ((UINT64_C(1) << n) - 1) << 32);
    shmem_barrier_all();
    unsigned old = shmem_uint_atomic_fetch_and(half, ~(1U << me), 0);
    CHECK(old >> me & 1);
    old = shmem_atomic_fetch_xor(half, 0U, 0);
    CHECK((old >> me & 1) == 0);
    shmem_barrier_all();
    CHECK(*half == 0);
}

/* One PE alone wins each swap. */
static void swaps(int *owner, double *real, long *wins)
{
    int me = shmem_my_pe(), n = shmem_n_pes();
    if (shmem_atomic_compare_swap(owner, 0, me + 1, n - 1) == 0)
        shmem_atomic_inc(wins, 0);
    CHECK(shmem_atomic_compare_swap(owner, 0, me + 1, n - 1) != 0);
    double before = shmem_double_atomic_swap(real, me + 0.5, 0);
    CHECK(before >= 0 && before < n + 0.5);
    shmem_barrier_all();
    CHECK(shmem_g(wins, 0) == 1);
    CHECK(shmem_double_atomic_fetch(real, 0) >= 0.5);
    shmem_barrier_all();
    shmem_double_atomic_set(real, 7.25, me);
    CHECK(*real == 7.25);
    int fetched = 0;
    shmem_int_atomic_swap_nbi(&fetched, owner, -4, me);
    shmem_quiet();
    shmem_int_atomic_fetch_add_nbi(&fetched, owner, 1, me);
    shmem_quiet();
    CHECK(fetched == -4 && *owner == -3);
    shmem_barrier_all();
}

static void locks(void)
{
    int n = shmem_n_pes();
    for (int i = 0; i < LOCKED_ROUNDS; i++) {
        if (i % 2 == 0)
            shmem_set_lock(&lock);
        else
            while (shmem_test_lock(&lock) != 0)
                ;
        long value = shmem_g(&guarded, n - 1);
        shmem_p(&guarded, value + 1, n - 1);
        shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
    CHECK(shmem_g(&guarded, n - 1) == (long)n * LOCKED_ROUNDS);
    if (shmem_my_pe() == 0)
        lock = -1; /* free, and the next ticket is the last one before 0 */
    shmem_barrier_all();
    for (int i = 0; i < 3; i++) {
        shmem_set_lock(&lock);
        shmem_p(&guarded, shmem_g(&guarded, 0) + 1, 0);
        shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
    CHECK(shmem_g(&guarded, 0) == 3L * n + (n == 1 ? LOCKED_ROUNDS : 0));
    shmem_barrier_all();
}

int main(void)
{
    begin();
    int *small = shmem_calloc(2, sizeof(int));
    long *large = shmem_calloc(2, sizeof(long));
    add_from_all(small, large, shmem_n_pes() - 1);
    unsigned *half = shmem_calloc(1, sizeof(*half));
    uint64_t *whole = shmem_calloc(1, sizeof(*whole));
    bits(half, whole);
    double *real = shmem_calloc(1, sizeof(*real));
    int *owner = shmem_calloc(1, sizeof(*owner));
    swaps(owner, real, &large[1]);
    locks();
    shmem_finalize();
    return 0;
}
