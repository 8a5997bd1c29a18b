/* Teams are groups of Ferry, and collectives are Ferry's. A PE number in a team is the place in its
 * group. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

struct fy_shmem_team {
    struct fy_shmem_team *next;
    ferry_group *group;
    shmem_team_config_t config;
};

/* The place of `team` in the list of teams. Ends the job if it is not there. */
static struct fy_shmem_team **link_of(shmem_team_t team)
{
    struct fy_shmem_team **link = &fy_shmem_pe.teams;
    while (*link != NULL && *link != team)
        link = &(*link)->next;
    if (*link == NULL)
        fy_compat_fail("%s: the team at %p was destroyed, or is none", fy_compat.call,
                       (void *)team);
    return link;
}

void fy_shmem_teams_end(void)
{
    for (struct fy_shmem_team *team; (team = fy_shmem_pe.teams) != NULL;) {
        fy_shmem_pe.teams = team->next;
        free(team);
    }
}

bool fy_shmem_team_group(shmem_team_t team, ferry_group **group)
{
    fy_shmem_check();
    if (team == SHMEM_TEAM_INVALID)
        return false;
    if (team == SHMEM_TEAM_WORLD)
        *group = NULL;
    else
        *group = team == SHMEM_TEAM_SHARED ? fy_shmem_pe.shared : (*link_of(team))->group;
    return true;
}

/* The number of PEs of a team; -1: it is SHMEM_TEAM_INVALID. */
static int team_size(shmem_team_t team)
{
    ferry_group *group;
    return fy_shmem_team_group(team, &group) ? ferry_group_count(fy_compat.f, group) : -1;
}

int shmem_team_my_pe(shmem_team_t team)
{
    FY_SHMEM_CALL();
    ferry_group *group;
    return fy_shmem_team_group(team, &group) ? ferry_group_place(fy_compat.f, group, fy_compat.me)
                                             : -1;
}

int shmem_team_n_pes(shmem_team_t team)
{
    FY_SHMEM_CALL();
    return team_size(team);
}

int shmem_team_translate_pe(shmem_team_t from, int pe, shmem_team_t to)
{
    FY_SHMEM_CALL();
    ferry_group *source, *target;
    if (!fy_shmem_team_group(from, &source) || !fy_shmem_team_group(to, &target))
        return -1;
    int rank = ferry_group_rank(fy_compat.f, source, pe);
    return rank < 0 ? -1 : ferry_group_place(fy_compat.f, target, rank);
}

/* The ranks of `size` PEs of `parent`: start, start + stride and so on. NULL: one does not
 * exist. */
static int *ranks_of(ferry_group *parent, int start, int stride, int size)
{
    int count = ferry_group_count(fy_compat.f, parent);
    int64_t last = start + (int64_t)stride * (size - 1);
    if (start < 0 || start >= count || size < 1 || size > count || last < 0 || last >= count ||
        (stride == 0 && size > 1))
        return NULL;
    int *ranks = malloc((size_t)size * sizeof(int));
    if (ranks == NULL)
        fy_compat_fail("shmem_team_split_strided: no memory");
    for (int i = 0; i < size; i++)
        ranks[i] = ferry_group_rank(fy_compat.f, parent, start + i * stride);
    return ranks;
}

static shmem_team_t team_create(ferry_group *group, const shmem_team_config_t *config, long mask)
{
    if (group == NULL)
        return SHMEM_TEAM_INVALID;
    struct fy_shmem_team *team = calloc(1, sizeof(*team));
    if (team == NULL)
        fy_compat_fail("shmem_team_split: no memory");
    team->group = group;
    team->next = fy_shmem_pe.teams;
    fy_shmem_pe.teams = team;
    if (config != NULL && (mask & SHMEM_TEAM_NUM_CONTEXTS) != 0)
        team->config = *config;
    return team;
}

int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size,
                             const shmem_team_config_t *config, long config_mask,
                             shmem_team_t *new_team)
{
    FY_SHMEM_CALL();
    ferry_group *group, *made;
    *new_team = SHMEM_TEAM_INVALID;
    if (!fy_shmem_team_group(parent, &group))
        return -1;
    int *ranks = ranks_of(group, start, stride, size);
    if (ranks == NULL)
        return -1;
    fy_compat_check("shmem_team_split_strided",
                    ferry_group_create(fy_compat.f, group, ranks, size, &made));
    free(ranks);
    *new_team = team_create(made, config, config_mask);
    return 0;
}

