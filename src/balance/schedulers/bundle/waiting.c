#include "balance/schedulers/bundle/waiting.h"

#include <stdlib.h>

#include "base/alloc.h"

static bool is_before(const fy_weighed *a, const fy_weighed *b)
{
    return a->load != b->load ? a->load > b->load : a->turn > b->turn;
}

static void put(fy_waiting_queue *waiting, uint32_t at, const fy_weighed *entry)
{
    waiting->heap[at] = *entry;
    entry->item->mark = at;
}

/* Puts `entry` at the free place `at` of the heap of `count` places, or moves it up or down to
 * where its load belongs. */
static void waiting_settle(fy_waiting_queue *waiting, uint32_t at, uint32_t count, fy_weighed entry)
{
    for (; at > 0 && is_before(&entry, &waiting->heap[(at - 1) / 2]); at = (at - 1) / 2)
        put(waiting, at, &waiting->heap[(at - 1) / 2]);
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && is_before(&waiting->heap[child + 1], &waiting->heap[child]);
        if (!is_before(&waiting->heap[child], &entry))
            break;
        put(waiting, at, &waiting->heap[child]);
    }
    put(waiting, at, &entry);
}

static double load_of(const fy_waiting_queue *waiting, const ferry_schedulable *item)
{
    return waiting->ordered ? waiting->heap[(uint32_t)item->mark].load : item->mark;
}

/* There is no memory for the heap: goes on without it. */
static void lose_order(fy_waiting_queue *waiting)
{
    for (uint32_t i = 0; i < waiting->count; i++)
        waiting->heap[i].item->mark = waiting->heap[i].load;
    waiting->ordered = false;
    fy_waiting_fini(waiting);
}

static void reserve(fy_waiting_queue *waiting)
{
    if (!waiting->ordered || waiting->count < waiting->capacity)
        return;
    fy_weighed *larger = fy_double(waiting->heap, &waiting->capacity, 64, sizeof *larger);
    if (larger == NULL)
        lose_order(waiting);
    else
        waiting->heap = larger;
}

static void waiting_append(fy_waiting_queue *waiting, ferry_schedulable *item)
{
    item->queued = true;
    item->prev = waiting->last;
    item->next = NULL;
    if (waiting->last == NULL)
        waiting->first = item;
    else
        waiting->last->next = item;
    waiting->last = item;
}

bool fy_waiting_add(fy_waiting_queue *waiting, ferry_schedulable *item)
{
    bool is_new = !item->queued;
    if (item->pending == 0)
        return false;
    if (is_new) {
        reserve(waiting);
        waiting_append(waiting, item);
        waiting->load += item->load;
        waiting->count++;
    } else {
        waiting->load += item->load - load_of(waiting, item);
    }
    if (!waiting->ordered) {
        item->mark = item->load;
        return is_new;
    }
    fy_weighed entry = {.load = item->load, .item = item};
    uint32_t at = is_new ? waiting->count - 1 : (uint32_t)item->mark;
    entry.turn = is_new ? waiting->turn++ : waiting->heap[at].turn;
    waiting_settle(waiting, at, waiting->count, entry);
    return is_new;
}

static void unlink_item(fy_waiting_queue *waiting, ferry_schedulable *item)
{
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
}

void fy_waiting_remove(fy_waiting_queue *waiting, ferry_schedulable *item)
{
    if (!item->queued)
        return;
    unlink_item(waiting, item);
    waiting->load -= load_of(waiting, item);
    /* Rounding: after loads were added and subtracted the sum need not be exactly zero. */
    if (--waiting->count == 0 || waiting->load < 0)
        waiting->load = 0;
    if (waiting->ordered && waiting->heap[waiting->count].item != item)
        waiting_settle(waiting, (uint32_t)item->mark, waiting->count,
                       waiting->heap[waiting->count]);
    item->mark = 0;
}

ferry_schedulable *fy_waiting_pop(fy_waiting_queue *waiting)
{
    ferry_schedulable *item = waiting->first;
    if (item != NULL)
        fy_waiting_remove(waiting, item);
    return item;
}

ferry_schedulable *fy_waiting_heaviest(const fy_waiting_queue *waiting)
{
    ferry_schedulable *best = waiting->last;
    if (waiting->ordered)
        return waiting->count == 0 ? NULL : waiting->heap[0].item;
    for (ferry_schedulable *item = waiting->last; item != NULL; item = item->prev)
        if (item->load > best->load)
            best = item;
    return best;
}

double fy_waiting_load(const fy_waiting_queue *waiting, bool skip)
{
    if (waiting->count <= (skip ? 1U : 0U))
        return 0;
    double load = waiting->load - (skip ? load_of(waiting, waiting->first) : 0);
    return load > 0 ? load : 0;
}

void fy_waiting_fini(fy_waiting_queue *waiting)
{
    free(waiting->heap);
    waiting->heap = NULL;
}
