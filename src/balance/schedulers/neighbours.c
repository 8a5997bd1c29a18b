#include "balance/schedulers/neighbours.h"

#include <string.h>

void fy_neighbours_init(ferry_scheduling *s, fy_neighbours *n)
{
    double count = ferry_scheduling_parameter(s, "NEIGHBOURS", 4);
    int others = ferry_scheduling_takers(s);
    n->most = count < 1 ? 1 : count > FY_NEIGHBOURS_MAX ? FY_NEIGHBOURS_MAX : (int)count;
    n->offset = others > 0 ? (int)(ferry_scheduling_random(s) % (uint64_t)others) : 0;
}

int fy_neighbours_count(const ferry_scheduling *s, const fy_neighbours *n)
{
    int others = ferry_scheduling_takers(s);
    return n->most < others ? n->most : others;
}

int fy_neighbours_rank(const ferry_scheduling *s, const fy_neighbours *n, int index)
{
    return ferry_scheduling_taker(s, 1 + (n->offset + index) % ferry_scheduling_takers(s));
}

void fy_neighbours_pass(const ferry_scheduling *s, fy_neighbours *n)
{
    int others = ferry_scheduling_takers(s);
    n->offset = others > 0 ? (n->offset + fy_neighbours_count(s, n)) % others : 0;
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
