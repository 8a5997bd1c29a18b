#include "percolation/state.h"
#include "store/state.h"

void fy_line_insert(fy_line *line, ferry_schedulable *item, ferry_schedulable *before)
{
    item->next = before;
    item->prev = before == NULL ? line->last : before->prev;
    *(item->prev == NULL ? &line->first : &item->prev->next) = item;
    *(before == NULL ? &line->last : &before->prev) = item;
    item->queued = true;
    line->count++;
}

void fy_line_remove(fy_line *line, ferry_schedulable *item)
{
    *(item->prev == NULL ? &line->first : &item->prev->next) = item->next;
    *(item->next == NULL ? &line->last : &item->next->prev) = item->prev;
    item->prev = item->next = NULL;
    item->queued = false;
    line->count--;
}

ferry_schedulable *fy_line_pop(fy_line *line)
{
    ferry_schedulable *item = line->first;
    if (item != NULL)
        fy_line_remove(line, item);
    return item;
}

void fy_percolation_tell(ferry_scheduling *s, int rank, fy_percolation_word what, uint64_t object,
                         uint64_t bytes)
{
    const uint64_t words[FERRY_SCHEDULER_WORDS] = {what, object, bytes};
    ferry_scheduling_send(s, rank, words);
}

uint64_t fy_item_bytes(const ferry_schedulable *item)
{
    const fy_record *record = fy_record_of((ferry_schedulable *)(uintptr_t)item);
    /* relaxed: a guess of the size is enough */
    return record->stored == NULL
               ? 0
               : atomic_load_explicit(&record->stored->told_bytes, memory_order_relaxed);
}
