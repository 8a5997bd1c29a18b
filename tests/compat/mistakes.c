/* Goal: a wrong call ends the job and says what was wrong. Method: makes the mistake that the
 * argument names; CMakeLists.txt has the texts. */
#include <string.h>

#include <shmem.h>

static long word;

/* A PE number that the context's team does not have. */
static void outside(void)
{
    shmem_team_t alone;
    shmem_ctx_t ctx;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &alone);
    if (shmem_team_create_ctx(alone, 0, &ctx) == 0)
        shmem_g(ctx, &word, 1);
    shmem_barrier_all();
}

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
    else if (strcmp(mistake, "good") == 0 && shmem_my_pe() == 1)
        shmem_global_exit(0);
    else if (strcmp(mistake, "good") == 0)
        shmem_barrier_all();
    else if (strcmp(mistake, "context") == 0)
        shmem_g(SHMEM_CTX_INVALID, &local, 0);
    else if (strcmp(mistake, "member") == 0)
        outside();
    shmem_finalize();
    return 0;
}
