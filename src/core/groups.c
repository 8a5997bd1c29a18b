/* Groups of the program: made by an exchange over the ranks of a parent group.
 *
 * Each rank tells all others its colour, its key, and how many groups it has taken part in making.
 * From that number the first rank of a new group makes the group's id, so no id is used twice. Then
 * the ranks of each new group make a barrier, so that a rank continues only when all know the
 * group. A rank may fail in the exchange, or in the barrier, because a rank died that is not in its
 * group. It then tells the ranks that know the group, and they fail too. Ranks that do not know the
 * group have not made the barrier. Application thread only. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/collective.h"
#include "core/fail.h"
#include "core/membership.h"
#include "core/rank.h"

/* The words that each rank sends. `list`: for ferry_group_create, a hash of the list. `place`: in
 * the parent, known to all. */
typedef struct entry {
    int32_t colour, key;
    uint32_t made;
    union {
        uint32_t list;
        int32_t place;
    };
} entry;

static fy_group *known(const ferry *f, const fy_group *group)
{
    return group != NULL ? (fy_group *)(uintptr_t)group : f->collectives.group;
}

static int by_key(const void *left, const void *right)
{
    const entry *a = left, *b = right;
    return a->key != b->key ? (a->key > b->key) - (a->key < b->key)
                            : (a->place > b->place) - (a->place < b->place);
}

/* Enters the ranks with this rank's colour, by key. `entries` then has them first. */
static void group_choose(const ferry *f, const fy_group *parent, entry *entries, fy_group *group)
{
    int32_t colour = entries[parent->self].colour;
    for (int place = 0; place < parent->size; place++) {
        if (entries[place].colour != colour)
            continue;
        entries[group->size] = entries[place];
        entries[group->size++].place = place;
    }
    qsort(entries, (size_t)group->size, sizeof(*entries), by_key);
    for (int i = 0; i < group->size; i++) {
        group->ranks[i] = fy_group_rank(parent, entries[i].place);
        if (group->ranks[i] == f->head.rank)
            group->self = i;
    }
    group->id = (uint64_t)group->ranks[0] << 32 | entries[0].made;
}

static int check_lists(ferry *f, const fy_group *parent, const entry *entries)
{
    const entry *own = &entries[parent->self];
    for (int place = 0; place < parent->size; place++)
        if (entries[place].list != own->list)
            return fy_fail(f, FERRY_EINVAL,
                           "group_create: rank %d gives another list of ranks than rank %d",
                           fy_group_rank(parent, place), f->head.rank);
    return 0;
}

static int first_barrier(ferry *f, fy_group *parent, fy_group *group)
{
    const ferry_collective barrier = {
        .size = sizeof(barrier), .kind = FERRY_BARRIER, .group = group};
    fy_collectives_add(f, group);
    group->parent = parent;
    int error = fy_collective_run(f, &barrier, FY_DOING_COLLECTIVE);
    group->parent = NULL;
    return error;
}

static int group_make(ferry *f, fy_group *parent, entry own, fy_group **out)
{
    fy_collectives *all = &f->collectives;
    entry *entries = fy_malloc((size_t)parent->size * sizeof(*entries));
    fy_group *group = fy_malloc(sizeof(*group) + (size_t)parent->size * sizeof(group->ranks[0]));
    int error = FERRY_ENOMEM;
    if (entries == NULL || group == NULL) {
        free(group);
        group = NULL;
        error = fy_fail(f, error, "group: no memory for %d ranks", parent->size);
        goto free_entries;
    }
    *group = (fy_group){.users = 1, .self = -1, .dead = -1};
    own.made = ++all->made;
    const ferry_collective gather = {.size = sizeof(gather),
                                     .kind = FERRY_ALLGATHER,
                                     .in = &own,
                                     .out = entries,
                                     .count = sizeof(own),
                                     .type = FERRY_BYTE,
                                     .group = parent->id == 0 ? NULL : parent};
    all->making = true;
    fy_group_use(parent);
    error = fy_collective_run(f, &gather, FY_DOING_COLLECTIVE);
    if (error == 0)
        error = check_lists(f, parent, entries);
    if (error == 0 && own.colour != FERRY_NO_COLOUR) {
        group_choose(f, parent, entries, group);
        error = first_barrier(f, parent, group);
    }
    fy_group_drop(parent);
    if (error != 0 || own.colour == FERRY_NO_COLOUR) {
        ferry_group_free(f, group);
        group = NULL;
    }
    fy_collectives_made(f);
    if (error == 0)
        *out = group;
free_entries:
    free(entries);
    return error;
}

