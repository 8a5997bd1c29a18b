/* Tickets: a program of OpenSHMEM on Ferry's ranks.
 *
 * PEs draw numbers of tasks from a counter on PE 0 until none is left. Each PE puts its sum into
 * PE 0 with a signal, and a reduction gives the same sum to all.
 *
 *     cc tickets.c $(pkg-config --cflags --libs ferry-shmem) -o tickets
 *     ferry run -n 4 ./tickets */
#include <stdio.h>

#include <shmem.h>

enum { TASKS = 1000, PES_MAX = 1024 };

/* Variables of the program are symmetric: every PE can reach those of another. */
static long sums[PES_MAX];
static uint64_t arrived;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes();
    long *next = shmem_calloc(1, sizeof(*next)); /* the same offset on all PEs */
    long own = 0;
    for (long task = shmem_atomic_fetch_inc(next, 0); task < TASKS;
         task = shmem_atomic_fetch_inc(next, 0))
        own += task;

    shmem_put_signal(&sums[me], &own, 1, &arrived, 1, SHMEM_SIGNAL_ADD, 0);
    long all;
    shmem_sum_reduce(SHMEM_TEAM_WORLD, &all, &own, 1);
    if (me == 0) {
        shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, (uint64_t)pes);
        long total = 0;
        for (int pe = 0; pe < pes; pe++)
            total += sums[pe];
        printf("%d tasks, sum %ld, reduced %ld\n", TASKS, total, all);
    }
    shmem_free(next);
    shmem_finalize();
    return 0;
}
