#include "core/group.h"

#include <stdlib.h>

#include "base/alloc.h"

fy_group *fy_group_create(const uint64_t *set, int ranks, int self)
{
    int size = 0;
    for (size_t i = 0; i < fy_set_words(ranks); i++)
        size += __builtin_popcountll(set[i]);
    bool all = size == ranks;
    fy_group *group =
        fy_malloc(sizeof(*group) + (all ? 0 : (size_t)size * sizeof(group->ranks[0])));
    if (group == NULL)
        return NULL;
    *group = (fy_group){.users = 1, .size = size, .self = all ? self : -1, .dead = -1, .all = all};
    int place = 0;
    for (int rank = 0; rank < ranks && !all; rank++) {
        if (!fy_set_has(set, rank))
            continue;
        if (rank == self)
            group->self = place;
        group->ranks[place++] = rank;
    }
    return group;
}

fy_group *fy_group_use(fy_group *group)
{
    group->users++;
    return group;
}

void fy_group_drop(fy_group *group)
{
    if (group != NULL && --group->users == 0)
        free(group);
}

int fy_group_place(const fy_group *group, int rank)
{
    if (group->all)
        return rank;
    for (int i = 0; group->id != 0 && i < group->size; i++)
        if (group->ranks[i] == rank)
            return i;
    int low = 0, high = group->id == 0 ? group->size - 1 : -1;
    while (low <= high) {
        int middle = low + (high - low) / 2;
        if (group->ranks[middle] == rank)
            return middle;
        if (group->ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return -1;
}

void fy_group_lose(fy_group *group, int rank, bool died, uint32_t last)
{
    if (fy_group_place(group, rank) < 0)
        return;
    if (died) {
        group->dead = rank;
    } else if (group->left == 0 || (int32_t)(last - group->last) < 0) {
        group->left = rank + 1;
        group->last = last;
    }
}

bool fy_group_is(const fy_group *group, const uint64_t *set, int ranks)
{
    int count = 0;
    for (int i = 0; i < group->size; i++)
        if (!fy_set_has(set, fy_group_rank(group, i)))
            return false;
    for (size_t i = 0; i < fy_set_words(ranks); i++)
        count += __builtin_popcountll(set[i]);
    return count == group->size;
}