int shmem_team_split_2d(shmem_team_t parent, int xrange, const shmem_team_config_t *xaxis_config,
                        long xaxis_mask, shmem_team_t *xaxis_team,
                        const shmem_team_config_t *yaxis_config, long yaxis_mask,
                        shmem_team_t *yaxis_team)
{
    FY_SHMEM_CALL();
    ferry *f = fy_compat.f;
    ferry_group *group, *row, *column;
    *xaxis_team = *yaxis_team = SHMEM_TEAM_INVALID;
    if (!fy_shmem_team_group(parent, &group) || xrange < 1)
        return -1;
    int place = ferry_group_place(f, group, fy_compat.me);
    fy_compat_check("shmem_team_split_2d",
                    ferry_group_split(f, group, place / xrange, place, &row));
    fy_compat_check("shmem_team_split_2d",
                    ferry_group_split(f, group, place % xrange, place, &column));
    *xaxis_team = team_create(row, xaxis_config, xaxis_mask);
    *yaxis_team = team_create(column, yaxis_config, yaxis_mask);
    return 0;
}

int shmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t *config)
{
    FY_SHMEM_CALL();
    ferry_group *group;
    if (!fy_shmem_team_group(team, &group) || (config_mask & ~SHMEM_TEAM_NUM_CONTEXTS) != 0 ||
        (config_mask != 0 && config == NULL))
        return -1;
    bool given = team == SHMEM_TEAM_WORLD || team == SHMEM_TEAM_SHARED;
    if (config_mask != 0)
        config->num_contexts = given ? 0 : team->config.num_contexts;
    return 0;
}

void *shmem_team_ptr(shmem_team_t team, const void *dest, int pe)
{
    FY_SHMEM_CALL();
    int rank = shmem_team_translate_pe(team, pe, SHMEM_TEAM_WORLD);
    return rank < 0 ? NULL : shmem_ptr(dest, rank);
}

void shmem_team_destroy(shmem_team_t team)
{
    FY_SHMEM_CALL();
    if (team == SHMEM_TEAM_INVALID || team == SHMEM_TEAM_WORLD || team == SHMEM_TEAM_SHARED)
        return;
    struct fy_shmem_team **link = link_of(team);
    *link = team->next;
    ferry_group_free(fy_compat.f, team->group);
    free(team);
}

/* Runs a collective over `team`. */
static int run(shmem_team_t team, ferry_collective *what)
{
    if (!fy_shmem_team_group(team, &what->group))
        return -1;
    what->size = sizeof(*what);
    fy_compat_check(fy_compat.call, ferry_collective_run(fy_compat.f, what));
    return 0;
}

int shmem_team_sync(shmem_team_t team)
{
    FY_SHMEM_CALL();
    ferry_collective what = {.kind = FERRY_BARRIER};
    return run(team, &what);
}

int fy_shmem_reduce(shmem_team_t team, void *dest, const void *source, size_t count,
                    size_t value_bytes, ferry_combine_fn *combine)
{
    ferry_collective what = {.kind = FERRY_ALLREDUCE,
                             .in = source,
                             .out = dest,
                             .count = count,
                             .value_bytes = value_bytes,
                             .combine = combine};
    return run(team, &what);
}

/* Ends the job if an address of a collective is missing that is used here. */
static void check_there(const void *address, const char *what)
{
    if (address == NULL)
        fy_compat_fail("%s: the %s is NULL", fy_compat.call, what);
}

static int broadcast(shmem_team_t team, void *dest, const void *source, size_t size_bytes, int root)
{
    ferry_group *group;
    if (!fy_shmem_team_group(team, &group))
        return -1;
    int rank = ferry_group_rank(fy_compat.f, group, root);
    if (rank < 0)
        fy_compat_fail("%s: root %d is not in the team (it has PEs 0..%d)", fy_compat.call, root,
                       ferry_group_count(fy_compat.f, group) - 1);
    if (size_bytes > 0)
        check_there(dest, "target");
    if (size_bytes > 0 && rank == fy_compat.me)
        check_there(source, "source");
    if (rank == fy_compat.me && dest != source)
        memmove(dest, source, size_bytes);
    ferry_collective what = {.kind = FERRY_BROADCAST,
                             .root = rank,
                             .out = dest,
                             .count = size_bytes,
                             .type = FERRY_BYTE};
    return run(team, &what);
}

