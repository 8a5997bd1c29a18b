#include "balance/schedulers/waiting.h"

enum { LOOKED_AT_MAX = 64 };

bool fy_waiting_add(fy_waiting *waiting, ferry_schedulable *item)
{
    if (item->queued || item->pending == 0)
        return false;
    item->queued = true;
    item->prev = waiting->last;
    item->next = NULL;
    if (waiting->last == NULL)
        waiting->first = item;
    else
        waiting->last->next = item;
    waiting->last = item;
    waiting->count++;
    return true;
}

void fy_waiting_remove(fy_waiting *waiting, ferry_schedulable *item)
{
    if (!item->queued)
        return;
    if (item->prev == NULL)
        waiting->first = item->next;
    else
        item->prev->next = item->next;
    if (item->next == NULL)
        waiting->last = item->prev;
    else
        item->next->prev = item->prev;
    item->prev = NULL;
    item->next = NULL;
    item->queued = false;
    waiting->count--;
}

ferry_schedulable *fy_waiting_pop(fy_waiting *waiting)
{
    ferry_schedulable *item = waiting->first;
    if (item != NULL)
        fy_waiting_remove(waiting, item);
    return item;
}

ferry_schedulable *fy_waiting_heaviest(const fy_waiting *waiting)
{
    ferry_schedulable *best = waiting->last;
    int looked_at = 0;
    for (ferry_schedulable *item = waiting->last; item != NULL && looked_at < LOOKED_AT_MAX;
         item = item->prev, looked_at++)
        if (item->load > best->load)
            best = item;
    return best;
}

double fy_waiting_load(const fy_waiting *waiting, uint32_t skip)
{
    if (waiting->count <= skip)
        return 0;
    double sum = 0;
    uint32_t looked_at = 0;
    uint32_t count = waiting->count - skip;
    for (const ferry_schedulable *item = waiting->last;
         looked_at < count && looked_at < LOOKED_AT_MAX; item = item->prev, looked_at++)
        sum += item->load;
    return sum / looked_at * count;
}
