/* Goal: collectives, reductions and teams give the values that OpenSHMEM says. Method: each PE
 * contributes values made of its number, and every PE computes what must come out. */
#include "check.h"

enum { COUNT = 5 };

static void broadcasts(int *dest, int *source)
{
    int me = shmem_my_pe(), n = shmem_n_pes(), root = n - 1;
    for (int i = 0; i < COUNT; i++)
        source[i] = 10 * me + i;
    CHECK(shmem_broadcast(SHMEM_TEAM_WORLD, dest, source, COUNT, root) == 0);
    for (int i = 0; i < COUNT; i++)
        CHECK(dest[i] == 10 * root + i);
    CHECK(shmem_broadcastmem(SHMEM_TEAM_INVALID, dest, source, 1, 0) == -1);
}

/* PE p contributes p + 1 elements to collect, COUNT to fcollect. */
static void collects(int *dest, int *source)
{
    int me = shmem_my_pe(), n = shmem_n_pes(), at = 0;
    CHECK(shmem_collect(SHMEM_TEAM_WORLD, dest, source, (size_t)me + 1) == 0);
    for (int pe = 0; pe < n; pe++)
        for (int i = 0; i <= pe; i++)
            CHECK(dest[at++] == 10 * pe + i % COUNT);
    CHECK(shmem_int_fcollect(SHMEM_TEAM_WORLD, dest, source, COUNT) == 0);
    for (int i = 0; i < n * COUNT; i++)
        CHECK(dest[i] == 10 * (i / COUNT) + i % COUNT);
}

static void exchanges(int *dest, int *source)
{
    int me = shmem_my_pe(), n = shmem_n_pes();
    for (int i = 0; i < 2 * n * COUNT; i++) {
        source[i] = 1000 * me + i;
        dest[i] = -1;
    }
    CHECK(shmem_alltoall(SHMEM_TEAM_WORLD, dest, source, COUNT) == 0);
    for (int i = 0; i < n * COUNT; i++)
        CHECK(dest[i] == 1000 * (i / COUNT) + me * COUNT + i % COUNT);
    for (int i = 0; i < 3 * n; i++)
        dest[i] = -1;
    CHECK(shmem_int_alltoalls(SHMEM_TEAM_WORLD, dest, source, 3, 2, 1) == 0);
    for (int pe = 0; pe < n; pe++)
        CHECK(dest[3 * pe] == 1000 * pe + 2 * me && dest[3 * pe + 1] == -1);
}

static void reductions(void)
{
    int me = shmem_my_pe(), n = shmem_n_pes();
    long longs[2] = {me + 1, -me}, sums[2];
    double reals[1] = {me + 1.5}, results[1];
    unsigned char bits[1] = {(unsigned char)(1 << me)}, mask[1];
    float _Complex complexes[1] = {(float)me}, total[1];
    CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, sums, longs, 2) == 0);
    CHECK(sums[0] == n * (n + 1L) / 2 && sums[1] == -n * (n - 1L) / 2);
    shmem_long_prod_reduce(SHMEM_TEAM_WORLD, sums, longs, 1);
    CHECK(sums[0] == (n == 1 ? 1 : n == 2 ? 2 : n == 3 ? 6 : 24));
    shmem_max_reduce(SHMEM_TEAM_WORLD, results, reals, 1);
    CHECK(results[0] == n + 0.5);
    shmem_double_min_reduce(SHMEM_TEAM_WORLD, results, reals, 1);
    CHECK(results[0] == 1.5);
    shmem_or_reduce(SHMEM_TEAM_WORLD, mask, bits, 1);
    CHECK(mask[0] == (1 << n) - 1);
    shmem_uchar_and_reduce(SHMEM_TEAM_WORLD, mask, bits, 1);
    CHECK(mask[0] == (n == 1 ? 1 : 0));
    shmem_xor_reduce(SHMEM_TEAM_WORLD, bits, bits, 1); /* in place */
    CHECK(bits[0] == (1 << n) - 1);
    shmem_complexf_sum_reduce(SHMEM_TEAM_WORLD, total, complexes, 1);
    CHECK(total[0] == (float)(n * (n - 1) / 2));
}

/* The even PEs. */
static void teams(void)
{
    int me = shmem_my_pe(), n = shmem_n_pes(), size = (n + 1) / 2;
    shmem_team_t even, none;
    CHECK(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me && shmem_team_n_pes(SHMEM_TEAM_WORLD) == n);
    CHECK(shmem_team_n_pes(SHMEM_TEAM_SHARED) >= 1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, n + 1, NULL, 0, &none) == -1);
    CHECK(none == SHMEM_TEAM_INVALID);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, size, NULL, 0, &even) == 0);
    CHECK((even != SHMEM_TEAM_INVALID) == (me % 2 == 0));
    if (even == SHMEM_TEAM_INVALID)
        return;
    int sum = 0, value = me;
    CHECK(shmem_team_my_pe(even) == me / 2 && shmem_team_n_pes(even) == size);
    CHECK(shmem_team_translate_pe(even, size - 1, SHMEM_TEAM_WORLD) == 2 * (size - 1));
    CHECK(n == 1 || shmem_team_translate_pe(SHMEM_TEAM_WORLD, 1, even) == -1);
    CHECK(shmem_int_sum_reduce(even, &sum, &value, 1) == 0 && sum == size * (size - 1));
    CHECK(shmem_broadcast(even, &sum, &value, 1, size - 1) == 0 && sum == 2 * (size - 1));
    CHECK(shmem_team_sync(even) == 0);
    shmem_team_destroy(even);
}

int main(void)
{
    int provided;
    begin();
    CHECK(shmem_init_thread(SHMEM_THREAD_SINGLE, &provided) == 0);
    size_t bytes = (size_t)(2 * shmem_n_pes() * COUNT) * sizeof(int);
    int *dest = shmem_malloc(bytes), *source = shmem_calloc(1, bytes);
    broadcasts(dest, source);
    collects(dest, source);
    exchanges(dest, source);
    reductions();
    teams();
    shmem_free(dest);
    shmem_finalize();
    return 0;
}