/* A collective in which each PE gives a piece of one size. */
static int pieces(ferry_collective_kind kind, shmem_team_t team, void *dest, const void *source,
                  size_t size_bytes)
{
    ferry_collective what = {
        .kind = kind, .in = source, .out = dest, .count = size_bytes, .type = FERRY_BYTE};
    return run(team, &what);
}

/* As an allgather, with pieces of different sizes, which the PEs exchange first. */
static int collect(shmem_team_t team, void *dest, const void *source, size_t size_bytes)
{
    int count = team_size(team);
    if (count < 0)
        return -1;
    size_t *sizes = malloc((size_t)count * sizeof(*sizes));
    if (sizes == NULL)
        fy_compat_fail("shmem_collect: no memory");
    int error = pieces(FERRY_ALLGATHER, team, sizes, &size_bytes, sizeof(size_bytes));
    ferry_collective what = {.kind = FERRY_ALLGATHERV,
                             .in = source,
                             .out = dest,
                             .count = size_bytes,
                             .type = FERRY_BYTE,
                             .out_counts = sizes};
    error = error != 0 ? error : run(team, &what);
    free(sizes);
    return error;
}

typedef struct strides {
    ptrdiff_t dest, source;
    size_t count, bytes;
} strides;

/* Packs the elements, exchanges them, and unpacks those that have come. */
static int alltoalls(shmem_team_t team, void *dest, const void *source, strides each)
{
    int places = team_size(team);
    if (places < 0)
        return -1;
    static const char call[] = "shmem_alltoalls";
    size_t total = (size_t)places * each.count, bytes = each.bytes;
    size_t room = fy_shmem_size(call, each.count, 2 * (size_t)places * bytes);
    if (total > 0) {
        check_there(dest, "target");
        check_there(source, "source");
    }
    char *packed = fy_compat_need(call, malloc(room + 1)), *arrived = packed + room / 2;
    for (size_t i = 0; i < total; i++)
        memcpy(packed + i * bytes,
               (const char *)source + (ptrdiff_t)i * each.source * (ptrdiff_t)bytes, bytes);
    int error = pieces(FERRY_ALLTOALL, team, arrived, packed, each.count * bytes);
    for (size_t i = 0; i < total && error == 0; i++)
        memcpy((char *)dest + (ptrdiff_t)i * each.dest * (ptrdiff_t)bytes, arrived + i * bytes,
               bytes);
    free(packed);
    return error;
}

#define COLLECTIVE(BEFORE, AFTER, TYPE, BYTES)                                                     \
    int BEFORE##broadcast##AFTER(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems, \
                                 int root)                                                         \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        return broadcast(team, dest, source, fy_shmem_size("shmem_broadcast", nelems, BYTES),      \
                         root);                                                                    \
    }                                                                                              \
    int BEFORE##collect##AFTER(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems)   \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        return collect(team, dest, source, fy_shmem_size("shmem_collect", nelems, BYTES));         \
    }                                                                                              \
    int BEFORE##fcollect##AFTER(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems)  \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        return pieces(FERRY_ALLGATHER, team, dest, source,                                         \
                      fy_shmem_size("shmem_fcollect", nelems, BYTES));                             \
    }                                                                                              \
    int BEFORE##alltoall##AFTER(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems)  \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        return pieces(FERRY_ALLTOALL, team, dest, source,                                          \
                      fy_shmem_size("shmem_alltoall", nelems, BYTES));                             \
    }                                                                                              \
    int BEFORE##alltoalls##AFTER(shmem_team_t team, TYPE *dest, const TYPE *source, ptrdiff_t dst, \
                                 ptrdiff_t sst, size_t nelems)                                     \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        return alltoalls(team, dest, source, (strides){dst, sst, nelems, BYTES});                  \
    }
#define COLLECTIVES(NAME, TYPE) COLLECTIVE(shmem_##NAME##_, , TYPE, sizeof(TYPE))
SHMEM_TYPES(COLLECTIVES)
COLLECTIVE(shmem_, mem, void, 1)
