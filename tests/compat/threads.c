/* Goal: all threads of a PE may make calls if they take turns. Method: the threads pass a turn on.
 * In each round the thread whose turn it is adds to the next PE, puts a number there, waits for the
 * number of the PE before, and reduces over all PEs. */
#include "check.h"

#include <pthread.h>
#include <stdint.h>

enum { THREADS = 3, ROUNDS = 60 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;
static long turn;
static long sum, number;

static void exchange(long round)
{
    const int right = (shmem_my_pe() + 1) % shmem_n_pes();
    long own = round + shmem_my_pe(), all = -1, n = shmem_n_pes();
    shmem_long_atomic_add(&sum, 1, right);
    shmem_long_p(&number, round + 1, right);
    shmem_long_wait_until(&number, SHMEM_CMP_NE, round);
    CHECK(number == round + 1);
    CHECK(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all, &own, 1) == 0);
    CHECK(all == n * round + n * (n - 1) / 2);
}

static void *take_turns(void *first)
{
    for (long round = (long)(intptr_t)first; round < ROUNDS; round += THREADS) {
        pthread_mutex_lock(&lock);
        while (turn != round)
            pthread_cond_wait(&passed, &lock);
        exchange(round);
        turn++;
        pthread_cond_broadcast(&passed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int provided;
    begin();
    CHECK(shmem_init_thread(SHMEM_THREAD_SERIALIZED, &provided) == 0);
    CHECK(provided == SHMEM_THREAD_SERIALIZED);
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, take_turns, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    shmem_barrier_all();
    CHECK(turn == ROUNDS && sum == ROUNDS);
    shmem_finalize();
    return 0;
}
