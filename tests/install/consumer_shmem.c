/* A program of OpenSHMEM: it adds up a value in symmetric memory. */
#include <stdio.h>

#include <shmem.h>

int main(void)
{
    shmem_init();
    long *sum = (long *)shmem_calloc(1, sizeof(long));
    shmem_long_atomic_add(sum, 3, 0);
    int ok = shmem_long_g(sum, 0) == 3;
    if (ok)
        printf("hello from rank %d of %d, Ferry %s\n", shmem_my_pe(), shmem_n_pes(), FERRY_VERSION);
    shmem_free(sum);
    shmem_finalize();
    return ok ? 0 : 1;
}
