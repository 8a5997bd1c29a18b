/* Goal: a wrong call ends the job and says what was wrong. Method: makes the mistake that the
 * argument names; CMakeLists.txt has the texts. */
#include <string.h>

#include <shmem.h>

int main(int argc, char **argv)
{
    const char *mistake = argc > 1 ? argv[1] : "none";
    long local = 0;
    if (strcmp(mistake, "early") == 0)
        shmem_malloc(8);
    shmem_init();
    if (strcmp(mistake, "address") == 0)
        shmem_p(&local, 1L, 0);
    else if (strcmp(mistake, "pe") == 0)
        shmem_g(&local, 9);
    else if (strcmp(mistake, "free") == 0)
        shmem_free(&local);
    else if (strcmp(mistake, "exit") == 0)
        shmem_global_exit(5);
    shmem_finalize();
    return 0;
}
