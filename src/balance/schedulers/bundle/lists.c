#include "balance/schedulers/bundle/lists.h"

#include <stdlib.h>
#include <string.h>

void fy_policy_destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    fy_waiting_fini(state);
    free(state);
}

void fy_policy_remove(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    fy_waiting_queue *waiting = state;
    (void)s;
    fy_waiting_remove(waiting, item);
    if (item == waiting->running)
        waiting->running = NULL;
}

bool fy_policy_empty(ferry_scheduling *s, void *state)
{
    const fy_waiting_queue *waiting = state;
    (void)s;
    return waiting->count == 0;
}

ferry_schedulable *fy_policy_ahead(ferry_scheduling *s, void *state, const ferry_schedulable *after)
{
    (void)s;
    return after == NULL ? ((const fy_waiting_queue *)state)->first : after->next;
}

void fy_policy_tell(ferry_scheduling *s, int rank, uint64_t what, uint64_t a, uint64_t b)
{
    const uint64_t words[FERRY_SCHEDULER_WORDS] = {what, a, b};
    ferry_scheduling_send(s, rank, words);
}

uint64_t fy_word_of(double number)
{
    uint64_t word;
    memcpy(&word, &number, sizeof word);
    return word;
}

double fy_number_of(uint64_t word)
{
    double number;
    memcpy(&number, &word, sizeof number);
    return number;
}