static int groups_check(ferry *f, const char *call, const fy_group *parent, ferry_group **out)
{
    if (out == NULL)
        return fy_fail(f, FERRY_EINVAL, "%s: the result is missing", call);
    return fy_collective_check_group(f, parent, call);
}

int ferry_group_split(ferry *f, ferry_group *parent, int colour, int key, ferry_group **out)
{
    int error = groups_check(f, "group_split", known(f, parent), out);
    if (error != 0)
        return error;
    if (colour < FERRY_NO_COLOUR)
        return fy_fail(f, FERRY_EINVAL, "group_split: colour %d is below FERRY_NO_COLOUR", colour);
    return group_make(f, known(f, parent), (entry){.colour = colour, .key = key}, out);
}

static int check_ranks(ferry *f, const fy_group *parent, const int *ranks, int count)
{
    uint64_t *listed = fy_calloc(fy_set_words(f->head.ranks), sizeof(*listed));
    int error =
        listed == NULL ? fy_fail(f, FERRY_ENOMEM, "group: no memory for %d ranks", count) : 0;
    for (int i = 0; i < count && error == 0; i++) {
        int rank = ranks[i];
        bool member = ferry_group_place(f, parent, rank) >= 0;
        if (member && !fy_set_has(listed, rank))
            fy_set_add(listed, rank);
        else if (!member && (unsigned)rank < (unsigned)f->head.ranks && fy_peer_is_gone(f, rank))
            error = fy_not_member(f, "group_create", rank);
        else
            error = fy_fail(f, FERRY_EINVAL, "group_create: rank %d is %s", rank,
                            member ? "listed twice" : "not in the parent");
    }
    free(listed);
    return error;
}

int ferry_group_create(ferry *f, ferry_group *parent, const int *ranks, int count,
                       ferry_group **out)
{
    fy_group *from = known(f, parent);
    int error = groups_check(f, "group_create", from, out);
    if (error == 0 && ((unsigned)count > (unsigned)from->size || (ranks == NULL && count > 0)))
        error = fy_fail(f, FERRY_EINVAL, "group_create: %d ranks at %p, of %d", count,
                        (const void *)ranks, from->size);
    if (error == 0)
        error = check_ranks(f, from, ranks, count);
    if (error != 0)
        return error;
    entry own = {.colour = FERRY_NO_COLOUR, .list = 1 + (uint32_t)count};
    for (int i = 0; i < count; i++) {
        own.list = (own.list ^ (uint32_t)ranks[i]) * 16777619u;
        if (ranks[i] == f->head.rank)
            own.colour = 0, own.key = i;
    }
    return group_make(f, from, own, out);
}

void ferry_group_free(ferry *f, ferry_group *group)
{
    (void)f;
    if (group != NULL && group->link != NULL) {
        *group->link = group->next;
        if (group->next != NULL)
            group->next->link = group->link;
    }
    fy_group_drop(group);
}

int ferry_group_count(const ferry *f, const ferry_group *group)
{
    return known(f, group)->size;
}

int ferry_group_rank(const ferry *f, const ferry_group *group, int place)
{
    group = known(f, group);
    return place >= 0 && place < group->size ? fy_group_rank(group, place) : -1;
}

int ferry_group_place(const ferry *f, const ferry_group *group, int rank)
{
    return rank < 0 || rank >= f->head.ranks ? -1 : fy_group_place(known(f, group), rank);
}
