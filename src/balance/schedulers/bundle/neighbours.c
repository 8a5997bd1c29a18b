#include "balance/schedulers/bundle/neighbours.h"

int fy_neighbours_most(ferry_scheduling *s)
{
    return ferry_scheduling_count(s, "NEIGHBOURS", 4, 1, FY_NEIGHBOURS_MAX);
}

void fy_neighbours_init(ferry_scheduling *s, fy_neighbours *n)
{
    int others = ferry_scheduling_acceptor_count(s);
    n->most = fy_neighbours_most(s);
    n->offset = others > 0 ? (int)(ferry_scheduling_random(s) % (uint64_t)others) : 0;
}

int fy_neighbours_count(const ferry_scheduling *s, const fy_neighbours *n)
{
    int others = ferry_scheduling_acceptor_count(s);
    return n->most < others ? n->most : others;
}

int fy_neighbours_rank(const ferry_scheduling *s, const fy_neighbours *n, int index)
{
    return ferry_scheduling_acceptor(s,
                                     1 + (n->offset + index) % ferry_scheduling_acceptor_count(s));
}

void fy_neighbours_pass(const ferry_scheduling *s, fy_neighbours *n)
{
    int others = ferry_scheduling_acceptor_count(s);
    n->offset = others > 0 ? (n->offset + fy_neighbours_count(s, n)) % others : 0;
}
