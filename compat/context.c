/* Contexts. The default team has all PEs, so PE numbers of its contexts are ranks. Puts are counted
 * for all contexts together (state.h), and shmem_quiet waits for all. */
#include "state.h"

#include <stdlib.h>

int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx)
{
    FY_SHMEM_CALL();
    ferry_group *group;
    *ctx = SHMEM_CTX_INVALID;
    if (!fy_shmem_team_group(team, &group))
        return -1;
    shmem_ctx_t made = malloc(sizeof(*made));
    if (made == NULL)
        return -1;
    *made = (struct fy_shmem_ctx){team, options};
    *ctx = made;
    return 0;
}

int shmem_ctx_create(long options, shmem_ctx_t *ctx)
{
    return shmem_team_create_ctx(SHMEM_TEAM_WORLD, options, ctx);
}

static shmem_team_t team_of(shmem_ctx_t ctx)
{
    if (ctx == SHMEM_CTX_INVALID)
        fy_compat_fail("a call with SHMEM_CTX_INVALID; expected a context of shmem_ctx_create");
    return ctx == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD : ctx->team;
}

void shmem_ctx_destroy(shmem_ctx_t ctx)
{
    if (ctx == SHMEM_CTX_INVALID)
        return;
    if (ctx == SHMEM_CTX_DEFAULT)
        fy_compat_fail("shmem_ctx_destroy: SHMEM_CTX_DEFAULT cannot be destroyed");
    shmem_quiet();
    free(ctx);
}

int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team)
{
    FY_SHMEM_CALL();
    *team = ctx == SHMEM_CTX_INVALID ? SHMEM_TEAM_INVALID : team_of(ctx);
    return ctx == SHMEM_CTX_INVALID ? -1 : 0;
}

void shmem_ctx_fence(shmem_ctx_t ctx)
{
    (void)team_of(ctx);
    shmem_fence();
}

void shmem_ctx_quiet(shmem_ctx_t ctx)
{
    (void)team_of(ctx);
    shmem_quiet();
}

int fy_shmem_ctx_pe(shmem_ctx_t ctx, int pe)
{
    shmem_team_t team = team_of(ctx);
    if (team == SHMEM_TEAM_WORLD)
        return pe;
    int rank = shmem_team_translate_pe(team, pe, SHMEM_TEAM_WORLD);
    if (rank < 0)
        fy_compat_fail("a call with a context: PE %d does not exist (the context's team has PEs "
                       "0..%d)",
                       pe, shmem_team_n_pes(team) - 1);
    return rank;
}
