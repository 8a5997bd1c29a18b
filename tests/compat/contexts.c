/* Goal: calls with a context reach the PEs of its team, in every form. Method: teams of even and
 * odd PEs; each PE puts, adds and signals to its neighbour in the team, by typed and by generic
 * names. Then the rows and columns of a grid, and a loop that waits for a variable by fetching it.
 */
#include "check.h"

static long cells[4];
static double strided[8];
static uint64_t signals;
static int flag;

/* The PEs of `ctx` in a ring: `me` of `n`. */
static void ring(shmem_ctx_t ctx, shmem_team_t team)
{
    int me = shmem_team_my_pe(team), n = shmem_team_n_pes(team), next = (me + 1) % n;
    long number = me + 1, got = 0;
    double values[4] = {me, me + 0.25, me + 0.5, me + 0.75};
    cells[0] = cells[1] = cells[2] = cells[3] = 0;
    shmem_barrier_all();
    shmem_put(ctx, &cells[0], &number, 1, next);
    shmem_ctx_long_p(ctx, &cells[1], number + 10, next);
    shmem_atomic_add(ctx, &cells[2], 5L, next);
    CHECK(shmem_ctx_long_atomic_fetch_inc(ctx, &cells[2], next) == 5);
    shmem_iput(ctx, strided, values, 2, 1, 4, next);
    shmem_ctx_putmem_signal(ctx, &cells[3], &number, sizeof(number), &signals, 7, SHMEM_SIGNAL_SET,
                            next);
    shmem_ctx_quiet(ctx);
    CHECK(shmem_signal_wait_until(&signals, SHMEM_CMP_EQ, 7) == 7);
    shmem_barrier_all();
    int before = (me + n - 1) % n;
    CHECK(cells[0] == before + 1 && cells[1] == before + 11 && cells[2] == 6);
    CHECK(cells[3] == before + 1 && strided[6] == before + 0.75);
    shmem_get(ctx, &got, &cells[0], 1, next);
    CHECK(got == number && shmem_g(ctx, &cells[1], next) == number + 10);
    shmem_ctx_fence(ctx);
    signals = 0;
    shmem_barrier_all();
}

static void teams(void)
{
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_team_t halves[2], back;
    shmem_ctx_t ctx;
    shmem_team_config_t config = {3};
    for (int half = 0; half < 2; half++)
        if (half < n)
            CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, half, 2, (n - half + 1) / 2, &config,
                                           SHMEM_TEAM_NUM_CONTEXTS, &halves[half]) == 0);
    shmem_team_t mine = halves[me % 2];
    config.num_contexts = 0;
    CHECK(shmem_team_get_config(mine, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0);
    CHECK(config.num_contexts == 3);
    CHECK(shmem_team_get_config(mine, 8, &config) == -1);
    CHECK(shmem_team_create_ctx(mine, SHMEM_CTX_SERIALIZED, &ctx) == 0);
    CHECK(shmem_ctx_get_team(ctx, &back) == 0 && back == mine);
    CHECK(shmem_team_ptr(mine, cells, shmem_team_my_pe(mine)) == (void *)cells);
    ring(ctx, mine);
    shmem_ctx_destroy(ctx);
    shmem_team_destroy(mine);
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    ring(ctx, SHMEM_TEAM_WORLD);
    shmem_ctx_destroy(ctx);
    ring(SHMEM_CTX_DEFAULT, SHMEM_TEAM_WORLD);
    CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &back) == -1 && back == SHMEM_TEAM_INVALID);
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) == -1 && ctx == SHMEM_CTX_INVALID);
}

/* Rows of 2. */
static void grid(void)
{
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_team_t row, column;
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &row, NULL, 0, &column) == 0);
    CHECK(shmem_team_my_pe(row) == me % 2 && shmem_team_my_pe(column) == me / 2);
    CHECK(shmem_team_n_pes(row) == (me / 2 * 2 + 1 < n ? 2 : 1));
    CHECK(shmem_team_n_pes(column) == (n - me % 2 + 1) / 2);
    shmem_sync(row);
    shmem_team_destroy(row);
    shmem_team_destroy(column);
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 0, NULL, 0, &row, NULL, 0, &column) == -1);
}

/* Only a fetch of the PE's own variable is in the loop, or a wait that has come true. */
static void fetch_in_a_loop(void)
{
    int me = shmem_my_pe(), n = shmem_n_pes();
    signals = 1;
    shmem_barrier_all();
    for (int pe = 0; pe < n; pe++)
        shmem_long_put_signal(cells, cells, 1, &signals, 1, SHMEM_SIGNAL_ADD, pe);
    while (shmem_signal_fetch(&signals) != (uint64_t)n + 1)
        shmem_wait_until(&signals, SHMEM_CMP_NE, (uint64_t)0);
    if (me == 0)
        shmem_int_atomic_set(&flag, 1, 1 % n);
    while (shmem_int_atomic_fetch(&flag, me) == 0)
        continue;
    if (me != 0)
        shmem_int_atomic_set(&flag, 1, (me + 1) % n);
    shmem_barrier_all();
}

/* No variable is forgotten where several hold. */
static void take_turns(void)
{
    int flags[5] = {1, 1, 0, 1, 1}, told[5] = {0};
    for (int i = 0; i < 8; i++)
        told[shmem_int_test_any(flags, 5, NULL, SHMEM_CMP_EQ, 1)]++;
    CHECK(told[0] == 2 && told[1] == 2 && told[2] == 0 && told[3] == 2 && told[4] == 2);
}

int main(void)
{
    begin();
    teams();
    grid();
    fetch_in_a_loop();
    take_turns();
    void *wide = shmem_align(1 << 20, 100);
    CHECK(wide != NULL && (uintptr_t)wide % (1 << 20) == 0);
    shmem_free(wide);
    shmem_pcontrol(1);
    shmem_finalize();
    return 0;
}
