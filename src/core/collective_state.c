/* The state of a rank for collectives, from its opening to its end: the group of the members, the
 * groups of the program, records of calls. */
#include <stdlib.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "core/membership.h"
#include "core/rank.h"

int fy_collectives_init(ferry *f)
{
    uint64_t *members = fy_calloc(fy_set_words(f->head.ranks), sizeof(*members));
    if (members == NULL)
        return FERRY_ENOMEM;
    /* A rank that joined later is in no group yet. */
    int starting = f->info.starting != 0 ? f->info.starting : f->head.ranks;
    for (int rank = 0; rank < starting && f->head.rank < starting; rank++)
        fy_set_add(members, rank);
    f->collectives.group = fy_group_create(members, f->head.ranks, f->head.rank);
    free(members);
    return f->collectives.group == NULL ? FERRY_ENOMEM : fy_collective_board_init(f);
}

/* `rank` has gone from the members or from a group of the program. A rank that leaves may have made
 * calls with the members that this rank has yet to make. All its frames came before it went. */
static void group_lose(const ferry *f, fy_group *group, int rank, bool died)
{
    bool leaves = group->id == 0 && fy_peer_leaves(f, rank);
    fy_group_lose(group, rank, died, leaves ? f->leaves->last[rank] : group->number);
}

/* `rank` was a member and is gone. Its end may have come at different calls of the groups of the
 * program, so their ranks count anew. The id changes too, so no frame of an old call fits a new
 * one. Calls that others may never make fail. */
static void renumber(ferry *f, int rank)
{
    for (fy_group *group = f->collectives.groups; group != NULL; group = group->next) {
        group->id += FY_GROUP_ERA;
        group->number = group->failed = 1; /* the first was the barrier that made the group */
    }
    for (fy_collective *c = f->collectives.first; c != NULL; c = c->next)
        if (c->group->id != 0)
            fy_collective_lack(f, c, rank);
}

int fy_collectives_regroup(ferry *f, const uint64_t *set, uint32_t number)
{
    fy_collectives *all = &f->collectives;
    fy_group *group = fy_group_create(set, f->head.ranks, f->head.rank);
    if (group == NULL)
        return fy_fail(f, FERRY_ENOMEM, "no memory for the group of %d ranks", f->head.ranks);
    /* Ranks that were present for the root may have gone here since. */
    for (int i = 0; i < group->size; i++)
        if (fy_peer_is_gone(f, fy_group_rank(group, i)))
            group_lose(f, group, fy_group_rank(group, i),
                       !fy_peer_leaves(f, fy_group_rank(group, i)));
    group->number = group->failed = number;
    /* All ranks have the same set. Some may know of a later death already. */
    int lost = -1;
    for (int i = 0; i < all->group->size; i++)
        if (!fy_set_has(set, fy_group_rank(all->group, i)))
            lost = fy_group_rank(all->group, i);
    if (lost >= 0)
        renumber(f, lost);
    fy_group_drop(all->group);
    all->group = group;
    all->turn = 0;
    return 0;
}

void fy_collectives_add(ferry *f, fy_group *group)
{
    fy_collectives *all = &f->collectives;
    group->next = all->groups;
    group->link = &all->groups;
    if (group->next != NULL)
        group->next->link = &group->next;
    all->groups = group;
    for (int i = 0; i < group->size; i++)
        if (fy_peer_is_gone(f, group->ranks[i]))
            group->dead = group->ranks[i];
}

void fy_collectives_made(ferry *f)
{
    f->collectives.making = false;
    fy_collective_look_early(f, NULL);
}

void fy_collectives_lose(ferry *f, int rank, bool died)
{
    group_lose(f, f->collectives.group, rank, died);
    for (fy_group *group = f->collectives.groups; group != NULL; group = group->next)
        group_lose(f, group, rank, died);
    for (fy_collective *c = f->collectives.first; c != NULL; c = c->next) {
        group_lose(f, c->group, rank, died);
        c->doubt_ns = 1; /* it asks again: others may give it up because of this */
    }
}

void fy_collective_free(ferry *f, fy_collective *c)
{
    c->next = f->collectives.spare;
    f->collectives.spare = c;
}

static void free_record(fy_collective *c)
{
    fy_group_drop(c->group);
    if (c->steps != c->own_steps)
        free(c->steps);
    if (c->posts != c->own_posts)
        free(c->posts);
    fy_plan_scratch_end(c);
    free(c);
}

void fy_collectives_fini(ferry *f)
{
    fy_collectives *all = &f->collectives;
    free(all->boards);
    fy_group_drop(all->group);
    while (all->groups != NULL)
        ferry_group_free(f, all->groups);
    fy_queue_set_fini(&all->early, &f->packets);
    for (fy_collective *c = all->first, *next; c != NULL; c = next) {
        next = c->next;
        free_record(c);
    }
    for (fy_collective *c = all->spare, *next; c != NULL; c = next) {
        next = c->next;
        free_record(c);
    }
}
