/* Goal: a wrong call ends the job and says what was wrong. Method: makes the mistake that the
 * argument names; CMakeLists.txt has the texts. */
#include <stdio.h>
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

/* Counts whose size in bytes is no size_t, and a root outside the team. */
static void make_mistake_in_collective(const char *mistake)
{
    const size_t many = (size_t)1 << 61, half = (size_t)1 << 59;
    long *heap = shmem_malloc(64);
    if (strcmp(mistake, "many_put") == 0)
        shmem_long_put(heap, &word, many, 1);
    else if (strcmp(mistake, "many_signal") == 0)
        shmem_long_put_signal(heap, &word, many, (uint64_t *)heap, 1, SHMEM_SIGNAL_SET, 1);
    else if (strcmp(mistake, "many_get") == 0)
        shmem_get64(&word, heap, many, 1);
    else if (strcmp(mistake, "many_broadcast") == 0)
        shmem_long_broadcast(SHMEM_TEAM_WORLD, heap, &word, many, 0);
    else if (strcmp(mistake, "many_collect") == 0)
        shmem_long_collect(SHMEM_TEAM_WORLD, heap, &word, many);
    else if (strcmp(mistake, "many_fcollect") == 0)
        shmem_long_fcollect(SHMEM_TEAM_WORLD, heap, &word, many);
    else if (strcmp(mistake, "many_alltoall") == 0)
        shmem_long_alltoall(SHMEM_TEAM_WORLD, heap, &word, many);
    else if (strcmp(mistake, "many_alltoalls") == 0)
        shmem_long_alltoalls(SHMEM_TEAM_WORLD, heap, &word, 1, 1, half);
    else if (strcmp(mistake, "root") == 0)
        shmem_long_broadcast(SHMEM_TEAM_WORLD, heap, &word, 1, 2);
}

/* Rank 0 ends with a lock that the other PE waits for. */
static void keep_lock(void)
{
    if (shmem_my_pe() == 0)
        shmem_set_lock(&word);
    shmem_barrier_all();
    if (shmem_my_pe() == 0)
        return;
    shmem_set_lock(&word);
    shmem_clear_lock(&word);
    puts("it has the lock");
}

/* Calls with a team, a lock or a variable that is not there. */
static void make_mistake_with_nothing(const char *mistake)
{
    shmem_team_t team;
    long one[2] = {1, 1};
    long *heap = shmem_malloc(64);
    if (strcmp(mistake, "team") == 0) {
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team);
        shmem_team_destroy(team);
        shmem_team_sync(team);
    } else if (strcmp(mistake, "locked") == 0) {
        shmem_set_lock(&word);
        shmem_set_lock(&word);
    } else if (strcmp(mistake, "keep") == 0) {
        keep_lock();
    } else if (strcmp(mistake, "null_wait") == 0) {
        shmem_long_wait_until(NULL, SHMEM_CMP_EQ, 1);
    } else if (strcmp(mistake, "null_test") == 0) {
        (void)shmem_long_test(NULL, SHMEM_CMP_EQ, 1);
    } else if (strcmp(mistake, "null_broadcast") == 0) {
        shmem_long_broadcast(SHMEM_TEAM_WORLD, NULL, one, 1, 0);
    } else if (strcmp(mistake, "unlike") == 0) {
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, heap, one, 1 + (size_t)shmem_my_pe());
    } else if (strcmp(mistake, "exit_259") == 0) {
        shmem_global_exit(259);
    }
}

int main(int argc, char **argv)
{
    const char *mistake = argc > 1 ? argv[1] : "none";
    long local = 0;
    if (strcmp(mistake, "early") == 0)
        shmem_malloc(8);
    else if (strcmp(mistake, "early_test") == 0)
        shmem_long_test(&word, SHMEM_CMP_EQ, 0);
    else if (strcmp(mistake, "early_barrier") == 0)
        shmem_barrier_all();
    else if (strcmp(mistake, "early_pe") == 0 && shmem_my_pe() == 0)
        return 0;
    else if (strcmp(mistake, "early_wait") == 0)
        shmem_long_wait_until(&word, SHMEM_CMP_EQ, 1);
    shmem_init();
    make_mistake_in_collective(mistake);
    make_mistake_with_nothing(mistake);
    if (strcmp(mistake, "address") == 0)
        shmem_p(&local, 1L, 0);
    else if (strcmp(mistake, "pe") == 0)
        shmem_g(&local, 9);
    else if (strcmp(mistake, "free") == 0)
        shmem_free(&local);
    else if (strcmp(mistake, "null_put") == 0)
        shmem_long_put(&word, NULL, 1, 1);
    else if (strcmp(mistake, "null_get") == 0)
        shmem_long_get(NULL, &word, 1, 1);
    else if (strcmp(mistake, "unlock") == 0)
        shmem_clear_lock(&word);
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
